"""A level that moves with every commit: boots spread over the range until it is a creep, or is
not."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtri

from swingbot.core.bisect.choice.boot_requests import ask, first_k
from swingbot.core.bisect.decide.conclude import concluded
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.state import Action, Conclusion, Wait
from swingbot.core.bisect.thresholds import (
    CREEP_BOOTS,
    CREEP_MOST_BOOTS,
    CREEP_POSITIONS,
    CREEP_SUSPECT,
)
from swingbot.core.model.bisection import WantedBoot

_ROUND: Final = "the level may move with every commit: boots over the whole range tell"


def creeping(case: Assessment) -> Action | None:
    """Return the next action if a creep is likelier than steps; None if it is not, or if the search
    has better questions.
    """
    if case.post is None or case.post.creep < CREEP_SUSPECT:
        return None
    positions = _positions(case)
    least = min(len(case.ev.at(p)) for p in positions)
    if case.post.creep >= case.policy.creep and least >= CREEP_BOOTS:
        return concluded(case, _creep(case))
    if case.used >= case.policy.max_boots:
        return _undecided(case)
    if least >= CREEP_MOST_BOOTS:
        return None  # other kernels tell more than other boots of these
    if any(p.phase == "search" for p in case.ev.pending):
        return Wait(why=f"boots are in flight ({_ROUND})")
    return ask(case, _round(case, positions), _ROUND)


def _positions(case: Assessment) -> list[int]:
    """Measurable positions that divide the range evenly, the ends included."""
    can = np.flatnonzero(case.ev.measurable)
    upto = np.cumsum(case.ev.mass)[can]
    wanted = np.linspace(0.0, float(upto[-1]), CREEP_POSITIONS)
    return sorted({0, case.ev.last} | {int(can[np.argmin(np.abs(upto - w))]) for w in wanted})


def _round(case: Assessment, positions: list[int]) -> list[WantedBoot]:
    """Request a boot of each position that has the fewest; on a paired testbox of all, at one k."""
    ev = case.ev
    if case.state.paired:
        k = ev.next_k()
        return [WantedBoot(ev.points[p], k, "search") for p in positions]
    least = min(len(ev.at(p)) for p in positions)
    chosen = [p for p in positions if len(ev.at(p)) == least]
    free = max(1, case.policy.max_boots - case.used)
    return [WantedBoot(ev.points[p], first_k(ev, (p,)), "search") for p in chosen[:free]]


def _creep(case: Assessment) -> Conclusion:
    ev, post = case.ev, case.posterior
    size, var = post.crept
    reach = float(ndtri(1.0 - case.policy.interval_alpha / 2.0)) * math.sqrt(var)
    change, low, high = (ev.pct(size + by) for by in (0.0, -reach, reach))
    return Conclusion(
        kind="creep",
        reason=(
            f"the level moves little by little from commit {ev.points[0] + 1} to commit "
            f"{ev.points[-1]}, by {change:+.1f} % in all: no single commit makes the change "
            f"(P(one or more steps) = {1.0 - post.creep:.3f})"
        ),
        probability=post.creep,
        change_pct=change,
        interval_pct=(low, high),
    )


def _undecided(case: Assessment) -> Action:
    if case.ev.pending:
        return Wait(why="the last boots of the budget are in flight")
    return concluded(
        case,
        Conclusion(
            kind="inconclusive",
            reason=(
                f"{case.used} boots did not settle whether the level moves with every commit "
                f"(P = {case.posterior.creep:.3f}) or at several: no commit can be named"
            ),
        ),
    )
