"""Gates of an incident asked for by a person: what they would cost, and once more with fresh boots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.model import ids
from swingbot.core.proof.gates import GATES, MEASURED, GateResult, GateRow
from swingbot.service.incident.attribute import measure_when_asked
from swingbot.service.ports import Lab, RequestError, Transaction
from swingbot.service.prove.advance_gates import ask, cost_of
from swingbot.service.prove.gate_kernels import MeasuredCulprit, case_of, of_gate
from swingbot.service.prove.report_evidence import gates_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCost:
    """What a gate would take if it were asked for now; or, with `answer`, what it would come to without any boot."""

    gate: str
    builds: int = 0
    boots: int = 0
    seconds: float = 0.0
    answer: str | None = None


def foresee_gates(lab: Lab, number: int, gates: Sequence[str]) -> list[GateCost]:
    """The cost of each of `gates` (all that need boots if none is named), each as if it were alone: shared kernels count in each. Raises RequestError."""
    with lab.transaction("foresee gates") as tx:
        case = _case(tx, number)
        return [_cost(lab, tx, case, gate) for gate in (_known(gates) or MEASURED)]


def _cost(lab: Lab, tx: Transaction, case: MeasuredCulprit, gate: str) -> GateCost:
    found = of_gate(lab, tx, case, gate)
    if isinstance(found, GateResult):
        return GateCost(gate=gate, answer=f"{found.status}: {found.reason}")
    cost = cost_of(lab, tx, case, found)
    return GateCost(
        gate=gate, builds=int(cost["builds"]), boots=int(cost["boots"]), seconds=cost["seconds"]
    )


def prove_again(lab: Lab, number: int, gates: Sequence[str]) -> list[GateRow]:
    """Ask for `gates` (those of the settings if none is named) with fresh boots, whatever the budget says; return all gates. Raises RequestError.

    A mail that is drafted already stays as it is. An incident that was bisected by hand is measured against its parent first, and
    the gates of the settings open after that: then none is returned.
    """
    wanted = _known(gates) or lab.policies.proof_gates
    with lab.transaction("prove again") as tx:
        if tx.gates.incident(number) is None and measure_when_asked(lab, tx, number) is not None:
            return []
        case = _case(tx, number)
        busy = [
            gate.gate
            for gate in tx.gates.of_incident(number)
            if gate.status == "running" and gate.gate in wanted
        ]
        if busy:
            raise RequestError(
                f"{', '.join(busy)} of {ids.show('incident', number)} is under way; wait for it, or name other gates with --gate"
            )
        ask(lab, tx, case, wanted, limited=False)
        return gates_of(tx.gates, number)


def _known(gates: Sequence[str]) -> tuple[str, ...]:
    unknown = [gate for gate in gates if gate not in GATES]
    if unknown:
        raise RequestError(f"{unknown[0]!r} is no gate; known are {', '.join(GATES)}")
    return tuple(gate for gate in GATES if gate in gates)


def _case(tx: Transaction, number: int) -> MeasuredCulprit:
    """The incident, once it is measured against its parent."""
    incident, shown = tx.gates.incident(number), ids.show("incident", number)
    if incident is None:
        raise RequestError(
            f"there is no incident {shown} that was measured against its parent; `swingbot list incidents` shows those there are"
        )
    if incident.comparison.open:
        raise RequestError(
            f"{shown} is being measured against its parent ({ids.show('comparison', incident.comparison.id)}); its gates open after that"
        )
    return case_of(tx, incident)
