"""Boot two nodes in parallel, each in its own thread and through its own driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.testbox.definition import ClusterDriver
from swingbot_jobs.testbox.wire import CLIENT, ROLES, SERVER
from swingbot_worker import InfraError
from swingbot_worker.readers.boot_reader import read_boot
from swingbot_worker.testbox.cluster.cluster_verdict import NodeOutcome
from swingbot_worker.testbox.cluster.script import TROUBLE
from swingbot_worker.testbox.driver import Boot, Driver, Fact, Request, TellPhase

# Time within which the server shuts down after the client has completed.
LATE_SECONDS = 60.0
# Maximum wait for the other node to be ready: it may have to return to its idle system first.
READY_SECONDS = 3600.0
# The phase of a cluster is that of the node which has progressed least.
_ORDER = ("booting", "running", "returning", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """Outcome of one node, and the facts reported by its driver."""

    ending: NodeOutcome
    facts: Mapping[str, Fact] = field(default_factory=dict)


def together(phases: Mapping[str, str]) -> str | None:
    """Return the phase of the cluster as one testbox; None until both nodes have reported one.

    The cluster is lost if either node is lost.
    """
    if "lost" in phases.values():
        return "lost"
    return min(phases.values(), key=_ORDER.index) if len(phases) == len(ROLES) else None


class NodePair:
    """Both nodes of one order. `tell_phase` receives the phase of the cluster as one testbox."""

    def __init__(
        self, cluster: ClusterDriver, drivers: Mapping[str, Driver], tell_phase: TellPhase
    ) -> None:
        self._names = {role: cluster.nodes[role].name for role in ROLES}
        self._drivers, self._tell_phase = drivers, tell_phase
        self._barrier = threading.Barrier(len(ROLES))
        self._lock = threading.Lock()
        self._phases: dict[str, str] = {}
        self._reported: str | None = None
        self._played: dict[str, NodeRun] = {}
        self._ended: dict[str, float] = {}
        self._given_up: set[str] = set()
        self._stopped = False

    def play(self, requests: Mapping[str, Request]) -> Mapping[str, NodeRun]:
        """Boot both nodes and wait for them. An exception, such as that of SIGTERM, stops both."""
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
        boot: Boot | None = None
        fault: InfraError | None = None
        try:
            boot = self._drivers[role].boot(request)
        except InfraError as error:
            fault = error
        except Exception as error:
            fault = InfraError(f"the driver failed: {type(error).__name__}: {error}")
        trouble = ""
        try:
            trouble = read_boot(request.results, marks=[TROUBLE]).marks.get(TROUBLE, "")
        except InfraError as error:
            fault = fault or error
        ending = NodeOutcome(
            role=role,
            testbox=self._names[role],
            verdict=boot.verdict if boot else None,
            fault=fault,
            given_up=role in self._given_up,
            trouble=trouble.strip(),
        )
        with self._lock:
            self._played[role] = NodeRun(ending=ending, facts=boot.facts if boot else {})
            self._ended[role] = time.monotonic()
        if fault is not None:
            self._barrier.abort()

    def ready(self, role: str) -> None:
        """Wait until the other node is ready too. Raises InfraError if it cannot start."""
        try:
            self._barrier.wait(READY_SECONDS)
        except threading.BrokenBarrierError:
            other = self._names[_other(role)]
            self._given_up.add(role)
            raise InfraError(
                f"This node was not booted because its {_other(role)} {other} could not start."
            ) from None

    def why_give_up(self, role: str) -> str | None:
        """Return why this node is no longer needed, or None if it is.

        It is not needed if the other node has failed, or if the client completed LATE_SECONDS ago.
        """
        if self._stopped:
            return "the order was stopped"
        with self._lock:
            played, ended = self._played.get(_other(role)), self._ended.get(_other(role), 0.0)
        if played is None:
            return None
        late = role == SERVER and time.monotonic() - ended > LATE_SECONDS
        if played.ending.well and not late:
            return None
        self._given_up.add(role)
        if played.ending.well:
            return (
                f"{role} {self._names[role]}: still running {LATE_SECONDS:.0f} s after the client "
                "completed"
            )
        return f"stopped because its {_other(role)} failed"

    def phase(self, role: str) -> TellPhase:
        def tell(phase: str, why: str) -> None:
            with self._lock:
                self._phases[role] = phase
                phase_of_both = together(self._phases)
                if phase_of_both is None or phase_of_both == self._reported:
                    return
                self._reported = phase_of_both
            name = self._names[role]
            self._tell_phase(phase_of_both, f"{role} {name}: {why}"[:2000])

        return tell


def _other(role: str) -> str:
    return CLIENT if role == SERVER else SERVER
