"""Search a range with several steps part by part, and combine the conclusions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from swingbot.core.bisect.decide.conclude import conclude, concluded, found
from swingbot.core.bisect.decide.confirm import Confirmed
from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots
from swingbot.core.bisect.decide.creep import creeping
from swingbot.core.bisect.decide.search import search
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.state import Action, Conclude, Conclusion
from swingbot.core.bisect.thresholds import ELSEWHERE_NONE


def solve(case: Assessment) -> Action:
    """Search the range, or both sides one after the other if there are two steps in it."""
    answers = case.whole.answers
    if case.key not in answers:
        answers[case.key] = _solved(case)
    return answers[case.key]


def _solved(case: Assessment) -> Action:
    if case.root and case.posterior.none_or_small >= case.policy.no_change:
        return conclude(case, "not_reproduced", "there is no step")
    if (gradual := creeping(case)) is not None:
        return gradual
    sides = case.sides()
    if sides is None:
        action = search(case)
        return _also_elsewhere(case, action.seen) if isinstance(action, Confirmed) else action
    ended: list[Conclusion] = []
    for part in sides:
        action = solve(part)
        if not isinstance(action, Conclude):
            return action
        ended.append(action.conclusion)
    return _together(case, ended)


def _also_elsewhere(case: Assessment, seen: ConfirmationBoots) -> Action:
    """Search the ranges before and after a confirmed step if they probably have another step."""
    first = found(case, seen)
    ended = []
    for low, high in ((0, seen.left), (seen.right, case.ev.last)):
        part = _doubtful_part(case, low, high)
        if part is not None:
            action = solve(part)
            if not isinstance(action, Conclude):
                return action
            ended.append(action.conclusion)
    if not ended:
        return first
    return _together(case, sorted([first.conclusion, *ended], key=lambda c: c.members[:1]))


def _doubtful_part(case: Assessment, low: int, high: int) -> Assessment | None:
    """Return a range next to a confirmed step if it probably has another step."""
    if low >= high or not case.ev.at(low) or not case.ev.at(high):
        return None
    part = case.part(low, high, none=1.0 - 2.0 * case.policy.prior_two)
    return part if part.posterior.none_or_small < ELSEWHERE_NONE else None


def _together(case: Assessment, ended: Sequence[Conclusion]) -> Conclude:
    """Combine the conclusions of the parts of a range."""
    named = [c for c in ended if c.kind in ("culprit", "credible_set", "several")]
    if not named:
        return conclude(
            case,
            "inconclusive",
            "two changes were suspected, neither could be confirmed: "
            + "; ".join(c.reason for c in ended),
        )
    if len(named) == 1:
        rest = "; ".join(c.reason for c in ended if c is not named[0])
        return concluded(
            case, replace(named[0], reason=f"{named[0].reason}; elsewhere in the range: {rest}")
        )
    # Only single commits are culprits; in a set the culprit is unknown.
    culprits = tuple(x for c in named if c.kind != "credible_set" for x in c.culprits)
    return concluded(
        case,
        Conclusion(
            kind="several" if culprits else "credible_set",
            reason=f"{len(named)} changes in the range, each confirmed: "
            + "; ".join(map(_in_words, named)),
            culprits=culprits,
            members=tuple(x for c in named for x in c.members),
            probability=math.prod(c.probability or 0.0 for c in named),
        ),
    )


def _in_words(ended: Conclusion) -> str:
    which = "commit " if ended.kind == "culprit" else "one of "
    change = "" if ended.change_pct is None else f" {ended.change_pct:+.1f} %"
    return which + ", ".join(map(str, ended.members)) + change
