"""A step of the share of runs that take another path, at an unchanged level of the others.

The search for a step of the level learns nothing from such runs. A kernel without one may have been
lucky, so the search asks it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from swingbot.core.bisect.choice.boot_requests import ask
from swingbot.core.bisect.decide.conclude import concluded, found, on_the_path, out_of_boots, stated
from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots, missing_boots
from swingbot.core.bisect.decide.endpoints import more_ends
from swingbot.core.bisect.decide.spread_step import dividing, members_of, suspected, where
from swingbot.core.bisect.posterior.assessment import Assessment, phases
from swingbot.core.bisect.posterior.step_posterior import SlowPath
from swingbot.core.bisect.state import Action, Conclusion
from swingbot.core.bisect.thresholds import (
    SLOW_PATH_CONFIRMED,
    SLOW_PATH_DENIED,
    SLOW_PATH_MOST_PAIRS,
    SPREAD_SUSPECT,
)
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.path_share import two_shares

_WHY: Final = "whether runs of this kernel take the other path tells where that began"


def slow_path_step(case: Assessment) -> Action | None:
    """What to do where the ends differ in the share of runs on another path and not in the level
    of the others; None where they do not, or where that is not known yet."""
    post, policy = case.post, case.policy
    path = post.slow_path if post else None
    if path is None or path.alone < SPREAD_SUSPECT:
        return None
    if not set(phases(case.state)) - {"history", "ends"} and path.alone < policy.reproduced:
        return more_ends(case, "the ends may differ in the share of runs that are far off")
    suspects = suspected(case)
    return (_confirm(case, path, *suspects) if suspects else None) or dividing(case, _WHY)


def _confirm(case: Assessment, path: SlowPath, left: int, right: int) -> Action | None:
    """Fresh boots of the suspect and its parent, in turn, until their shares differ or do not.

    None if they do, but the place is not certain.
    """
    ev, policy = case.ev, case.policy
    boots = [{b.k: b for b in ev.at(p, "confirm")} for p in (left, right)]
    ks = sorted(boots[0].keys() & boots[1].keys())
    if len(ks) >= policy.confirm_boots:
        odds = _fresh_odds(case, path, left, right)
        if odds >= SLOW_PATH_CONFIRMED:
            if _stated(case, left, right) < 1.0 - (1.0 - policy.confidence) / 3.0:
                return None
            return _found(case, path, left, right, ks)
        denied = odds < SLOW_PATH_DENIED and len(ks) >= policy.max_confirm
        if denied or len(ks) >= SLOW_PATH_MOST_PAIRS:
            return concluded(case, _not_shown(case, path, left, right, len(ks)))
    if case.used + 2 > policy.max_boots + 2 * SLOW_PATH_MOST_PAIRS:
        return out_of_boots(case)
    pairs = max(policy.confirm_boots, len(ks) + 1)
    missing = missing_boots(ev, left, right, pairs, layouts=case.rebuilds)
    return ask(case, missing, "fresh boots show whether runs take the other path at the suspect")


def _fresh_odds(case: Assessment, path: SlowPath, left: int, right: int) -> float:
    """Likelihood of two shares over that of one, from the fresh boots of the two alone."""
    at = np.array(case.ev.boot_positions)
    fresh = np.array([b.phase == "confirm" for b in case.ev.boots]) & np.isin(at, (left, right))
    taken, units = np.array(path.taken)[fresh], np.array(path.units)[fresh]
    return two_shares(taken, units, at[fresh] == right)


def _stated(case: Assessment, left: int, right: int) -> float:
    """P(the step is there): its place, if there is one, and that there is one.

    The shares of runs say nothing of odd images or a creep of the level.
    """
    return where(case, left, right) * (1.0 - case.posterior.none)


def _found(case: Assessment, path: SlowPath, left: int, right: int, ks: list[int]) -> Action:
    ev = case.ev
    of_mean, fresh = "mean", f", in {len(ks)} fresh pairs of boots"
    if path.unit == "boot":  # the fresh ones alone are too few to tell a share of boots
        of_mean, fresh = "mean of all boots", f"; confirmed by {len(ks)} fresh pairs of boots"
        boots = list(zip(ev.boot_positions, ev.boots, strict=True))
        of_sides = [[b for p, b in boots if (p >= right) == side] for side in (False, True)]
    else:
        of_sides = [[b for b in ev.at(p, "confirm") if b.k in ks] for p in (left, right)]
    sides = [[BootRuns(k=k, values=b.values) for k, b in enumerate(side)] for side in of_sides]
    rule = Rule(
        min_effect_pct=case.state.min_effect_pct,
        alpha=case.policy.interval_alpha,
        form="ratio" if ev.ratio else "difference",
        unimodal=True,
        robust=False,
    )
    row = compare(sides[0], sides[1], rule)
    seen = ConfirmationBoots(left, right, len(ks), 0, 0, row)
    ended = found(case, seen).conclusion
    if len(ended.members) == 1:
        likely = _stated(case, left, right)
        named = tuple(replace(culprit, probability=likely) for culprit in ended.culprits)
        ended = replace(ended, culprits=named, probability=likely)
    mean = "" if row.change_pct is None else f"; {of_mean} {row.change_pct:+.1f} %"
    checked = "" if case.rebuilds else "; layout not checked: one build of each"
    reason = f"{on_the_path(case, path)}{mean}{fresh}{checked}"
    return concluded(case, replace(ended, reason=reason))


def _not_shown(case: Assessment, path: SlowPath, left: int, right: int, pairs: int) -> Conclusion:
    return Conclusion(
        kind="inconclusive",
        reason=(
            f"{on_the_path(case, path)} (P = {path.alone:.3f}); {pairs} fresh pairs of boots of the"
            " suspect and its parent do not show it"
        ),
        members=members_of(case, left, right),
        probability=stated(case, left, right),
    )
