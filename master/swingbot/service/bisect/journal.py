"""Record the input and the decision of each bisection step, in the transaction that acts on it."""

from __future__ import annotations

from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.tell import journal
from swingbot.core.bisect.thresholds import Policy
from swingbot.service.ports.steering import Steering


def note_step(
    steering: Steering, bisection: int, state: BisectionState, policy: Policy, action: Action
) -> None:
    """Add a step to the journal, unless its input equals that of the last step, or it only keeps
    waiting while costs change. After another engine the step has all facts."""
    last, now = steering.last_step(bisection), journal.snapshot(state, policy)
    before: journal.Snapshot | None = None
    if last is not None and last.engine == journal.ENGINE:
        if last.digest == now.digest:
            return
        *_, (_, before) = journal.states(steering.steps(bisection))
    facts, decision = journal.difference(before, now), journal.decision(action)
    if journal.worth_noting(last.action if last else None, facts, decision):
        number = last.number + 1 if last else 1
        steering.add_step(bisection, number, journal.ENGINE, facts, now.digest, decision)
