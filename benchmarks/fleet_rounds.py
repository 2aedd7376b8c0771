"""How long each round of the loop takes, and each of its steps."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
import sqlalchemy as sa

from swingbot.service.ports import Transaction

FIRST: Final = "begin round"
INGEST: Final = ("find outcomes", "ingest outcome")
Begin = Callable[[str], AbstractContextManager[Transaction]]


@dataclass
class Round:
    """Times in seconds; `ended` on the clock of the epoch."""

    began: float
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of this process
    server_seconds: float = 0.0  # of the processor, used by this process's sessions
    idle_seconds: float = 0.0  # since the round before: mail and sleep
    steps: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    statements: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def busy_seconds(self) -> float:
        """What a round takes at least on a quiet machine: loop and server work in turn."""
        return self.cpu_seconds + self.server_seconds


class RoundClock:
    """Stands between the loop and its transactions. A step lasts from the end of the transaction
    before to the end of its own.

    Polls of trees run in threads beside the rounds: their processor time counts with the round
    during which it is used, their statements do not.
    """

    def __init__(self, engine: sa.Engine, begin: Begin) -> None:
        self._begin = begin
        self._statements = 0
        self._mark = self._cpu = 0.0
        self._served = 0.0
        self._sessions: set[int] = set()  # process ids
        self.rounds: list[Round] = []
        # when each transaction that dispatches began and ended, on the clock of the epoch
        self.dispatches: list[tuple[float, float]] = []
        sa.event.listen(engine, "before_cursor_execute", self._count)
        sa.event.listen(engine, "connect", self._connected)
        engine.dispose()  # sessions from before are not known

    def _count(self, *_: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._statements += 1

    def _connected(self, session: Any, _: Any) -> None:
        self._sessions.add(session.info.backend_pid)

    def _server_seconds(self) -> float:
        """Processor seconds of the open sessions of this process; 0 for a server elsewhere."""
        total = 0.0
        for session in tuple(self._sessions):
            with suppress(psutil.Error):
                times = psutil.Process(session).cpu_times()
                total += times.user + times.system
        return total

    @contextmanager
    def transaction(self, name: str) -> Iterator[Transaction]:
        if threading.current_thread() is not threading.main_thread():
            with self._begin(name) as tx:
                yield tx
            return
        if name == FIRST:
            now = time.perf_counter()
            ended = self.rounds[-1] if self.rounds else None
            idle = now - self._mark if ended else 0.0
            self.rounds.append(Round(began=time.time(), idle_seconds=idle))
            self._mark, self._cpu = now, time.process_time()
            self._served = self._server_seconds()
        before, began = self._statements, time.time()
        with self._begin(name) as tx:
            yield tx
        if name == "dispatch orders":
            self.dispatches.append((began, time.time()))
        if self.rounds:
            self._add("ingest outcomes" if name in INGEST else name, self._statements - before)

    def _add(self, step: str, statements: int) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        this = self.rounds[-1]
        this.steps[step] += now - self._mark
        this.statements[step] += statements
        this.seconds += now - self._mark
        this.cpu_seconds += cpu - self._cpu
        this.server_seconds = self._server_seconds() - self._served
        self._mark, self._cpu = now, cpu

    def facts(self) -> dict[str, Any]:
        """Figures of all complete rounds."""
        rounds = self.rounds[:-1] or self.rounds
        total = sum(one.seconds for one in rounds)
        names = {name for one in rounds for name in one.steps}
        spent = {name: sum(one.steps.get(name, 0.0) for one in rounds) for name in names}
        return {
            "count": len(rounds),
            "round": percentiles([one.seconds for one in rounds]),
            "processor, loop": percentiles([one.cpu_seconds for one in rounds]),
            "processor, its session": percentiles([one.server_seconds for one in rounds]),
            "processor, both": percentiles([one.busy_seconds for one in rounds]),
            "between rounds": percentiles([one.idle_seconds for one in rounds[1:]]),
            "statements": percentiles([float(sum(one.statements.values())) for one in rounds]),
            "steps": {
                name: percentiles([one.steps.get(name, 0.0) for one in rounds])
                | {
                    "share": spent[name] / total,
                    "statements": statistics.fmean(one.statements.get(name, 0) for one in rounds),
                }
                for name in sorted(names, key=lambda name: -spent[name])
            },
        }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """n, p50, p95 and max; 0 where there are no values."""
    ordered = sorted(values) or [0.0]
    last = len(ordered) - 1
    return {
        "n": len(values),
        "p50": ordered[round(0.5 * last)],
        "p95": ordered[round(0.95 * last)],
        "max": ordered[-1],
    }
