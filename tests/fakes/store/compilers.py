"""The compilers of build workers, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from swingbot.core.model.records import WorkerCompiler
from swingbot_jobs.contract.compiler import Compiler
from tests.fakes.store.tables import Noun

OPEN = ("waiting", "ready", "running")


class Compilers(Noun):
    def announce(self, worker: str, compilers: Sequence[Compiler]) -> None:
        for key in [key for key in self.db.compilers if key[0] == worker]:
            del self.db.compilers[key]
        for one in compilers:
            self.db.compilers[worker, one.name] = WorkerCompiler(
                worker=worker, name=one.name, version=one.version, problem=one.problem
            )

    def keep(self, workers: Collection[str]) -> None:
        for key in [key for key in self.db.compilers if key[0] not in workers]:
            del self.db.compilers[key]

    def all(self) -> list[WorkerCompiler]:
        return [one for _, one in sorted(self.db.compilers.items())]

    def of_builds(self) -> dict[int, str]:
        return {
            row.order.id: self.db.variants[row.order.variant].compiler
            for row in self.db.orders.values()
            if row.order.kind == "build" and row.order.state in OPEN
        }

    def under_way(self) -> dict[str, int]:
        orders = [
            self.db.orders[self.db.attempts[one.attempt].order].order
            for one in self.db.dispatches.values()
            if one.state != "over"
        ]
        return dict(
            Counter(self.db.variants[o.variant].compiler for o in orders if o.kind == "build")
        )
