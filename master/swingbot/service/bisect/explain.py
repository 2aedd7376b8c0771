"""Explain what a bisection believes and why, from the last step of its journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.tell import explain_text, journal, logbook
from swingbot.core.bisect.tell.explain import Explanation, explain
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model import ids
from swingbot.core.model.bisection import Observation
from swingbot.core.model.lookup import NotFound, missing
from swingbot.service.ports import RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot_jobs import codec


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    explanation: Explanation
    state: BisectionState
    commits: tuple[tuple[str, str], ...]
    unit: str


def explanation(transaction: OpenTransaction, number: int) -> dict[str, Any]:
    """Return what bisection `number` believes and why as a document: "explanation" in docs/json.md.

    Raises NotFound if it does not exist or has not made a step yet, RequestError if its journal
    is unreadable.
    """
    it = explain_bisection(transaction, number)
    if isinstance(it, journal.JournalStep):
        lines = [logbook.decided(it), f"This step was {logbook.by_another(it)}."]
        facts: dict[str, Any] = {"action": it.action}
    else:
        lines = explain_text.paragraphs(it.explanation, it.state, it.commits, it.unit)
        facts = codec.plain(it.explanation) | {"action": journal.decision(it.explanation.action)}
    return {"id": ids.show("bisection", number), "text": lines, **facts}


def explain_bisection(transaction: OpenTransaction, number: int) -> Explained | journal.JournalStep:
    """Explain bisection `number`; if another engine decided its last step, return that step as it
    was recorded.

    Raises NotFound, RequestError as `explanation` does.
    """
    with transaction("explain bisection") as tx:
        bisection = tx.bisections.get(number)
        if bisection is None:
            raise NotFound(missing("bisection", number))
        steps, points = tx.steering.steps(number), tx.bisections.points(number)
    if not steps:
        raise NotFound(f"b{number} has no journal: it has not made a step yet")
    if steps[-1].engine != journal.ENGINE:
        return steps[-1]
    state, policy, order = shown(steps)
    return Explained(
        explanation=explain(state, policy, order),
        state=state,
        commits=tuple((variant.commit, variant.subject) for variant, _, _ in points),
        unit=bisection.terms.unit or "",
    )


def shown(steps: list[journal.JournalStep]) -> tuple[BisectionState, Policy, list[Observation]]:
    """Return the state and policy of the last step, and its observations in order of arrival.

    Raises RequestError if the journal is unreadable.
    """
    try:
        shots = [shot for _, shot in journal.states(steps)]
        state, policy = journal.restored(shots[-1])
        order: list[Observation] = []
        current = set(state.observations)
        for entry in (step for step in steps if step.engine == journal.ENGINE):
            arrived = [journal.typed(Observation, seen) for seen in entry.facts.get("seen", ())]
            order += [o for o in sorted(arrived, key=lambda o: (o.idx, o.k)) if o in current]
    except journal.JournalError as error:
        raise RequestError(f"the journal cannot be read: {error}") from None
    return state, policy, list(dict.fromkeys(order))
