"""A step of the spread between boots at an unchanged level: where it is, and whether fresh boots
show it.

The search for a step of the level learns nothing from such boots: it asks where the mean is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from swingbot.core.bisect.choice.boot_requests import ask, first_k
from swingbot.core.bisect.decide.conclude import concluded, out_of_boots, share, stated
from swingbot.core.bisect.decide.confirmation_boots import missing_boots
from swingbot.core.bisect.decide.endpoints import ends_over, level_reproduced, more_ends
from swingbot.core.bisect.posterior.assessment import Assessment, phases
from swingbot.core.bisect.posterior.own_spreads import kernel_spreads, own_spreads
from swingbot.core.bisect.state import Action, Conclusion, Culprit, Wait
from swingbot.core.bisect.thresholds import (
    LASTING_BOOTS,
    SPREAD_CHANGED_P,
    SPREAD_PAIRS,
    SPREAD_STEP_ALPHAS,
    SPREAD_SUSPECT,
)
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.conclusion import same_mean
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.spread_change import spread_change
from swingbot.core.text.numbers import two_digits

_WHY: Final = "the spread between boots of this kernel tells where it changed"
_BOOTS_OF_A_KERNEL: Final = 4  # over which the cost of its build is spread


def spread_step(case: Assessment) -> Action | None:
    """What to do where the ends differ in the spread of their boots and not in their level; None
    where they do not, or where that is not known yet."""
    post = case.post
    if (
        post is None
        or case.state.paired
        or case.state.testboxes > 1
        or post.noisier[0] < SPREAD_SUSPECT
        or level_reproduced(case)
    ):
        return None
    if not set(phases(case.state)) - {"history", "ends"}:
        if not ends_over(case):
            return None
        if post.noisier[0] < SPREAD_CHANGED_P:
            return more_ends(case, "the spread between boots may differ between the ends")
    suspects = suspected(case)
    return (_confirm(case, *suspects) if suspects else None) or dividing(case, _WHY)


def suspected(case: Assessment) -> tuple[int, int] | None:
    """The likeliest step between two measurable neighbours, if it is likely enough."""
    commit = case.posterior.commit / max(float(case.posterior.commit.sum()), 1e-300)
    upto, can = np.cumsum(commit), np.flatnonzero(case.ev.measurable)
    steps = np.diff(upto[can])
    best = int(np.argmax(steps))
    return (int(can[best]), int(can[best + 1])) if steps[best] >= case.policy.suspect else None


def dividing(case: Assessment, why: str) -> Action:
    """Request one boot of the kernel that divides the commits best, for its cost."""
    upto = np.cumsum(case.posterior.commit) / max(float(case.posterior.commit.sum()), 1e-300)
    ev = case.ev
    if any(p.phase == "search" for p in ev.pending):
        return Wait(why="a boot of the search is in flight")
    if case.used >= case.policy.max_boots:
        return out_of_boots(case)
    boot = float(ev.cost.min())
    cost = boot + (ev.cost - boot) / _BOOTS_OF_A_KERNEL
    worth = np.where(np.array(ev.measurable), upto * (1.0 - upto) / cost, -1.0)
    position = int(np.argmax(worth))
    wanted = WantedBoot(ev.points[position], first_k(ev, (position,)), "search")
    return ask(case, [wanted], why)


def _confirm(case: Assessment, left: int, right: int) -> Action | None:
    """Fresh boots of the suspect and its parent, in turn, until their spreads differ or do not.

    None if they do, but the place is not certain.
    """
    ev, most = case.ev, SPREAD_PAIRS[-1]
    boots = [{b.k: b for b in ev.at(p, "confirm")} for p in (left, right)]
    ks = sorted(boots[0].keys() & boots[1].keys())
    pairs = next((n for n in SPREAD_PAIRS if len(ks) < n), most)
    runs = [[BootRuns(k=k, values=side[k].values) for k in ks] for side in boots]
    levels = [[ev.effect(float(np.mean(b.values))) for b in side] for side in runs]
    wider = case.posterior.noisier[1] > 1.0

    def shown(alpha: float) -> list[float]:
        tested = [
            spread_change(levels[0][:n], levels[1][:n], alpha) for n in SPREAD_PAIRS if len(ks) >= n
        ]
        return [ratio for ratio in tested if ratio is not None and (ratio > 1.0) == wider]

    alpha = min((alpha for alpha in SPREAD_STEP_ALPHAS if shown(alpha)), default=None)
    last = len(ks) >= most or case.used + 2 > case.policy.max_boots + 2 * most
    if alpha is not None:
        place, wanted = where(case, left, right), case.policy.confidence
        differ, lasts = _differ(case, alpha), 1.0 - own_spreads(kernel_spreads(ev), left)
        real = differ * lasts
        likely = place * real
        if place < wanted or (likely < wanted and place < min(differ, lasts)):
            return None
        if likely < wanted and lasts <= differ:
            more = _boot_of_another(case, left, right)
            if more is not None:
                return more
            if lasts < 0.5:
                return concluded(case, _differs_between_kernels(1.0 - lasts))
            last = True
        if likely >= wanted or last:
            row = compare(
                runs[0], runs[1], Rule(min_effect_pct=case.state.min_effect_pct, unimodal=True)
            )
            ratio = shown(alpha)[-1]
            found = _found(case, left, right, row, len(ks), ratio, real)
            return concluded(case, found)
    elif last:
        return concluded(case, _not_shown(case, left, right, len(ks)))
    missing = missing_boots(ev, left, right, pairs, layouts=False)
    return ask(case, missing, "fresh boots show whether the spread changes at the suspect")


def where(case: Assessment, left: int, right: int) -> float:
    """P(the step is between these positions | there is one)."""
    commit = case.posterior.commit
    return share(case.posterior, left, right) / max(float(commit.sum()), 1e-300)


def _differ(case: Assessment, alpha: float) -> float:
    """P(the spreads of the suspect and its parent differ), given that fresh boots show it.

    Wild boots explain a larger spread as well, and the posterior allows for them. Fresh boots of
    two neighbours that differ bound the error of all the comparisons, and no creep of the level
    makes them differ.
    """
    return max(1.0 - case.posterior.none, 1.0 - len(SPREAD_PAIRS) * alpha)


def _boot_of_another(case: Assessment, left: int, right: int) -> Action | None:
    """Request a boot of a kernel beyond the suspect and its parent, which shows whether the change
    lasts; None if such kernels were booted often enough.

    The side that is known less comes first, and of that the kernel which was booted most, up to
    some boots; then the nearest that was not.
    """
    ev, (of_one, of_side) = case.ev, LASTING_BOOTS
    if any(p.phase == "search" for p in ev.pending):
        return Wait(why="a boot of the search is in flight")
    if case.used >= case.policy.max_boots:
        return None
    freedom = {kernel.position: kernel.freedom for kernel in kernel_spreads(ev)}
    sides = (range(left - 1, -1, -1), range(right + 1, ev.last + 1))  # the nearest first
    wanted: list[tuple[int, int]] = []
    for side in sides:
        there = [p for p in side if ev.measurable[p] and freedom.get(p, 0) < of_one]
        spent = sum(min(freedom.get(p, 0), of_one) for p in side)
        if there and spent < of_side:
            wanted.append((spent, max(there, key=lambda p: (freedom.get(p, -1), -there.index(p)))))
    if not wanted:
        return None
    position = min(wanted)[1]
    boot = WantedBoot(ev.points[position], first_k(ev, (position,)), "search")
    return ask(case, [boot], "boots of other kernels show whether the change of the spread lasts")


def members_of(case: Assessment, left: int, right: int) -> tuple[int, ...]:
    return tuple(
        case.ev.points[p] for p in range(left + 1, right + 1) if case.posterior.commit[p] > 0
    )


def _found(
    case: Assessment,
    left: int,
    right: int,
    row: ComparisonRow,
    pairs: int,
    ratio: float,
    real: float,
) -> Conclusion:
    """A culprit, or a set; a suspect where the probability is less than was asked for.

    `real`: P(the spread changes for good | the step is there).
    """
    likely = where(case, left, right) * real
    named = likely >= case.policy.confidence
    members, interval = members_of(case, left, right), row.interval_pct
    what = "same mean" if same_mean(ratio, interval) else f"{row.change_pct:+.1f} %"
    culprits = tuple(
        Culprit(
            idx=c,
            parent_idx=case.name(left),
            probability=where(case, case.ev.points.index(c) - 1, case.ev.points.index(c)) * real,
            change_pct=row.change_pct,
            interval_pct=interval,
        )
        for c in members
        if named
    )
    return Conclusion(
        kind="inconclusive" if not named else "culprit" if len(members) == 1 else "credible_set",
        reason=(
            f"{what}, {two_digits(ratio)} times the spread between boots, in {pairs} fresh pairs of"
            " boots; layout not checked: one build of each"
        ),
        culprits=culprits,
        members=members,
        probability=likely,
        change_pct=row.change_pct,
        interval_pct=interval,
        spread_ratio=ratio,
        settled_by=None if named else "more boots",
    )


def _differs_between_kernels(likely: float) -> Conclusion:
    return Conclusion(
        kind="inconclusive",
        reason=(
            "the level does not change, and the spread between boots differs from kernel to kernel"
            f" (P = {likely:.3f}): no commit changes it for good"
        ),
    )


def _not_shown(case: Assessment, left: int, right: int, pairs: int) -> Conclusion:
    likely, factor = case.posterior.noisier
    times = "" if two_digits(factor) == "1" else f", by a factor of {two_digits(factor)}"
    return Conclusion(
        kind="inconclusive",
        reason=(
            f"the level does not change, but the spread between boots does{times}"
            f" (P = {likely:.3f}); {pairs} fresh pairs of boots of the suspect"
            " and its parent do not show it"
        ),
        members=members_of(case, left, right),
        probability=stated(case, left, right),
        settled_by="more boots",
    )
