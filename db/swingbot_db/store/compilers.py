"""Compilers of build workers, as announced by them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from swingbot.core.model.records import WorkerCompiler
from swingbot_db.store.rows import Rows, records
from swingbot_jobs.contract.compiler import Compiler

_PUT: Final = (
    "INSERT INTO worker_compiler AS c (worker, name, version, problem)"
    " VALUES (:worker, :name, :version, :problem) ON CONFLICT (worker, name) DO UPDATE"
    " SET version = EXCLUDED.version, problem = EXCLUDED.problem, announced_at = now()"
)
_ALL: Final = (
    "SELECT worker, name, version, problem FROM worker_compiler"
    ' ORDER BY worker COLLATE "C", name COLLATE "C"'
)
_OF_BUILDS: Final = (
    "SELECT o.id, v.compiler FROM orders o JOIN variant v ON v.id = o.variant"
    " WHERE o.kind = 'build' AND o.state IN ('waiting', 'ready', 'running')"
)
_UNDER_WAY: Final = (
    "SELECT v.compiler, count(*) AS n FROM dispatch d JOIN attempt a ON a.id = d.attempt"
    " JOIN orders o ON o.id = a.order_id JOIN variant v ON v.id = o.variant"
    " WHERE d.state <> 'over' AND o.kind = 'build' GROUP BY v.compiler"
)


class Compilers(Rows):
    def announce(self, worker: str, compilers: Sequence[Compiler]) -> None:
        self.execute(
            "DELETE FROM worker_compiler WHERE worker = :worker AND name <> ALL(:names)",
            worker=worker,
            names=[one.name for one in compilers],
        )
        for one in compilers:
            self.execute(
                _PUT, worker=worker, name=one.name, version=one.version, problem=one.problem
            )

    def keep(self, workers: Collection[str]) -> None:
        self.execute("DELETE FROM worker_compiler WHERE worker <> ALL(:names)", names=list(workers))

    def all(self) -> list[WorkerCompiler]:
        return records(WorkerCompiler, self.select(_ALL))

    def of_builds(self) -> dict[int, str]:
        return {row.id: row.compiler for row in self.select(_OF_BUILDS)}

    def under_way(self) -> dict[str, int]:
        return {row.compiler: row.n for row in self.select(_UNDER_WAY)}
