"""What kernel builds will take, from where the work trees of the build workers stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swingbot.core.model.records import Variant
from swingbot.core.plan.costs import PAST_BUILDS, ChangedFiles, Costs, change_of, learn, standing
from swingbot.service.ports import GitError, Lab, Transaction
from swingbot.service.ports.builds import KernelBuilds


def foresee_open_builds(lab: Lab, tx: Transaction) -> None:
    """Foresee the builds that were ordered since the last round, behind those that are in the queue already."""
    orders = [order for order in tx.orders.open() if order.kind == "build"]
    keys = {order.build_key for order in orders}
    if keys - tx.builds.forecasts(keys).keys() - tx.builds.by_key(keys).keys():
        foresee_builds(lab, tx, [tx.variants.get(order.variant) for order in orders])


def foresee_builds(lab: Lab, tx: Transaction, kernels: Sequence[Variant]) -> None:
    """Store what each of `kernels` that is not built takes, one after the other."""
    built = tx.builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in built}
    seconds = build_seconds(lab, tx.builds, list(missing.values()))
    for key, each in zip(missing, seconds, strict=True):
        tx.builds.put_forecast(key, each)


def build_seconds(lab: Lab, builds: KernelBuilds, kernels: Sequence[Variant]) -> list[float]:
    """Seconds of each build, one after the other: each begins where the one before left the work tree."""
    found = []
    before: Variant | None = None
    past: dict[tuple[str, str], tuple[Costs, list[str]]] = {}
    for kernel in kernels:
        configuration = kernel.kconfig, kernel.compiler
        if configuration not in past:
            past[configuration] = _past(lab, builds, *configuration)
        learnt, trees = past[configuration]
        beside = before is not None and (before.kconfig, before.compiler) == configuration
        stands = [before.commit] if before is not None and beside else trees
        found.append(_cheapest(lab, learnt, stands, kernel.commit))
        before = kernel
    return found


def _past(lab: Lab, builds: KernelBuilds, kconfig: str, compiler: str) -> tuple[Costs, list[str]]:
    """What builds of a configuration cost, and the commits at which its work trees stand."""
    history = builds.past(kconfig, compiler, PAST_BUILDS)
    return learn(history, lambda old, new: _between(lab, old, new)), standing(history)


def _cheapest(lab: Lab, learnt: Costs, trees: Iterable[str], commit: str) -> float:
    """Of all work trees there are; another layout of what a tree stands at is a matter of linking."""
    changes: list[ChangedFiles | None] = []
    for stands in trees:
        paths = _between(lab, stands, commit)
        changes.append(None if paths is None else change_of(paths))
    return min((learnt.of(change) for change in changes), default=learnt.of(None))


def _between(lab: Lab, old: str, new: str) -> Iterable[str] | None:
    try:
        return lab.git.paths_between(old, new)
    except GitError:
        return None
