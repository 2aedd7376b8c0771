"""Boot a known kernel again when a testbox is idle, to extend its noise record and to detect a
testbox that moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from swingbot.core.model.records import NewComparison, base_and_head
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.boot_numbers import NIGHTS, BootPurpose
from swingbot.service.ports import LabSettings, Transaction
from swingbot.service.ports.anchors import AnchorKernel, Anchors
from swingbot.service.ports.comparisons import Comparisons
from swingbot_jobs.testbox.definition import Testbox

# Boots per anchor: two show whether boots differ; on a repeatable testbox they are the same two
# each time.
BOOTS: Final = 2
# A quarantined testbox gets its next anchor after this many seconds of rest, regardless of
# `testboxes.idle_aa_minutes`.
RETRY_SECONDS: Final = 600.0


def boot_anchors(present: Mapping[str, Testbox], settings: LabSettings, tx: Transaction) -> None:
    """Order an anchor for each testbox that has been idle long enough, and for each that an anchor
    quarantined.
    """
    reasons = {name: reason for name, reason in tx.testboxes.reasons().items() if name in present}
    active = [name for name, (state, _) in reasons.items() if state == "active"]
    moved = [
        name
        for name, (state, why) in reasons.items()
        if state == "quarantined" and (why or "").startswith(MOVED)
    ]
    for names, queue, needed in (
        (active, True, settings.idle_aa_seconds),
        (moved, False, RETRY_SECONDS),
    ):
        for name, rest in tx.testboxes.idle_seconds(names, queue=queue).items():
            if 0 < needed <= rest:
                order_anchor(tx.comparisons, tx.anchors, name)


def order_anchor(comparisons: Comparisons, anchors: Anchors, testbox: str) -> None:
    """Boot the kernel of the last anchor again, so that results can be compared; without one, the
    base of the latest comparison of a watched tree.

    Orders nothing if an anchor is in progress, or if no kernel is known yet.
    """
    known = anchors.kernel(testbox)
    if known is not None and not anchors.of_testbox(testbox, "waiting", "running"):
        compare_anchor(comparisons, anchors, testbox, known, BOOTS)


def compare_anchor(
    comparisons: Comparisons,
    anchors: Anchors,
    testbox: str,
    kernel: AnchorKernel,
    boots: int,
) -> None:
    """Order `boots` boots of one kernel (tree, variant, spec) as both sides of a comparison.

    They have the boot numbers of the kernel's last anchor, which they are compared with: another
    perturbation would look like a testbox that moved.
    """
    tree, variant, spec = kernel
    parts = ((testbox, spec),)
    last = next(
        (
            anchor
            for anchor in reversed(anchors.of_testbox(testbox, "done"))
            if anchor.base == variant and anchor.parts == parts and anchor.purpose not in NIGHTS
        ),
        None,
    )
    comparisons.add(
        NewComparison(
            kind="anchor",
            tree=tree,
            arms=base_and_head(variant, variant),
            boots=boots,
            parts=parts,
            first_k=0 if last is None else last.first_k,
            purpose=BootPurpose.ANCHOR if last is None else last.purpose,
        )
    )
