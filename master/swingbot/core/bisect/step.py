"""What a bisection does next. Pure: the same state gives the same answer, and what is in flight is part of the state.

In the order of a bisection: do the ends differ (`ends`), where is the step (`search`), is it really there (`confirm`), is it the only one
(`parts`), and the answer (`conclude`).
"""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.bisect.assessment import look, why_not
from swingbot.core.bisect.conclude import conclude
from swingbot.core.bisect.endpoints import ends
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.subranges import solve
from swingbot.core.bisect.thresholds import GROUP_BOOTS_PER_END, GROUP_DECISIVE, GROUP_WORTH, Policy


def step(state: BisectionState, policy: Policy) -> Action:
    """Say what this bisection should do next. Calling it twice asks for nothing twice, and never for a boot that already was."""
    if state.boxes > 1:
        policy = _in_group(policy, state.boxes)
    case = look(state, policy)
    ev = case.ev
    if ev.last == 0:
        return conclude(
            case, "not_reproduced", "the good and the bad kernel are the same image, byte for byte"
        )
    for end, which in ((0, "good"), (ev.last, "bad")):
        if not ev.measurable[end]:
            return conclude(
                case,
                "inconclusive",
                f"the {which} end cannot be measured: {why_not(case, end)}; bisect from another end",
            )
    return ends(case) or solve(case)


def _in_group(policy: Policy, boxes: int) -> Policy:
    """An idle testbox costs nothing and time does: boots are worth asking for sooner."""
    return replace(
        policy,
        parallel=max(policy.parallel, boxes),
        boots_per_end=max(policy.boots_per_end, min(boxes, GROUP_BOOTS_PER_END)),
        decisive=min(policy.decisive, GROUP_DECISIVE),
        worth=min(policy.worth, GROUP_WORTH),
    )
