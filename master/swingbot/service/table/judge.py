"""Judge a comparison when all of its orders have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow, Key
from swingbot.core.model.noise import NoiseRecord
from swingbot.core.model.records import UNBUILT, Comparison, Order, Variant
from swingbot.core.plan.aliases import with_aliases
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.stats.looks import Look, keyed
from swingbot.core.stats.rows import Rule
from swingbot.core.table.rows import (
    MeasuredArm,
    MetricKey,
    TestboxRule,
    built_pairs,
    in_parts,
    metrics_in_order,
    rows_without_aliases,
    rows_without_numbers,
)
from swingbot.core.table.strongest import strongest
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.faults import Faults
from swingbot.service.ports import Catalogue, Git, GitError, Lab, Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.noise import Noise
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.variants import Variants
from swingbot.service.result.boots import measured_boots
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, Program
from swingbot_jobs.testbox.definition import Testbox

HAND_OUT_ROWS: Final = 250  # half a second of computing


def judge_comparisons(lab: Lab, faults: Faults, hand_out: Callable[[], None]) -> None:
    """Judge each running comparison whose orders have all ended.

    It is loaded in one transaction and recorded in another. Between the parts of the work
    `hand_out` is called, so that testboxes get orders while a large table is judged.
    """
    with lab.transaction("find comparisons to judge") as tx:
        unfinished = tx.orders.unfinished_comparisons()
        ended = [
            comparison.id
            for comparison in tx.comparisons.open()
            if comparison.status == "running" and comparison.id not in unfinished
        ]
    breaks = _Breaks(hand_out)
    for number in ended:
        with faults.of(f"comparison c{number}"):
            with lab.transaction("load comparison") as tx:
                measured = _measured(lab.tools.git, lab.catalogue, tx, number)
            if measured is None:
                continue
            rows, unjudged = _judge(measured.parts, breaks)
            with lab.transaction("judge comparison") as tx:
                if tx.comparisons.get(number) != measured.comparison:
                    continue  # a person was faster
                tx.comparisons.replace_rows(number, rows, unjudged)
                tx.comparisons.set_status(number, "done", measured.trouble)
                if measured.comparison.kind == "watch":
                    screen_tip(
                        lab.tools.git,
                        lab.catalogue,
                        lab.settings,
                        tx,
                        measured.comparison,
                        _tip_means(measured.parts),
                    )


@dataclass(slots=True)
class _Breaks:
    """Calls `hand_out` each time that HAND_OUT_ROWS were judged."""

    hand_out: Callable[[], None]
    rows: int = 0

    def judged(self, rows: int) -> None:
        self.rows += rows
        if self.rows >= HAND_OUT_ROWS:
            self.rows = 0
            self.hand_out()


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredPart:
    """The arms of a comparison as measured on one testbox with one spec, and how to judge them."""

    spec: str
    arms: Sequence[MeasuredArm]
    rule: TestboxRule


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredTable:
    comparison: Comparison
    trouble: str | None  # orders lost to the lab
    parts: Sequence[_MeasuredPart]


def _judge(
    parts: Sequence[_MeasuredPart], breaks: _Breaks
) -> tuple[list[tuple[str, ComparisonRow]], int]:
    """Return the rows with their specs, and how many counters have none."""
    rows: list[tuple[str, ComparisonRow]] = []
    unjudged = 0
    for part in parts:
        metrics = metrics_in_order(part.arms, part.rule)
        judged = strongest(part.arms, built_pairs(part.arms, part.rule), metrics, part.rule)
        unjudged += len(metrics) - len(judged)
        of_part: list[ComparisonRow] = []
        for rule in in_parts(part.rule, judged):
            some = list(rows_without_aliases(part.arms, rule))
            breaks.judged(len(some))
            of_part += some
        of_part = list(with_aliases(of_part, part.rule.jobs, part.rule.programs))
        of_part += rows_without_numbers(part.arms, part.rule)
        rows += [(part.spec, row) for row in of_part]
    return rows, unjudged


def _measured(
    git: Git, catalogue: Catalogue, tx: Transaction, number: int
) -> _MeasuredTable | None:
    """Return what a running comparison measured; None if it failed or has no orders."""
    comparison = tx.comparisons.get(number)
    if comparison is None or not (orders := tx.orders.wanted(comparison=number)):
        return None
    arms = _arms(git, tx.variants, tx.builds, comparison, orders)
    unbuilt = [arm for arm in arms if arm.image is None]
    if unbuilt and len(arms) - len(unbuilt) < 2:
        why = f"{unbuilt[0].name} {unbuilt[0].commit[:12]} {unbuilt[0].trouble}"
        tx.comparisons.set_status(number, "failed", why)
        return None
    look = _look(tx.comparisons, comparison)
    parts = []
    for testbox, spec in comparison.parts:
        definition = catalogue.testboxes.known(testbox)
        booted = [
            _booted(tx.specs, tx.boots, arm, own.spec(spec), definition, comparison)
            for arm, own in zip(arms, comparison.arms, strict=True)
        ]
        jobs = tx.specs.get(spec)
        records = _noise_records(catalogue.programs, tx.noise, testbox, booted)
        rule = _rule(catalogue.programs, records, comparison, definition, jobs, look)
        parts.append(_MeasuredPart(spec=spec, arms=booted, rule=rule))
    return _MeasuredTable(comparison=comparison, trouble=_lab_trouble(orders), parts=parts)


def _noise_records(
    programs: Mapping[str, Program], noise: Noise, testbox: str, arms: Sequence[MeasuredArm]
) -> dict[MetricKey, NoiseRecord | None]:
    """Return the noise records of the benchmark metrics that were measured."""
    measured = {key for arm in arms for key in arm.measured}
    return {
        (job, name): noise.get(testbox, job, name)
        for job, name in sorted(measured)
        if metric_of(programs, name).klass == "benchmark"
    }


def _booted(
    specs: Specs,
    boots: Boots,
    arm: MeasuredArm,
    spec: str,
    testbox: Testbox,
    comparison: Comparison,
) -> MeasuredArm:
    """Return the arm with its boots of `spec` on a testbox."""
    jobs = specs.get(spec)
    if arm.image is None:
        return replace(arm, spec=spec, jobs=jobs)
    measured, problems = measured_boots(
        specs,
        boots,
        arm.image,
        testbox.name,
        spec,
        series_for(testbox, comparison),
        comparison.numbers,
    )
    return replace(arm, spec=spec, jobs=jobs, boots=measured, problems=problems)


def _rule(
    programs: Mapping[str, Program],
    records: Mapping[MetricKey, NoiseRecord | None],
    comparison: Comparison,
    testbox: Testbox,
    jobs: Sequence[UnitJob],
    look: Look,
) -> TestboxRule:
    def of_metric(job: UnitJob, metric: Metric) -> Rule:
        record = records.get((job.name, metric.name))
        rule = rule_of(testbox, metric, job, record, comparison.min_effect_pct)
        # The boots of a bisection have already shown that these two kernels differ.
        proven = comparison.kind in ("attribute", "gate")
        return replace(rule, unimodal=rule.unimodal or proven)

    return TestboxRule(
        testbox=testbox.name,
        label=testbox.label,
        paired=testbox.repeatable,
        jobs={job.name: job for job in jobs},
        programs=programs,
        of_metric=of_metric,
        against=comparison.against,
        look=look,
    )


def _tip_means(parts: Sequence[_MeasuredPart]) -> dict[Key, list[float]]:
    """Return the boot means of the last arms by (testbox, unit job, metric)."""
    return {
        (part.rule.testbox, *key): [
            fmean(boot.values) for boot in part.arms[-1].runs_of(key) if boot.values
        ]
        for part in parts
        for key in part.arms[-1].measured
    }


def _look(comparisons: Comparisons, comparison: Comparison) -> Look:
    return Look(
        number=comparison.looks,
        stated=comparison.looks_stated,
        earlier={keyed(row): row for row in comparisons.rows(comparison.id)},
    )


def _arms(
    git: Git,
    variants: Variants,
    builds: KernelBuilds,
    comparison: Comparison,
    orders: Sequence[Order],
) -> list[MeasuredArm]:
    """Return the arms with their kernels, without boots."""
    kernels = [variants.get(arm.variant) for arm in comparison.arms]
    built = builds.by_key([kernel.build_key for kernel in kernels])
    arms = []
    for arm, kernel in zip(comparison.arms, kernels, strict=True):
        build = built.get(kernel.build_key)
        trouble = None
        if build is None:
            trouble = f"was not built: {_lost(kernel, orders)}"
        elif build.status == "failed":
            trouble = build.trouble
        arms.append(
            MeasuredArm(
                name=arm.name,
                axes=arm.axes,
                commit=kernel.commit,
                parents=_parents(git, comparison, kernel.commit),
                image=None if build is None or trouble else str(build.image_sha256),
                trouble=trouble,
                first_k=comparison.first_k + arm.from_block,
            )
        )
    return arms


def _parents(git: Git, comparison: Comparison, commit: str) -> list[str]:
    """Return the parents of a commit in a table whose rows follow each other; else nothing."""
    if "above" not in comparison.against:
        return []
    try:
        return list(git.facts(commit).parents)
    except GitError:
        return []


def _lost(variant: Variant, orders: Sequence[Order]) -> str:
    """Return why the lab could not build a kernel, from its build order."""
    for order in orders:
        if (order.kind, order.build_key, order.state) == ("build", variant.build_key, "failed"):
            return order.reason or "its order failed"
    return "its order was cancelled"


def _lab_trouble(orders: Sequence[Order]) -> str | None:
    unbuilt = f"the kernel {UNBUILT}"  # the patch's doing, not the lab's
    failed = [
        order
        for order in orders
        if order.state == "failed" and not (order.reason or "").startswith(unbuilt)
    ]
    return (
        f"{len(failed)} of {len(orders)} orders were lost to infrastructure failures, the "
        f"first: {failed[0].reason}"
        if failed
        else None
    )
