"""What a bisection believes and why, from its journal: the state is the one that its last step was shown."""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.bisect import journal
from swingbot.core.bisect.explain import Explanation, explain
from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.service.ports import Lab, RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    explanation: Explanation
    state: BisectionState
    commits: tuple[tuple[str, str], ...]
    unit: str


def explain_bisection(lab: Lab, number: int) -> Explained:
    """Raises RequestError if there is no such bisection, or if it has not made a step yet."""
    with lab.transaction("explain bisection") as tx:
        bisection = tx.bisections.get(number)
        if bisection is None:
            raise RequestError(
                f"there is no bisection b{number}; `swingbot list bisections` shows those there are"
            )
        steps, points = tx.steering.steps(number), tx.bisections.points(number)
    if not steps:
        raise RequestError(
            f"b{number} has made no step yet, or it is older than journals: there is nothing to explain"
        )
    state, policy, order = shown(steps)
    return Explained(
        explanation=explain(state, policy, order),
        state=state,
        commits=tuple((variant.commit, variant.subject) for variant, _, _ in points),
        unit=bisection.terms.unit or "",
    )


def shown(steps: list[journal.JournalStep]) -> tuple[BisectionState, Policy, list[Observation]]:
    """What the last step was shown, and its observations in the order in which they came."""
    try:
        shots = [shot for _, shot in journal.states(steps)]
        state, policy = journal.restored(shots[-1])
        order: list[Observation] = []
        kept = set(state.observations)
        for entry in steps:
            came = [journal.typed(Observation, seen) for seen in entry.facts.get("seen", ())]
            order += [o for o in sorted(came, key=lambda o: (o.idx, o.k)) if o in kept]
    except journal.JournalError as error:
        raise RequestError(f"the journal cannot be read: {error}") from None
    return state, policy, list(dict.fromkeys(order))
