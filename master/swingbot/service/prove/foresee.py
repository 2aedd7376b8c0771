"""What the gates of a culprit will cost, said before any work is spent on them: kernels to build, boots, seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from swingbot.core.model.records import Variant
from swingbot.core.plan.costs import PAST_BUILDS, Change, Costs, change_of, learn, standing
from swingbot.service.ports import GitError, Lab, Transaction
from swingbot.service.ports.builds import KernelBuilds

USUAL_BOOT_SECONDS: Final = 10.0  # of a testbox that nothing is known of yet


def foresee(
    lab: Lab, tx: Transaction, kernels: Sequence[Variant], testbox: str, spec: str, boots: int
) -> dict[str, float]:
    """{"builds", "boots", "seconds"} of booting each of `kernels` `boots` times; boots that are known and shared still count, so it is an upper bound."""
    known = tx.builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in known}
    each = tx.boots.seconds(testbox, spec) or USUAL_BOOT_SECONDS
    return {
        "builds": len(missing),
        "boots": boots * len(kernels),
        "seconds": round(
            sum(build_seconds(lab, tx.builds, list(missing.values())))
            + each * boots * len(kernels),
            1,
        ),
    }


def build_seconds(lab: Lab, builds: KernelBuilds, kernels: Sequence[Variant]) -> list[float]:
    """Seconds of each build, one after the other: each begins where the one before left the work tree."""
    found = []
    before: Variant | None = None
    for kernel in kernels:
        history = builds.past(kernel.kconfig, kernel.compiler, PAST_BUILDS)
        learnt = learn(history, lambda old, new: _between(lab, old, new))
        beside = before is not None and before.kconfig == kernel.kconfig
        trees = [before.commit] if before is not None and beside else standing(history)
        found.append(_cheapest(lab, learnt, trees, kernel.commit))
        before = kernel
    return found


def _cheapest(lab: Lab, learnt: Costs, trees: Iterable[str], commit: str) -> float:
    """Of all work trees there are; another layout of what a tree stands at is a matter of linking."""
    changes: list[Change | None] = []
    for stands in trees:
        paths = _between(lab, stands, commit)
        changes.append(None if paths is None else change_of(paths))
    return min((learnt.of(change) for change in changes), default=learnt.of(None))


def _between(lab: Lab, old: str, new: str) -> Iterable[str] | None:
    try:
        return lab.git.paths_between(old, new)
    except GitError:
        return None
