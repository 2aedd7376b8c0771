"""What a question costs: time on the wall, and processor time of this process and of PostgreSQL.

Processor time does not depend on what else the machine does, so it is the figure to compare where
the machine is not quiet. Parallel workers of a query are not in it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

FEW, SLOW_SECONDS = 3, 20.0  # questions that take long are asked less often
NANOSECONDS = 1_000_000


@dataclass(kw_only=True)
class Costs:
    """Of one question, asked several times: ms, and the rows of the last answer."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    rows: int = 0

    def facts(self, name: str) -> dict[str, Any]:
        return {
            "query": name,
            "n": len(self.wall),
            "rows": self.rows,
            "first_ms": self.wall[0] if self.wall else None,
            "p50_ms": quantile(self.wall[1:] or self.wall, 0.5),
            "p95_ms": quantile(self.wall[1:] or self.wall, 0.95),
            "cpu_p50_ms": quantile(self.cpu[1:] or self.cpu, 0.5),
            "cpu_p95_ms": quantile(self.cpu[1:] or self.cpu, 0.95),
        }


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


class Meter:
    """Measures on a local server; `engine` is that of the questions, or of another pool there."""

    def __init__(self, engine: sa.Engine) -> None:
        self._admin = engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        self._admin.close()

    def _used(self) -> dict[int, int]:
        """Nanoseconds of the processor by backend of this database, without parallel workers."""
        pids = self._admin.execute(
            sa.text(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        ).scalars()
        used = {}
        for pid in pids:
            try:
                used[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
            except FileNotFoundError:  # it ended
                continue
        return used

    def ask(self, costs: Costs, question: Callable[[], int]) -> None:
        """Ask once; `question` gives the number of rows of its answer."""
        before, ours, began = self._used(), time.process_time(), time.perf_counter()
        costs.rows = question()
        wall, cpu = time.perf_counter() - began, time.process_time() - ours
        after = self._used()
        served = sum(used - before.get(pid, 0) for pid, used in after.items())
        costs.wall.append(1000 * wall)
        costs.cpu.append(1000 * cpu + served / NANOSECONDS)

    def repeat(self, question: Callable[[], int], times: int) -> Costs:
        """Ask a first time and `times` times again, but not for much longer than SLOW_SECONDS.

        A question whose statement is cancelled has no times.
        """
        costs, began = Costs(), time.perf_counter()
        try:
            while len(costs.wall) <= times and (
                len(costs.wall) < FEW or time.perf_counter() - began < SLOW_SECONDS
            ):
                self.ask(costs, question)
        except sa.exc.OperationalError:
            return Costs()
        return costs
