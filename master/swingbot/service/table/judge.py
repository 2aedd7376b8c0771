"""Judge a comparison when all of its orders have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from swingbot.core.model.comparison_row import Key
from swingbot.core.model.records import UNBUILT, Comparison, Order, Variant
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.metric_rules import rule_of
from swingbot.core.stats.looks import Look, keyed
from swingbot.core.stats.rows import Rule
from swingbot.core.table.rows import (
    MeasuredArm,
    TestboxRule,
    rows_of,
    rows_without_numbers,
)
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.ports import Catalogue, Git, GitError, Lab, LabSettings, Transaction
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


def judge_comparisons(lab: Lab, tx: Transaction) -> None:
    """Judge each running comparison whose orders have all ended."""
    unfinished = tx.orders.unfinished_comparisons()
    for comparison in tx.comparisons.open():
        if comparison.status != "running" or comparison.id in unfinished:
            continue
        if orders := tx.orders.wanted(comparison=comparison.id):
            arms = _arms(lab.tools.git, tx.variants, tx.builds, comparison, orders)
            _judge(lab.tools.git, lab.catalogue, lab.settings, tx, comparison, orders, arms)


def _judge(
    git: Git,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    comparison: Comparison,
    orders: Sequence[Order],
    arms: Sequence[MeasuredArm],
) -> None:
    unbuilt = [arm for arm in arms if arm.image is None]
    if unbuilt and len(arms) - len(unbuilt) < 2:
        why = f"{unbuilt[0].name} {unbuilt[0].commit[:12]} {unbuilt[0].trouble}"
        tx.comparisons.set_status(comparison.id, "failed", why)
        return
    tip: dict[Key, list[float]] = {}
    look = _look(tx.comparisons, comparison)
    tx.comparisons.withdraw_rows(comparison.id)
    for testbox, spec in comparison.parts:
        definition = catalogue.testboxes.known(testbox)
        booted = [
            _booted(tx.specs, tx.boots, arm, own.spec(spec), definition, comparison)
            for arm, own in zip(arms, comparison.arms, strict=True)
        ]
        rule = _rule(catalogue.programs, tx.noise, comparison, definition, tx.specs.get(spec), look)
        for row in (*rows_of(booted, rule), *rows_without_numbers(booted, rule)):
            tx.comparisons.add_row(comparison.id, spec, row)
        tip |= _means(testbox, booted[-1])
    tx.comparisons.set_status(comparison.id, "done", _lab_trouble(orders))
    if comparison.kind == "watch":
        screen_tip(git, catalogue, settings, tx, comparison, tip)


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
    noise: Noise,
    comparison: Comparison,
    testbox: Testbox,
    jobs: Sequence[UnitJob],
    look: Look,
) -> TestboxRule:
    def of_metric(job: UnitJob, metric: Metric) -> Rule:
        benchmark = metric.klass == "benchmark"
        record = noise.get(testbox.name, job.name, metric.name) if benchmark else None
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


def _means(testbox: str, arm: MeasuredArm) -> dict[Key, list[float]]:
    """Return the boot means of an arm by (testbox, unit job, metric)."""
    return {
        (testbox, *key): [fmean(boot.values) for boot in arm.runs_of(key) if boot.values]
        for key in arm.measured
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
            trouble = f"could not be built: {_lost(kernel, orders)}"
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
