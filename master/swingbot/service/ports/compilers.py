"""The compilers that build workers announced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from swingbot.core.model.records import WorkerCompiler
from swingbot_jobs.contract.compiler import Compiler


class Compilers(Protocol):
    """The compilers that build workers announced."""

    def announce(self, worker: str, compilers: Sequence[Compiler]) -> None:
        """Replace the compilers of `worker`; an empty list leaves it with none."""

    def keep(self, workers: Collection[str]) -> None:
        """Delete the compilers of all workers that are not in `workers`."""

    def all(self) -> list[WorkerCompiler]:
        """Return the compilers of all workers, by worker and name."""

    def of_builds(self) -> dict[int, str]:
        """Return the compiler of each open build order, by order number."""

    def under_way(self) -> dict[str, int]:
        """Return the number of open build dispatches by compiler; compilers without one are
        absent.
        """
