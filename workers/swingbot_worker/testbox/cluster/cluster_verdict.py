"""Combine the outcomes of two boots into one verdict or one infrastructure failure. Pure.

The reason names the testbox on which it was observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swingbot_jobs.printable import printable
from swingbot_jobs.testbox.wire import CLIENT, SERVER
from swingbot_worker import InfraError, OrderError
from swingbot_worker.testbox.cluster.script import CARD, CARRIER, PROGRAM, SILENCE
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# A failure that the kernel itself reports outweighs silence. Both lists start with the worst.
_EVIDENT: Final = (BootStatus.PANICKED, BootStatus.OOPSED)
_SILENT: Final = (BootStatus.HUNG, BootStatus.LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """Outcome of the boot of one node: a verdict or an infrastructure failure.

    `trouble` describes a problem with the wire: a keyword of script.py, then details from the node.
    """

    role: str
    testbox: str
    verdict: Verdict | None = None
    fault: InfraError | None = None
    given_up: bool = False  # stopped because of the other node
    trouble: str = ""

    @property
    def who(self) -> str:
        return f"{self.role} {self.testbox}"

    @property
    def well(self) -> bool:
        """Whether the node completed its job without a problem with the wire."""
        return (
            self.verdict is not None and self.verdict.status is BootStatus.UP and not self.trouble
        )


def judge(
    cluster: str, endings: tuple[NodeOutcome, NodeOutcome], *, patient: bool = True
) -> Verdict:
    """Return the verdict about the kernel, which both testboxes boot.

    Raises InfraError for an infrastructure failure, and OrderError for an order that this cluster
    cannot carry out. `patient`: a node waits for the other one longer than a healthy one needs.
    """
    _refuse_order(cluster, endings)
    own = [ending for ending in endings if not ending.given_up]
    if verdict := _worst(own, _EVIDENT):
        return verdict
    for ending in own:
        if ending.fault is not None:
            raise InfraError(f"Cluster {cluster}, {ending.who}: {ending.fault}")
    _refuse_wire(cluster, endings)
    if verdict := _worst(own, _SILENT):
        return verdict
    if troubled := next((ending for ending in own if ending.trouble), None):
        return Verdict(
            status=BootStatus.HUNG if patient else BootStatus.LIMIT, reason=_explain(troubled)
        )
    if late := next((ending for ending in endings if ending.given_up), None):
        return late.verdict or Verdict(
            status=BootStatus.HUNG, reason=f"{late.who} did not complete"
        )
    return Verdict(status=BootStatus.UP)


def _refuse_order(cluster: str, endings: tuple[NodeOutcome, NodeOutcome]) -> None:
    for ending in endings:
        if isinstance(ending.fault, OrderError):
            raise OrderError(f"Cluster {cluster}, {ending.who}: {ending.fault}")


def _worst(endings: list[NodeOutcome], statuses: tuple[BootStatus, ...]) -> Verdict | None:
    for status in statuses:
        for ending in endings:
            if ending.verdict is not None and ending.verdict.status is status:
                return Verdict(status=status, reason=f"{ending.who}: {ending.verdict.reason}")
    return None


def _refuse_wire(cluster: str, endings: tuple[NodeOutcome, NodeOutcome]) -> None:
    """Raise InfraError if either end of the wire has no carrier.

    The usual cause is an unplugged cable, and one boot cannot show that the kernel is at fault.
    """
    ends = [ending for ending in endings if ending.trouble.startswith(CARRIER)]
    if ends:
        places = " and ".join(
            f"{ending.who} ({printable(ending.trouble.partition(' ')[2][:40])})" for ending in ends
        )
        raise InfraError(
            f"The wire of cluster {cluster} has no carrier at {places}; check the cable and any "
            "devices between its ends."
        )


def _explain(ending: NodeOutcome) -> str:
    kind, _, rest = ending.trouble.partition(" ")
    detail = printable(rest[:200])
    if kind == CARD:
        return (
            f"{ending.who}: the kernel under test has no network card {detail}, which is its end "
            "of the wire"
        )
    if kind == SILENCE and ending.role == CLIENT:
        return (
            f"{ending.who}: the server did not answer at {detail}, although this end of the wire "
            "has a carrier"
        )
    if kind == SILENCE:
        return (
            f"{ending.who}: the client did not send a request, although this end of the wire has a "
            "carrier"
        )
    if kind == PROGRAM:
        return f"{SERVER}: {detail}"
    return f"{ending.who}: the wire could not be used ({printable(ending.trouble[:200])})"
