"""Decide the next step of a bisection. Pure: boots in flight are part of the state.

The phases are: do the ends differ (`endpoints`), where is the step (`search`), is it real
(`confirm`), is it the only one (`subranges`), and the conclusion (`conclude`). If the ends differ
only in the spread of their boots, or in the share of runs that take another path, `spread_step` and
`slow_path_step` have phases of their own.
"""

from __future__ import annotations

from swingbot.core.bisect.decide.conclude import conclude
from swingbot.core.bisect.decide.endpoints import ends
from swingbot.core.bisect.decide.slow_path_step import slow_path_step
from swingbot.core.bisect.decide.spread_step import spread_step
from swingbot.core.bisect.decide.subranges import solve
from swingbot.core.bisect.posterior.assessment import assess, why_not
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.thresholds import Policy


def step(state: BisectionState, policy: Policy) -> Action:
    """Return the next action of a bisection.

    Never requests a boot that was made or is in flight.
    """
    case = assess(state, policy)
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
                (
                    f"the {which} end cannot be measured: {why_not(case, end)}; bisect from"
                    " another end"
                ),
            )
    return slow_path_step(case) or spread_step(case) or ends(case) or solve(case)
