"""Two boots beside each other: each in a thread of its own, through its own driver, with what one
has to know of the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.wire import CLIENT, ROLES, SERVER
from swingbot_worker import InfraError
from swingbot_worker.testbox.cluster.cluster_verdict import NodeOutcome
from swingbot_worker.testbox.cluster.script import TROUBLE
from swingbot_worker.testbox.driver import Boot, Driver, Fact, Request, TellPhase

# A server that the client said farewell to is off within this.
LATE_SECONDS = 60.0
# From one box being ready to leave its own system until the other one is: that one may have to be
# brought home first.
READY_SECONDS = 3600.0
# What a cluster does is what the one does that has come least far; home again are both or none.
_ORDER = ("booting", "running", "returning", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """One node's part: how it ended, and the facts that its driver knows."""

    ending: NodeOutcome
    facts: Mapping[str, Fact] = field(default_factory=dict)


def together(phases: Mapping[str, str]) -> str | None:
    """What both are doing, as one testbox; None while one of them has not said anything.

    Lost is lost.
    """
    if "lost" in phases.values():
        return "lost"
    return min(phases.values(), key=_ORDER.index) if len(phases) == len(ROLES) else None


class NodePair:
    """Both nodes of one order. `tell_phase` is told what both do as one testbox."""

    def __init__(
        self, cluster: ClusterDriver, drivers: Mapping[str, Driver], tell_phase: TellPhase
    ) -> None:
        self._names = {role: cluster.nodes[role].name for role in ROLES}
        self._drivers, self._tell_phase = drivers, tell_phase
        self._barrier = threading.Barrier(len(ROLES))
        self._lock = threading.Lock()
        self._phases: dict[str, str] = {}
        self._told: str | None = None
        self._played: dict[str, NodeRun] = {}
        self._ended: dict[str, float] = {}
        self._given_up: set[str] = set()
        self._stopped = False

    def play(self, requests: Mapping[str, Request]) -> Mapping[str, NodeRun]:
        """Boot both and wait for both. An exception here, as SIGTERM's, ends both."""
        threads = [
            threading.Thread(target=self._play, args=(role, requests[role]), daemon=True, name=role)
            for role in ROLES
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.2)
        finally:
            self._stopped = True
            self._barrier.abort()
        return self._played

    def _play(self, role: str, request: Request) -> None:
        made: Boot | None = None
        fault: InfraError | None = None
        try:
            made = self._drivers[role].boot(request)
        except InfraError as error:
            fault = error
        except Exception as error:
            fault = InfraError(f"the driver failed: {type(error).__name__}: {error}")
        told = (
            read_results(request.results).facts.get(TROUBLE, "")
            if request.results.is_file()
            else ""
        )
        ending = NodeOutcome(
            role=role,
            box=self._names[role],
            verdict=made.verdict if made else None,
            fault=fault,
            given_up=role in self._given_up,
            trouble=told.strip(),
        )
        with self._lock:
            self._played[role] = NodeRun(ending=ending, facts=made.facts if made else {})
            self._ended[role] = time.monotonic()
        if fault is not None:
            self._barrier.abort()

    def ready(self, role: str) -> None:
        """Wait until the other one is ready too. Raises InfraError if it will not be."""
        try:
            self._barrier.wait(READY_SECONDS)
        except threading.BrokenBarrierError:
            other = self._names[_other(role)]
            self._given_up.add(role)
            raise InfraError(
                f"Nothing was booted on it, because its {_other(role)} {other} could not start."
            ) from None

    def why_give_up(self, role: str) -> str | None:
        """Why nobody waits for this one any more: the other one is through, and has not come to a
        good end, or long ago.
        """
        if self._stopped:
            return "it was ended"
        with self._lock:
            played, ended = self._played.get(_other(role)), self._ended.get(_other(role), 0.0)
        if played is None:
            return None
        late = role == SERVER and time.monotonic() - ended > LATE_SECONDS
        if played.ending.well and not late:
            return None
        self._given_up.add(role)
        if played.ending.well:
            return f"{role} {self._names[role]}: not done {LATE_SECONDS:.0f} s after the client was"
        return f"ended, because its {_other(role)} had ended"

    def phase(self, role: str) -> TellPhase:
        def tell(phase: str, why: str) -> None:
            with self._lock:
                self._phases[role] = phase
                now = together(self._phases)
                if now is None or now == self._told:
                    return
                self._told = now
            name = self._names[role]
            self._tell_phase(now, f"{role} {name}: {why}"[:2000])

        return tell


def _other(role: str) -> str:
    return CLIENT if role == SERVER else SERVER
