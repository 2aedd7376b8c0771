"""When all that a comparison asked for has ended, say what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from swingbot.core.model.comparison_row import NO_BOOTS, ComparisonRow
from swingbot.core.model.records import Comparison, KernelBuild, Order, Variant
from swingbot.core.plan.rules import metric_of, rule_of
from swingbot.core.plan.series import series_for
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.ports import Lab, Transaction
from swingbot.service.result.boots import Values, boots_of
from swingbot.service.result.differences import Differences, differences_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric
from swingbot_jobs.testbox.box import Testbox


def judge_comparisons(lab: Lab, tx: Transaction) -> None:
    """Judge each running comparison whose orders have all ended."""
    for comparison in tx.comparisons.open():
        orders = tx.orders.wanted(comparison=comparison.id)
        if comparison.status == "running" and orders and all(order.over for order in orders):
            _judge(lab, tx, comparison, orders)


def _judge(lab: Lab, tx: Transaction, comparison: Comparison, orders: Sequence[Order]) -> None:
    base, head = tx.variants.get(comparison.base), tx.variants.get(comparison.head)
    builds = tx.builds.by_key([base.build_key, head.build_key])
    unbuilt = _unbuilt(base, head, builds, orders)
    if unbuilt:
        tx.comparisons.set_status(comparison.id, "failed", unbuilt)
        return
    images = [str(builds[variant.build_key].image_sha256) for variant in (base, head)]
    tip: dict[tuple[str, str, str], list[float]] = {}
    for testbox, spec in comparison.parts:
        tip |= _judge_part(lab, tx, comparison, testbox, spec, images)
    tx.comparisons.set_status(comparison.id, "done", _lab_trouble(orders))
    if comparison.kind == "watch":
        screen_tip(lab, tx, comparison, tip)


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
    lab: Lab,
    tx: Transaction,
    comparison: Comparison,
    testbox: str,
    spec: str,
    images: Sequence[str],
) -> dict[tuple[str, str, str], list[float]]:
    """Write the rows of one testbox; gives the boot means of head by (testbox, unit job, metric)."""
    box, unit_jobs = lab.testboxes.known(testbox), {job.name: job for job in tx.specs.get(spec)}
    series = series_for(lab.testboxes.known(testbox), comparison)
    sides, problems = [], []
    for image in images:
        values, trouble = boots_of(tx, image, testbox, spec, series, comparison.numbers)
        sides.append(values)
        problems.append(trouble)
    known = differences_of(tx, images, box, spec, series, comparison.numbers)
    rows = _in_order(lab, unit_jobs, sides)
    headlines = sum(metric_of(lab.programs, name).headline for _, name in rows)
    for unit_job, metric_name in rows:
        rule = rule_of(box, metric_of(lab.programs, metric_name), unit_jobs[unit_job])
        rule = replace(
            rule,
            headlines=headlines if metric_of(lab.programs, metric_name).headline else 0,
            # That these two kernels differ is known from the boots of a bisection.
            unimodal=rule.unimodal or comparison.kind in ("attribute", "gate"),
        )
        row = _row(
            lab, unit_jobs[unit_job], metric_name, sides, known, rule=rule, problems=problems
        )
        row = replace(row, testbox=box.name, label=box.label)
        tx.comparisons.add_row(comparison.id, spec, row)
    for unit_job in unit_jobs.keys() - {job for job, _ in [key for side in sides for key in side]}:
        tx.comparisons.add_row(
            comparison.id, spec, _nothing(lab, box, unit_jobs[unit_job], problems)
        )
    return {
        (testbox, *key): [sum(boot.values) / len(boot.values) for boot in boots if boot.values]
        for key, boots in sides[1].items()
    }


def _in_order(
    lab: Lab, unit_jobs: Mapping[str, UnitJob], sides: Sequence[Values]
) -> list[tuple[str, str]]:
    """(unit job, metric) in the order of the job file and of meta.yaml, without those that are only kept."""
    keys = {
        key
        for side in sides
        for key, boots in side.items()
        if key[0] in unit_jobs and _judged(metric_of(lab.programs, key[1]), boots)
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


def _runs_with(lab: Lab, job: UnitJob, metric: str) -> int:
    """How many runs of a boot should have the metric: one if its monitor has a run of its own."""
    owner = lab.programs.get(metric.partition(".")[0])
    return 1 if owner is not None and owner.when == "asked" else job.runs


def _row(
    lab: Lab,
    job: UnitJob,
    name: str,
    sides: Sequence[Values],
    known: Differences,
    *,
    rule: Rule,
    problems: Sequence[Sequence[str]],
) -> ComparisonRow:
    metric, known = metric_of(lab.programs, name), known.of(job)
    base, head = (
        known.with_lost(i, side.get((job.name, name), []), _runs_with(lab, job, name))
        for i, side in enumerate(sides)
    )
    judged = compare(base, head, rule, invalid=known.must)
    verdict, reason = judged.verdict, judged.reason
    if known.identical:
        verdict, reason = "same", "the two kernel images are identical byte for byte"
    elif known.told and judged.changed:
        reason = f"{reason}; {known.told}" if reason else known.told
    elif verdict == "invalid" and any(problems):
        reason = f"{reason}; {next(p for p in problems if p)[0]}"
    return replace(
        judged,
        unit_job=job.name,
        metric=name,
        unit=metric.unit,
        verdict=verdict,
        reason=reason,
        problems=(*problems[0][:3], *problems[1][:3]),
        headline=metric.headline,
    )


def _nothing(
    lab: Lab, box: Testbox, job: UnitJob, problems: Sequence[Sequence[str]]
) -> ComparisonRow:
    """A unit job of which neither side gave anything: a row that says so, under a headline metric's name."""
    metric = next(
        metric for metric in lab.programs[job.program].metrics.values() if metric.headline
    )
    told = [problem for side in problems for problem in side]
    return ComparisonRow(
        unit_job=job.name,
        testbox=box.name,
        label=box.label,
        metric=metric.name,
        unit=metric.unit,
        klass=metric.klass,
        better=metric.better,
        base=NO_BOOTS,
        head=NO_BOOTS,
        change_pct=None,
        interval_pct=None,
        verdict="invalid",
        reason="no run of either kernel gave a result" + (f"; {told[0]}" if told else ""),
        min_effect_pct=metric.min_effect(job.params),
        problems=tuple(told[:6]),
        headline=True,
    )
