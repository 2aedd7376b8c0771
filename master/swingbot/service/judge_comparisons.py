"""When all that a comparison asked for has ended, say what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.model.records import Comparison, KernelBuild, Order, Variant
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.row import CHANGED
from swingbot.core.stats.rules import rule_for
from swingbot.service.gather_differences import Differences, differences_of
from swingbot.service.place_orders import series_for
from swingbot.service.ports import Lab, Store
from swingbot.service.screen_tips import screen_tip
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, find_metric
from swingbot_jobs.testbox.box import Testbox

OVER: Final = ("done", "failed", "cancelled")
# Another build of equal code lies differently in memory; on a box that counts instructions a null change moved
# page faults and UDP by 0.1 %, TCP and hackbench by 0.5 % (their minimum effects are 2 and 4 %): a twentieth of the minimum.
LAYOUT_SHARE: Final = 0.05

_Values = dict[tuple[str, str], list[BootRuns]]


def judge_comparisons(lab: Lab, store: Store) -> None:
    """Judge each running comparison whose orders have all ended."""
    for comparison in store.open_comparisons():
        orders = store.wanted(comparison=comparison.id)
        if (
            comparison.status == "running"
            and orders
            and all(order.state in OVER for order in orders)
        ):
            _judge(lab, store, comparison, orders)


def _judge(lab: Lab, store: Store, comparison: Comparison, orders: Sequence[Order]) -> None:
    base, head = store.variant(comparison.base), store.variant(comparison.head)
    builds = store.kernel_builds([base.build_key, head.build_key])
    unbuilt = _unbuilt(base, head, builds, orders)
    if unbuilt:
        store.set_comparison(comparison.id, "failed", unbuilt)
        return
    images = [str(builds[variant.build_key].image_sha256) for variant in (base, head)]
    tip: dict[tuple[str, str, str], list[float]] = {}
    for testbox, spec in comparison.parts:
        tip |= _judge_part(lab, store, comparison, testbox, spec, images)
    store.set_comparison(comparison.id, "done", _lab_trouble(orders))
    if comparison.kind == "watch":
        screen_tip(lab, store, comparison, tip)


def _unbuilt(
    base: Variant, head: Variant, builds: Mapping[str, KernelBuild], orders: Sequence[Order]
) -> str | None:
    for side, variant in (("base", base), ("head", head)):
        build = builds.get(variant.build_key)
        if build is None:
            lost = next(
                (
                    order.reason
                    for order in orders
                    if order.kind == "build"
                    and order.build_key == variant.build_key
                    and order.state == "failed"
                ),
                None,
            )
            return f"{side} {variant.commit[:12]} could not be built here: {lost or 'its order was cancelled'}"
        if build.status == "failed":
            return f"{side} {variant.commit[:12]} {build.trouble}"
    return None


def _lab_trouble(orders: Sequence[Order]) -> str | None:
    failed = [order for order in orders if order.state == "failed"]
    return (
        f"{len(failed)} of {len(orders)} orders were lost to the lab, the first: {failed[0].reason}"
        if failed
        else None
    )


def _judge_part(
    lab: Lab, store: Store, comparison: Comparison, testbox: str, spec: str, images: Sequence[str]
) -> dict[tuple[str, str, str], list[float]]:
    """Write the rows of one testbox; gives the boot means of head by (testbox, unit job, metric)."""
    box, unit_jobs = lab.testboxes[testbox], {job.name: job for job in store.spec(spec)}
    series = series_for(lab, testbox, comparison)
    ks = range(comparison.first_k, comparison.first_k + comparison.boots)
    sides, problems = [], []
    for image in images:
        values, trouble = boots_of(store, image, testbox, spec, series, list(ks))
        sides.append(values)
        problems.append(trouble)
    known = differences_of(store, images, box, spec, series, list(ks))
    for unit_job, metric_name in _in_order(lab, unit_jobs, sides):
        row = _row(lab, box, unit_jobs[unit_job], metric_name, sides, known, problems=problems)
        store.add_row(comparison.id, testbox, spec, row)
    for unit_job in unit_jobs.keys() - {job for job, _ in [key for side in sides for key in side]}:
        store.add_row(
            comparison.id, testbox, spec, _nothing(lab, box, unit_jobs[unit_job], problems)
        )
    return {
        (testbox, *key): [sum(boot.values) / len(boot.values) for boot in boots if boot.values]
        for key, boots in sides[1].items()
    }


def boots_of(
    store: Store, image: str, testbox: str, spec: str, series: str, ks: Sequence[int]
) -> tuple[_Values, list[str]]:
    """Values by (unit job, metric), one BootRuns a boot that came up; and what went wrong in the others, in words."""
    values: _Values = {}
    problems = []
    for boot in store.boots(image, testbox, spec, series, ks):
        if boot.outcome != "up":
            problems.append(f"boot {boot.k} was {boot.trouble}")
            continue
        found = store.boot_values(boot.id)
        for key, runs in found.items():
            values.setdefault(key, []).append(BootRuns(k=boot.k, values=tuple(runs)))
        jobs_seen = {job for job, _ in found}
        problems += [
            f"boot {boot.k}, {job.name}: {problem}"
            for job in store.spec(spec)
            if job.name not in jobs_seen
            for problem in store.run_problems(boot.id, job.name)[:1]
        ]
    return values, problems


def _in_order(
    lab: Lab, unit_jobs: Mapping[str, UnitJob], sides: Sequence[_Values]
) -> list[tuple[str, str]]:
    """(unit job, metric) in the order of the job file and of meta.yaml, without those that are only kept."""
    keys = {
        key
        for side in sides
        for key, boots in side.items()
        if key[0] in unit_jobs and _judged(metric_of(lab, key[1]), boots)
    }
    jobs = list(unit_jobs)

    def place(key: tuple[str, str]) -> tuple[int, int, int, str]:
        unit_job, metric = key
        program = unit_jobs[unit_job].program
        own = list(lab.programs[program].metrics)
        return (
            jobs.index(unit_job),
            0 if metric.startswith(f"{program}.") else 1,
            own.index(metric) if metric in own else len(own),
            metric,
        )

    return sorted(keys, key=place)


def _judged(metric: Metric, boots: Sequence[BootRuns]) -> bool:
    """Whether the metric makes a row. Counters that nothing happened to on either side (most of /proc/vmstat) would only hide the others."""
    return metric.judged and (
        metric.klass != "counter" or any(value for boot in boots for value in boot.values)
    )


def metric_of(lab: Lab, name: str) -> Metric:
    found = find_metric(lab.programs, name)
    return found or Metric(
        name=name,
        unit="",
        better=None,
        klass="counter",
        min_effect_pct=5.0,
        describe="",
        headline=False,
    )


def rule_of(box: Testbox, metric: Metric, job: UnitJob) -> Rule:
    """How a metric of a unit job is judged on a testbox."""
    minimum = metric.min_effect(job.params)
    return rule_for(
        metric.klass,
        metric.better,
        minimum,
        paired=box.repeatable,
        layout=LAYOUT_SHARE * minimum / 100,
    )


def _runs_with(lab: Lab, job: UnitJob, metric: str) -> int:
    """How many runs of a boot should have the metric: one if its monitor has a run of its own."""
    owner = lab.programs.get(metric.partition(".")[0])
    return 1 if owner is not None and owner.when == "asked" else job.runs


def _row(
    lab: Lab,
    box: Testbox,
    job: UnitJob,
    name: str,
    sides: Sequence[_Values],
    known: Differences,
    *,
    problems: Sequence[Sequence[str]],
) -> dict[str, Any]:
    metric, rule = metric_of(lab, name), rule_of(box, metric_of(lab, name), job)
    known = known.of(job)
    base, head = (
        known.with_lost(i, side.get((job.name, name), []), _runs_with(lab, job, name))
        for i, side in enumerate(sides)
    )
    judged = compare(base, head, rule, invalid=known.must)
    verdict, reason = judged.verdict, judged.reason
    if known.identical:
        verdict, reason = "same", "the two kernel images are identical byte for byte"
    elif known.told and verdict in CHANGED:
        reason = f"{reason}; {known.told}" if reason else known.told
    elif verdict == "invalid" and any(problems):
        reason = f"{reason}; {next(p for p in problems if p)[0]}"
    return judged.verdict_json() | {
        "unit_job": job.name,
        "testbox": box.name,
        "label": box.label,
        "metric": name,
        "unit": metric.unit,
        "verdict": verdict,
        "reason": reason,
        "problems": [*problems[0][:3], *problems[1][:3]],
        "headline": metric.headline,
    }


def _nothing(
    lab: Lab, box: Testbox, job: UnitJob, problems: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """A unit job of which neither side gave anything: a row that says so, under a headline metric's name."""
    metric = next(
        metric for metric in lab.programs[job.program].metrics.values() if metric.headline
    )
    none = {"boots": 0, "runs": 0, "mean": None, "stddev": None, "stddev_within": None}
    told = [problem for side in problems for problem in side]
    return {
        "unit_job": job.name,
        "testbox": box.name,
        "label": box.label,
        "metric": metric.name,
        "unit": metric.unit,
        "class": metric.klass,
        "better": metric.better,
        "base": none,
        "head": none,
        "change_pct": None,
        "interval_pct": None,
        "verdict": "invalid",
        "reason": "no run of either kernel gave a result" + (f"; {told[0]}" if told else ""),
        "level": None,
        "min_effect_pct": metric.min_effect(job.params),
        "more_boots": None,
        "problems": told[:6],
        "headline": True,
    }
