"""Estimate the cost of an incident's gates, and run them again with fresh boots, on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.records import Proven
from swingbot.core.proof.gates import GATES, MEASURED, GateResult, GateRow
from swingbot.service.incident.attribute import measure
from swingbot.service.ports import Catalogue, Lab, RequestError, Tools, Transaction
from swingbot.service.ports.incidents import Incidents
from swingbot.service.prove.advance_gates import ask, cost_of
from swingbot.service.prove.gate_kernels import MeasuredCulprit, case_of, of_gate
from swingbot.service.prove.report_evidence import gates_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCost:
    """Cost of a gate if requested now; or, with `answer`, its result if it needs no boots."""

    gate: str
    builds: int = 0
    boots: int = 0
    seconds: float = 0.0
    answer: str | None = None


def foresee_gates(lab: Lab, number: int, gates: Sequence[str]) -> list[GateCost]:
    """Return the cost of each of `gates` (default: all that need boots).

    Each is estimated alone, so shared kernels count in each. Raises NotFound, RequestError.
    """
    with lab.transaction("foresee gates") as tx:
        _look_up(tx.incidents, number)
        case = case_of(
            tx.trees,
            tx.variants,
            tx.specs,
            tx.bisections,
            tx.comparisons,
            tx.incidents,
            _measured(tx.gates.incident(number), number),
        )
        return [
            _cost(lab.tools, lab.catalogue, tx, case, gate) for gate in (_known(gates) or MEASURED)
        ]


def _cost(
    tools: Tools, catalogue: Catalogue, tx: Transaction, case: MeasuredCulprit, gate: str
) -> GateCost:
    kernels = of_gate(tools, catalogue, tx, case, gate)
    if isinstance(kernels, GateResult):
        return GateCost(gate=gate, answer=f"{kernels.status}: {kernels.reason}")
    cost = cost_of(tools.git, catalogue.testboxes, tx.specs, tx.builds, tx.boots, case, kernels)
    return GateCost(
        gate=gate, builds=int(cost["builds"]), boots=int(cost["boots"]), seconds=cost["seconds"]
    )


def prove_again(lab: Lab, number: int, gates: Sequence[str], who: str) -> list[GateRow]:
    """Run `gates` (default: those of the settings) again with fresh boots, regardless of the
    budget; return all gates. Raises NotFound, RequestError.

    The history of the incident says that `who` asked. A mail that is already drafted is not
    changed. An incident that was bisected by hand is measured against its parent first. Its gates
    open after that according to the settings, and the returned list is empty.
    """
    selected = _known(gates) or lab.settings.proof_gates
    with lab.transaction("prove again") as tx:
        _look_up(tx.incidents, number)
        incident, sightings = tx.gates.incident(number), tx.sightings.of_incident(number)
        unmeasured = next((each for each in sightings if each.comparison is None), None)
        if incident is None and unmeasured is not None:
            measure(lab.tools.git, lab.catalogue, tx, unmeasured)
            tx.incidents.add_event(number, "prove", who, "measured against its parent first")
            return []
        case = case_of(
            tx.trees,
            tx.variants,
            tx.specs,
            tx.bisections,
            tx.comparisons,
            tx.incidents,
            _measured(incident, number),
        )
        busy = [
            gate.gate
            for gate in tx.gates.of_incident(number)
            if gate.status == "running" and gate.gate in selected
        ]
        if busy:
            raise RequestError(
                f"{', '.join(busy)} of {ids.show('incident', number)} is in progress; wait until "
                "it has ended, or name other gates with --gate"
            )
        ask(lab.tools, lab.catalogue, lab.settings, tx, case, selected, limited=False)
        tx.incidents.add_event(number, "prove", who, f"gates: {', '.join(selected)}")
        return gates_of(tx.gates, number)


def _known(gates: Sequence[str]) -> tuple[str, ...]:
    unknown = [gate for gate in gates if gate not in GATES]
    if unknown:
        raise RequestError(
            f"{unknown[0][:40]!r} is not a valid gate; choose from {', '.join(GATES)}"
        )
    return tuple(gate for gate in GATES if gate in gates)


def _look_up(incidents: Incidents, number: int) -> None:
    """Raises NotFound."""
    if incidents.get(number) is None:
        raise NotFound(missing("incident", number))


def _measured(incident: Proven | None, number: int) -> Proven:
    """Return the incident if it was measured against its parent. Raises RequestError if not."""
    shown = ids.show("incident", number)
    if incident is None:
        raise RequestError(f"{shown} was not measured against its parent")
    if incident.comparison.open:
        raise RequestError(
            f"{shown} is being measured against its parent "
            f"({ids.show('comparison', incident.comparison.id)}); its gates open after that"
        )
    return incident
