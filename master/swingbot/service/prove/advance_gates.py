"""Prove a culprit before its mail: open its gates once it was measured against its parent, follow
them and decide them.

A gate that needs boots is a comparison of its own (kind `gate`) of the one relevant unit job, with
boots that nothing else uses. No mail is drafted before every gate has an answer. Settings limit
time and budget, so that this ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from swingbot.core.model.comparison_row import row_at
from swingbot.core.model.records import Comparison, NewComparison, Proven, base_and_head
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_numbers import of_gate as purpose_of_gate
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.proof.gates import (
    GATES,
    UNASKED,
    GateResult,
    GateRow,
    decided,
    doubted,
    within_budget,
)
from swingbot.core.proof.share import Effect, effect_of, gate_result, keeps
from swingbot.core.stats.compare import compare
from swingbot.core.text.numbers import duration
from swingbot.core.thresholds import (
    GATE_BOOTS,
    GATE_BOOTS_REPEATABLE,
    GATE_MOST_BOOTS,
    GATE_MOST_BOOTS_REPEATABLE,
)
from swingbot.service.clock_watch import SteadyClock
from swingbot.service.kernel.foresee_boots import usual_boot_seconds
from swingbot.service.kernel.images import all_images_of, images_of
from swingbot.service.ports import Catalogue, Git, Lab, LabSettings, Tools, Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.gates import Gates
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.variants import Variants
from swingbot.service.prove.gate_costs import foresee
from swingbot.service.prove.gate_kernels import (
    GateKernels,
    MeasuredCulprit,
    case_of,
    of_gate,
    without_effect,
)
from swingbot.service.prove.trace import traced
from swingbot.service.result.boots import boots_of

_WHAT: Final[Mapping[str, str]] = {"reproduced": "other build layout: ", "revert": "without it: "}


def open_gates(tools: Tools, catalogue: Catalogue, settings: LabSettings, tx: Transaction) -> None:
    """Open the gates of each measured incident that waits for its first mail."""
    for number, _ in tx.incidents.to_report():
        if tx.gates.of_incident(number):
            continue
        incident = tx.gates.incident(number)
        assert incident is not None
        for gate in GATES.keys() - set(settings.proof_gates):
            tx.gates.put(number, GateRow(gate=gate, status="not run", reason=UNASKED))
        ask(
            tools,
            catalogue,
            settings,
            tx,
            case_of(
                tx.trees,
                tx.variants,
                tx.specs,
                tx.bisections,
                tx.comparisons,
                tx.incidents,
                incident,
            ),
            settings.proof_gates,
        )


def ask(
    tools: Tools,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    case: MeasuredCulprit,
    gates: Collection[str],
    *,
    limited: bool = True,
) -> None:
    """Open `gates` of an incident, with fresh boots if they were open before.

    `limited`: only as far as the budget allows.
    """
    number, known = (
        case.incident.id,
        {gate.gate: gate for gate in tx.gates.of_incident(case.incident.id)},
    )
    planned: dict[str, tuple[GateKernels, dict[str, float]]] = {}
    for gate in (name for name in GATES if name in gates):
        tries = known[gate].tries + 1 if gate in known and known[gate].reason != UNASKED else 1
        known[gate] = GateRow(gate=gate, status="running", tries=tries)
        kernels = of_gate(tools, catalogue, tx, case, gate)
        if isinstance(kernels, GateResult):
            known[gate] = _decided(known[gate], kernels)
            tx.gates.put(number, known[gate])
        else:
            planned[gate] = (
                kernels,
                cost_of(
                    tools.git,
                    catalogue.testboxes,
                    tx.specs,
                    tx.builds,
                    tx.boots,
                    case,
                    kernels,
                ),
            )
    budget = settings.proof_budget_seconds if limited else 0.0
    unaffordable = within_budget(
        {gate: cost["seconds"] for gate, (_, cost) in planned.items()}, budget
    )
    for gate, (kernels, cost) in planned.items():
        row = replace(known[gate], foreseen=cost)
        if gate in unaffordable:
            tx.gates.put(
                number, _decided(row, GateResult(status="not run", reason=unaffordable[gate]))
            )
        else:
            tx.gates.put(
                number,
                replace(
                    row,
                    comparison=_open(
                        catalogue.testboxes, tx.specs, tx.comparisons, case, row, kernels
                    ),
                ),
            )


def _decided(row: GateRow, result: GateResult) -> GateRow:
    return replace(row, status=result.status, reason=result.reason, detail=result.detail)


def _open(
    testboxes: KnownTestboxes,
    specs: Specs,
    comparisons: Comparisons,
    case: MeasuredCulprit,
    row: GateRow,
    kernels: GateKernels,
) -> int:
    return comparisons.add(
        NewComparison(
            kind="gate",
            tree=case.tree.id,
            arms=base_and_head(kernels.base.id, kernels.head.id),
            boots=kernels.boots or first_boots(testboxes, case),
            parts=[(case.bisection.testbox, specs.add([kernels.job]))],
            purpose=purpose_of_gate(row.tries),
            request_key=f"gate:{case.incident.id}:{row.gate}:{row.tries}",
        )
    )


def cost_of(
    git: Git,
    testboxes: KnownTestboxes,
    specs: Specs,
    builds: KernelBuilds,
    boots: Boots,
    case: MeasuredCulprit,
    kernels: GateKernels,
) -> dict[str, float]:
    """Return the cost of measuring these kernels: {"builds", "boots", "seconds"}."""
    return foresee(
        git,
        builds,
        (kernels.base, kernels.head),
        kernels.boots or first_boots(testboxes, case),
        usual_boot_seconds(
            boots, specs, testboxes.known(case.bisection.testbox), specs.add([kernels.job])
        ),
    )


def first_boots(testboxes: KnownTestboxes, case: MeasuredCulprit) -> int:
    return (
        GATE_BOOTS_REPEATABLE if testboxes.known(case.bisection.testbox).repeatable else GATE_BOOTS
    )


def extend_gates(catalogue: Catalogue, tx: Transaction) -> None:
    """Order more boots for a gate whose first boots leave it undecided, before it is judged."""
    for case, row, comparison in _under_way(tx):
        orders = tx.orders.wanted(comparison=comparison.id)
        if (
            row.gate == "executed"
            or comparison.status != "running"
            or not orders
            or any(not order.over for order in orders)
            or case.own is None
        ):
            continue
        most = (
            GATE_MOST_BOOTS_REPEATABLE
            if catalogue.testboxes.known(case.bisection.testbox).repeatable
            else GATE_MOST_BOOTS
        )
        images = all_images_of(
            tx.builds, [tx.variants.get(number) for number in (comparison.base, comparison.head)]
        )
        seen = (
            _seen(catalogue, tx.specs, tx.boots, case, comparison, images)
            if images is not None
            else None
        )
        if (
            seen is not None
            and comparison.boots < most
            and keeps(case.own, seen, turned=row.gate == "revert") == "unclear"
        ):
            tx.comparisons.extend(comparison.id, min(most, 2 * comparison.boots))


def _under_way(tx: Transaction) -> list[tuple[MeasuredCulprit, GateRow, Comparison]]:
    running = []
    for number in tx.gates.open_incidents():
        incident = tx.gates.incident(number)
        for row in tx.gates.of_incident(number):
            comparison = (
                tx.comparisons.get(row.comparison)
                if row.status == "running" and row.comparison is not None
                else None
            )
            if incident is not None and comparison is not None:
                running.append(
                    (
                        case_of(
                            tx.trees,
                            tx.variants,
                            tx.specs,
                            tx.bisections,
                            tx.comparisons,
                            tx.incidents,
                            incident,
                        ),
                        row,
                        comparison,
                    )
                )
    return running


def _seen(
    catalogue: Catalogue,
    specs: Specs,
    boots: Boots,
    case: MeasuredCulprit,
    comparison: Comparison,
    images: Sequence[str],
) -> Effect | None:
    """Return the effect between the two kernels of a gate from the boots so far; None if they allow
    no statement.
    """
    if case.job is None:
        return None
    testbox, spec = comparison.parts[0]
    sides = [
        boots_of(
            specs,
            boots,
            image,
            testbox,
            spec,
            series_for(catalogue.testboxes.known(testbox), comparison),
            comparison.numbers,
        )[0]
        for image in images
    ]
    rule = rule_of(
        catalogue.testboxes.known(testbox),
        metric_of(catalogue.programs, case.bisection.metric),
        case.job,
    )
    key = (case.bisection.unit_job, case.bisection.metric)
    return effect_of(compare(sides[0].get(key, []), sides[1].get(key, []), rule))


def judge_gates(lab: Lab, tx: Transaction) -> None:
    """Decide each gate whose boots are judged or whose time is over; if the code gate contradicts
    the commit, order more boots of the commit.
    """
    for number in tx.gates.open_incidents():
        incident = tx.gates.incident(number)
        assert incident is not None
        case = case_of(
            tx.trees, tx.variants, tx.specs, tx.bisections, tx.comparisons, tx.incidents, incident
        )
        for row in tx.gates.of_incident(number):
            result = (
                _judged(
                    lab.tools.kernels,
                    lab.catalogue.testboxes,
                    lab.settings,
                    lab.clock.database,
                    tx,
                    case,
                    row,
                )
                if row.status == "running"
                else None
            )
            if result is not None:
                tx.gates.put(number, _decided(row, result))
    for number, _ in tx.incidents.to_report():
        incident = tx.gates.incident(number)
        assert incident is not None
        _doubt(tx, incident)


def _judged(
    kernels: KernelRecords,
    testboxes: KnownTestboxes,
    settings: LabSettings,
    database: SteadyClock,
    tx: Transaction,
    case: MeasuredCulprit,
    row: GateRow,
) -> GateResult | None:
    """Return the result of a gate; None while it is in progress."""
    if case.incident.comparison.open:
        return None  # the commit itself is being measured again
    comparison = tx.comparisons.get(row.comparison) if row.comparison is not None else None
    if comparison is None:
        return GateResult(status="not run", reason="nothing was measured")
    if comparison.status in ("waiting", "running"):
        if database.age(row.age_seconds) <= settings.proof_deadline_seconds:
            return None
        tx.comparisons.set_status(
            comparison.id, "cancelled", "the time limit for proof was exceeded"
        )
        return GateResult(
            status="not run",
            reason=f"not completed after {duration(settings.proof_deadline_seconds)}",
        )
    if comparison.status != "done":
        return GateResult(
            status="not run",
            reason=comparison.reason or f"its comparison was {comparison.status}",
        )
    if (
        row.gate == "revert"
        and (tip := _gate(tx.gates, case, "tip")) is not None
        and tip.status != "pass"
    ):
        return (
            None
            if tip.status == "running"
            else GateResult(
                status="not run",
                reason="the tip does not show the change, so there is nothing to revert",
            )
        )
    return (
        traced(kernels, testboxes, tx, comparison)
        if row.gate == "executed"
        else _of_rows(tx.variants, tx.builds, tx.comparisons, case, row, comparison)
    )


def _gate(gates: Gates, case: MeasuredCulprit, name: str) -> GateRow | None:
    return next((row for row in gates.of_incident(case.incident.id) if row.gate == name), None)


def _of_rows(
    variants: Variants,
    builds: KernelBuilds,
    comparisons: Comparisons,
    case: MeasuredCulprit,
    row: GateRow,
    comparison: Comparison,
) -> GateResult:
    own = case.own
    if own is None:
        return without_effect(case, row.gate)
    if row.gate in ("reproduced", "layout") and _same_images(variants, builds, case, comparison):
        return GateResult(status="not run", reason="the other build gave a byte-identical image")
    seen = row_at(comparisons.rows(comparison.id), case.bisection.key)
    effect = effect_of(seen)
    if seen is None or effect is None:
        return GateResult(
            status="not run",
            reason=(seen.reason if seen is not None else None) or "no run reported a result",
        )
    return gate_result(
        own, effect, seen.better, turned=row.gate == "revert", what=_WHAT.get(row.gate, "")
    )


def _same_images(
    variants: Variants, builds: KernelBuilds, case: MeasuredCulprit, comparison: Comparison
) -> bool:
    """Return whether the other build gave identical images, which proves nothing."""
    pairs = (
        (case.parent, variants.get(comparison.base)),
        (case.culprit, variants.get(comparison.head)),
    )
    images = images_of(builds, [variant for pair in pairs for variant in pair])
    return images[0] == images[1] and images[2] == images[3]


def _doubted(fresh: Comparison) -> int | None:
    """Return the number of the comparison that this one repeats with more boots; None if it does
    not repeat one.
    """
    asker, _, number = (fresh.request_key or "").partition(":")
    return int(number) if asker == "doubted" else None


def _doubt(tx: Transaction, incident: Proven) -> None:
    """Repeat commit and parent once with twice the boots, because layout or noise is suspected.

    If infrastructure failures lose them, the earlier result holds.
    """
    gates, old = tx.gates.of_incident(incident.id), incident.comparison
    before = _doubted(old)
    if before is not None:
        if old.status != "done":
            tx.incidents.replace_comparison(incident.id, old.id, before)
        return
    key = f"doubted:{old.id}"
    if (
        not doubted(gates)
        or not decided(gates)
        or old.status != "done"
        or tx.comparisons.of_request(key) is not None
    ):
        return
    fresh = tx.comparisons.add(
        NewComparison(
            kind="attribute",
            tree=incident.tree,
            arms=base_and_head(old.base, old.head),
            boots=2 * old.boots,
            parts=old.parts,
            first_k=old.first_k,
            purpose=old.purpose,
            request_key=key,
        )
    )
    tx.incidents.replace_comparison(incident.id, old.id, fresh)
    for row in gates:
        if row.gate == "reproduced" and row.comparison is not None:
            tx.gates.put(incident.id, replace(row, status="running", reason=""))
