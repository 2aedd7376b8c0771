"""Forecast how long kernel builds take, from the commits currently checked out on the build
workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swingbot.core.model.records import Variant
from swingbot.core.plan.costs import PAST_BUILDS, ChangedFiles, Costs, change_of, learn, standing
from swingbot.service.ports import Git, GitError, Transaction
from swingbot.service.ports.builds import KernelBuilds


def foresee_open_builds(git: Git, tx: Transaction) -> None:
    """Forecast the builds ordered since the last round, each behind the one queued before it.

    Earlier forecasts stay as they are.
    """
    queued = tx.orders.open("build")
    keys = {order.build_key for order in queued}
    new = keys - tx.builds.forecasts(keys).keys() - tx.builds.by_key(keys).keys()
    queue = [
        (
            tx.variants.get(before.variant) if before is not None else None,
            tx.variants.get(order.variant),
        )
        for before, order in zip([None, *queued], queued, strict=False)
        if order.build_key in new
    ]
    seconds = _seconds_behind(git, tx.builds, queue)
    tx.builds.put_forecasts(
        {kernel.build_key: each for (_, kernel), each in zip(queue, seconds, strict=True)}
    )


def foresee_builds(git: Git, builds: KernelBuilds, kernels: Sequence[Variant]) -> None:
    """Store the forecast for each kernel in `kernels` that is not built, as if built one after the
    other.
    """
    built = builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in built}
    seconds = build_seconds(git, builds, list(missing.values()))
    builds.put_forecasts(dict(zip(missing, seconds, strict=True)))


def build_seconds(git: Git, builds: KernelBuilds, kernels: Sequence[Variant]) -> list[float]:
    """Return the build time of each kernel in seconds, built in sequence: each build starts from
    the work tree of the one before.
    """
    return _seconds_behind(git, builds, list(zip([None, *kernels], kernels, strict=False)))


def _seconds_behind(
    git: Git, builds: KernelBuilds, queue: Sequence[tuple[Variant | None, Variant]]
) -> list[float]:
    """Return the build time of the second kernel of each pair in seconds; the first is built just
    before it.
    """
    seconds = []
    past: dict[tuple[str, str], tuple[Costs, list[str]]] = {}
    for before, kernel in queue:
        configuration = kernel.kconfig, kernel.compiler
        if configuration not in past:
            past[configuration] = _past(git, builds, *configuration)
        learnt, trees = past[configuration]
        beside = before is not None and (before.kconfig, before.compiler) == configuration
        stands = [before.commit] if before is not None and beside else trees
        seconds.append(_cheapest(git, learnt, stands, kernel.commit))
    return seconds


def _past(git: Git, builds: KernelBuilds, kconfig: str, compiler: str) -> tuple[Costs, list[str]]:
    """Return the build costs of a configuration, and the commits that its work trees have checked
    out.
    """
    history = builds.past(kconfig, compiler, PAST_BUILDS)
    return learn(history, lambda old, new: _between(git, old, new)), standing(history)


def _cheapest(git: Git, learnt: Costs, trees: Iterable[str], commit: str) -> float:
    """Return the lowest cost over all work trees, in seconds.

    Another layout of the checked-out commit only needs linking.
    """
    changes: list[ChangedFiles | None] = []
    for stands in trees:
        paths = _between(git, stands, commit)
        changes.append(None if paths is None else change_of(paths))
    return min((learnt.of(change) for change in changes), default=learnt.of(None))


def _between(git: Git, old: str, new: str) -> Iterable[str] | None:
    try:
        return git.paths_between(old, new)
    except GitError:
        return None
