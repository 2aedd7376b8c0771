"""Judge a comparison when all of its orders have ended."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.model.comparison_row import Key
from swingbot.core.model.records import Comparison, Order, Variant
from swingbot.core.stats.looks import Look, keyed
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.ports import GitError, Lab, Transaction
from swingbot.service.table.rows import ArmKernel, TestboxPart


def judge_comparisons(lab: Lab, tx: Transaction) -> None:
    """Judge each running comparison whose orders have all ended."""
    unfinished = tx.orders.unfinished_comparisons()
    for comparison in tx.comparisons.open():
        if comparison.status != "running" or comparison.id in unfinished:
            continue
        if orders := tx.orders.wanted(comparison=comparison.id):
            _judge(lab, tx, comparison, orders)


def _judge(lab: Lab, tx: Transaction, comparison: Comparison, orders: Sequence[Order]) -> None:
    kernels = _kernels(lab, tx, comparison, orders)
    unbuilt = [kernel for kernel in kernels if kernel.image is None]
    if unbuilt and len(kernels) - len(unbuilt) < 2:
        why = f"{unbuilt[0].arm.name} {unbuilt[0].commit[:12]} {unbuilt[0].trouble}"
        tx.comparisons.set_status(comparison.id, "failed", why)
        return
    tip: dict[Key, list[float]] = {}
    look = _look(tx, comparison)
    tx.comparisons.withdraw_rows(comparison.id)
    for testbox, spec in comparison.parts:
        part = TestboxPart(
            lab=lab, tx=tx, comparison=comparison, testbox=testbox, spec=spec, look=look
        )
        arms = [part.measured(kernel) for kernel in kernels]
        for row in part.rows(kernels, arms):
            tx.comparisons.add_row(comparison.id, spec, row)
        tip |= part.means(arms[-1])
    tx.comparisons.set_status(comparison.id, "done", _lab_trouble(orders))
    if comparison.kind == "watch":
        screen_tip(lab, tx, comparison, tip)


def _look(tx: Transaction, comparison: Comparison) -> Look:
    return Look(
        number=comparison.looks,
        stated=comparison.looks_stated,
        earlier={keyed(row): row for row in tx.comparisons.rows(comparison.id)},
    )


def _kernels(
    lab: Lab, tx: Transaction, comparison: Comparison, orders: Sequence[Order]
) -> list[ArmKernel]:
    variants = [tx.variants.get(arm.variant) for arm in comparison.arms]
    builds = tx.builds.by_key([variant.build_key for variant in variants])
    kernels = []
    for arm, variant in zip(comparison.arms, variants, strict=True):
        build = builds.get(variant.build_key)
        trouble = None
        if build is None:
            trouble = f"could not be built: {_lost(variant, orders)}"
        elif build.status == "failed":
            trouble = build.trouble
        image = None if build is None or trouble else str(build.image_sha256)
        kernels.append(
            ArmKernel(
                arm=arm,
                commit=variant.commit,
                parents=_parents(lab, comparison, variant.commit),
                image=image,
                trouble=trouble,
            )
        )
    return kernels


def _parents(lab: Lab, comparison: Comparison, commit: str) -> list[str]:
    """Return the parents of a commit in a table whose rows follow each other; else nothing."""
    if "above" not in comparison.against:
        return []
    try:
        return list(lab.tools.git.facts(commit).parents)
    except GitError:
        return []


def _lost(variant: Variant, orders: Sequence[Order]) -> str:
    """Return why the lab could not build a kernel, from its build order."""
    for order in orders:
        if (order.kind, order.build_key, order.state) == ("build", variant.build_key, "failed"):
            return order.reason or "its order failed"
    return "its order was cancelled"


def _lab_trouble(orders: Sequence[Order]) -> str | None:
    failed = [order for order in orders if order.state == "failed"]
    return (
        f"{len(failed)} of {len(orders)} orders were lost to infrastructure failures, the "
        f"first: {failed[0].reason}"
        if failed
        else None
    )
