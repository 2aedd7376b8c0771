"""What two boots together came to: one verdict about their kernel, or a fault of the lab, each with
the box that it was seen on. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swingbot_jobs.printable import printable
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker import InfraError, OrderError
from swingbot_worker.testbox.cluster.script import CARD, CARRIER, PROGRAM, SILENCE
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# What a kernel shows of itself counts more than what another box misses; the worst first.
_EVIDENT: Final = (BootStatus.PANICKED, BootStatus.OOPSED)
_SILENT: Final = (BootStatus.HUNG, BootStatus.TIMED_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """How one node's boot ended: with a verdict, or with a fault of ours.

    `trouble` is what it says of the wire, its own words behind ours.
    """

    role: str
    box: str
    verdict: Verdict | None = None
    fault: InfraError | None = None
    given_up: bool = False  # ended by us, because of the other one
    trouble: str = ""

    @property
    def who(self) -> str:
        return f"{self.role} {self.box}"

    @property
    def well(self) -> bool:
        """It went through its job, and the wire was there."""
        return (
            self.verdict is not None and self.verdict.status is BootStatus.UP and not self.trouble
        )


def judge(cluster: str, endings: tuple[NodeOutcome, NodeOutcome]) -> Verdict:
    """The verdict about the kernel, which both boxes boot.

    Raises InfraError for a fault of ours, OrderError for an order that cannot be done here.
    """
    _refuse_order(cluster, endings)
    own = [ending for ending in endings if not ending.given_up]
    if told := _told(own, _EVIDENT):
        return told
    for ending in own:
        if ending.fault is not None:
            raise InfraError(f"Cluster {cluster}, {ending.who}: {ending.fault}")
    _refuse_wire(cluster, endings)
    if told := _told(own, _SILENT):
        return told
    if troubled := next((ending for ending in own if ending.trouble), None):
        return Verdict(status=BootStatus.HUNG, reason=_words(troubled))
    if late := next((ending for ending in endings if ending.given_up), None):
        return late.verdict or Verdict(status=BootStatus.HUNG, reason=f"{late.who} did not end")
    return Verdict(status=BootStatus.UP)


def _refuse_order(cluster: str, endings: tuple[NodeOutcome, NodeOutcome]) -> None:
    for ending in endings:
        if isinstance(ending.fault, OrderError):
            raise OrderError(f"Cluster {cluster}, {ending.who}: {ending.fault}")


def _told(endings: list[NodeOutcome], statuses: tuple[BootStatus, ...]) -> Verdict | None:
    for status in statuses:
        for ending in endings:
            if ending.verdict is not None and ending.verdict.status is status:
                return Verdict(status=status, reason=f"{ending.who}: {ending.verdict.reason}")
    return None


def _refuse_wire(cluster: str, endings: tuple[NodeOutcome, NodeOutcome]) -> None:
    """A card without a carrier is a cable that is out: seen on either end, and no kernel's fault as
    far as one boot can tell.
    """
    ends = [ending for ending in endings if ending.trouble.startswith(CARRIER)]
    if ends:
        at = " and ".join(
            f"{ending.who} ({printable(ending.trouble.partition(' ')[2][:40])})" for ending in ends
        )
        raise InfraError(
            f"The wire of cluster {cluster} has no carrier at {at}; check the cable and any "
            "devices between its ends."
        )


def _words(ending: NodeOutcome) -> str:
    kind, _, rest = ending.trouble.partition(" ")
    said = printable(rest[:200])
    if kind == CARD:
        return f"{ending.who}: the kernel under test has no network card {said}, which is its end of the wire"
    if kind == SILENCE and ending.role == CLIENT:
        return f"{ending.who}: the server did not answer at {said}, although the wire has a carrier here"
    if kind == SILENCE:
        return (
            f"{ending.who}: nothing was heard of the client, although the wire has a carrier here"
        )
    if kind == PROGRAM:
        return f"{SERVER}: {said}"
    return f"{ending.who}: the wire could not be used ({printable(ending.trouble[:200])})"
