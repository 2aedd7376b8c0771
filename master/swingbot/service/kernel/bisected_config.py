"""How the configuration of the kernel changed over the commits of a bisection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from swingbot.core.model.documents import Bisection, ConfigChange
from swingbot.service.kernel.compare import config_change
from swingbot.service.ports.kernels import KernelRecords

MOST_CULPRITS: Final = 4  # whose kernels are compared with those of their parents


class BuildReads(Protocol):
    """A read model, given an open connection."""

    def kernel_builds(self, conn: Any, keys: Iterable[str]) -> dict[str, dict[str, Any]]: ...


def config_changes(
    read: BuildReads, kernels: KernelRecords, conn: Any, bisection: Bisection
) -> list[ConfigChange]:
    """Compare the kernels of the two ends, and that of each culprit with that of the commit before
    it; pairs with a kernel that was not configured are left out.
    """
    points = bisection["points"]
    pairs = [(points[at], points[to]) for at, to in dict.fromkeys(_pairs(bisection))]
    keys = {point["build_key"] for pair in pairs for point in pair}
    builds = read.kernel_builds(conn, sorted(keys))
    changes: list[ConfigChange] = []
    for base, head in pairs:
        sides = (builds.get(point["build_key"]) for point in (base, head))
        config = config_change(kernels, *sides)
        if config is not None:
            changes.append({"base": base["commit"], "head": head["commit"], "config": config})
    return changes


def _pairs(bisection: Bisection) -> Iterator[tuple[int, int]]:
    last = len(bisection["points"]) - 1
    if last > 0:
        yield 0, last
    named = [culprit["commit"] for culprit in bisection["culprits"][:MOST_CULPRITS]]
    for point in bisection["points"][1:]:
        if point["commit"] in named:
            yield point["idx"] - 1, point["idx"]
