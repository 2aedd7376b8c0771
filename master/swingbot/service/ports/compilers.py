"""The compilers that build workers have, as they announced them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from swingbot.core.model.records import WorkerCompiler
from swingbot_jobs.contract.compiler import Compiler


class Compilers(Protocol):
    """The compilers that build workers have, as they announced them."""

    def announce(self, worker: str, compilers: Sequence[Compiler]) -> None:
        """Replace the compilers of `worker`; an empty list leaves it with none."""

    def keep(self, workers: Collection[str]) -> None:
        """Forget the compilers of every worker that is not one of `workers`."""

    def all(self) -> list[WorkerCompiler]:
        """The compilers of all workers, by worker and name."""

    def of_builds(self) -> dict[int, str]:
        """The compiler of each open build order, by the order's number."""

    def under_way(self) -> dict[str, int]:
        """How many build dispatches are not over, by compiler; compilers without one are absent."""
