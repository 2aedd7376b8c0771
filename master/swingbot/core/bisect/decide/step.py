"""Decide the next step of a bisection. Pure: boots in flight are part of the state.

The phases are: do the ends differ (`endpoints`), where is the step (`search`), is it real
(`confirm`), is it the only one (`subranges`), and the conclusion (`conclude`). If the ends differ
only in the spread of their boots, `spread_step` has phases of its own.
"""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.bisect.decide.conclude import conclude
from swingbot.core.bisect.decide.endpoints import ends
from swingbot.core.bisect.decide.spread_step import spread_step
from swingbot.core.bisect.decide.subranges import solve
from swingbot.core.bisect.posterior.assessment import assess, why_not
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.thresholds import GROUP_BOOTS_PER_END, GROUP_DECISIVE, GROUP_WORTH, Policy


def step(state: BisectionState, policy: Policy) -> Action:
    """Return the next action of a bisection.

    Never requests a boot that was made or is in flight.
    """
    if state.testboxes > 1:
        policy = _in_group(policy, state.testboxes)
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
    return spread_step(case) or ends(case) or solve(case)


def _in_group(policy: Policy, testboxes: int) -> Policy:
    """Adapt the policy to a group, where idle testboxes are free and boots are requested sooner."""
    return replace(
        policy,
        parallel=max(policy.parallel, testboxes),
        boots_per_end=max(policy.boots_per_end, min(testboxes, GROUP_BOOTS_PER_END)),
        decisive=min(policy.decisive, GROUP_DECISIVE),
        worth=min(policy.worth, GROUP_WORTH),
    )
