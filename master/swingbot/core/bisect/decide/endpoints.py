"""The first question: do the two ends differ at all?"""

from __future__ import annotations

import math

from scipy.special import stdtr

from swingbot.core.bisect.choice.boot_requests import ask
from swingbot.core.bisect.decide.conclude import conclude
from swingbot.core.bisect.evidence.far_runs import run_spread
from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior.assessment import Assessment, phases
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.state import Action
from swingbot.core.bisect.thresholds import EXACT_END_BOOTS, WILD_P
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.stats.repeated_digits import repeated_digits
from swingbot.core.stats.unseen_path import excluded
from swingbot.core.text.numbers import rounded_up
from swingbot.core.thresholds import FAR_RUN_SDS


def ends(case: Assessment) -> Action | None:
    """Boots of both ends until they differ, or do not; None once the search may go on."""
    ev, policy, post = case.ev, case.policy, case.post
    pairs = _end_pairs(ev)
    if pairs < policy.boots_per_end or post is None:
        return _ask_ends(case, policy.boots_per_end, "both ends first: is there a change at all?")
    same = _ends_alike(case)
    alike = _alike(post, same)
    most, last = _most_pairs(case), _last_pair(case, pairs)
    if alike >= (policy.no_change_at_last if last else policy.no_change):
        untold = _untold(case)
        if untold:
            return conclude(case, "inconclusive", untold)
        return conclude(case, "not_reproduced", _no_change_reason(case, alike))
    if (
        set(phases(case.state)) - {"history", "ends"}
        or 1.0 - min(post.none_or_small, same) >= policy.reproduced
    ):
        return None
    if last:
        return conclude(
            case,
            "inconclusive",
            (
                f"after {pairs} boots of each end it is still not clear whether they differ by"
                f" {case.state.min_effect_pct:g} %"
            ),
        )
    return _ask_ends(case, _more_pairs(pairs, most), "the ends do not differ clearly yet")


def ends_again(case: Assessment) -> Action | None:
    """More boots of both ends, where nothing else tells whether they differ; None if they had all
    that they may.
    """
    pairs, most = _end_pairs(case.ev), _most_pairs(case)
    if pairs >= most or case.used + 2 > case.policy.max_boots:
        return None
    return _ask_ends(case, _more_pairs(pairs, most), "the ends alone can tell whether they differ")


def level_reproduced(case: Assessment) -> bool:
    """Whether the levels of the ends differ for certain."""
    alike = min(case.posterior.none_or_small, _ends_alike(case))
    return 1.0 - alike >= case.policy.reproduced


def ends_over(case: Assessment) -> bool:
    """Whether `ends` ends the bisection now, unless the levels differ."""
    pairs, policy = _end_pairs(case.ev), case.policy
    if pairs < policy.boots_per_end:
        return False
    alike = _alike(case.posterior, _ends_alike(case))
    return alike >= policy.no_change or _last_pair(case, pairs)


def more_ends(case: Assessment, why: str) -> Action | None:
    """More boots of both ends; None if they had all that they may."""
    pairs = _end_pairs(case.ev)
    if _last_pair(case, pairs):
        return None
    return _ask_ends(case, _more_pairs(pairs, _most_pairs(case)), why)


def _last_pair(case: Assessment, pairs: int) -> bool:
    return pairs >= _most_pairs(case) or case.ev.used + 2 > case.policy.max_boots


def _most_pairs(case: Assessment) -> int:
    most = EXACT_END_BOOTS if case.ev.exact else case.policy.max_end_boots
    return most + sum(b.phase == "history" for b in case.ev.at(0))


def _more_pairs(pairs: int, most: int) -> int:
    return min(pairs + max(1, pairs // 4), most)


def _end_pairs(ev: Evidence) -> int:
    """Values of k at which both ends were measured (they need not be pairs on an unpaired testbox,
    but cost nothing more).
    """
    good, bad = ({b.k for b in ev.at(p) if b.phase != "confirm"} for p in (0, ev.last))
    return len(good & bad)


def _ask_ends(case: Assessment, pairs: int, why: str) -> Action:
    ev = case.ev
    there = {ev.key(b) for b in ev.asked}
    # a k that cannot make a pair: a boot of it had no result, or confirms a step beside the end
    broken = {k for p, k in ev.failed if p in (0, ev.last)}
    broken |= {b.k for b in ev.asked if b.phase == "confirm" and ev.where(b) in (0, ev.last)}
    requests: list[WantedBoot] = []
    have, k, same_build = 0, 0, case.policy.boots_per_end
    while have < pairs:
        if k not in broken:
            order = (0, ev.last) if k % 2 == 0 else (ev.last, 0)
            layout = have if have >= same_build and case.layout_matters else 0
            requests += [
                WantedBoot(ev.points[p], k, "ends", layout) for p in order if (p, k) not in there
            ]
            have += 1
        k += 1
    return ask(case, requests, why)


def _alike(post: Posterior, same: float) -> float:
    """P(the ends differ by less than the minimum).

    `same`: `_ends_alike`, which counts for as much as the testbox stood still.
    """
    return post.none_or_small + (1.0 - post.wander) * max(same - post.none_or_small, 0.0)


def _ends_alike(case: Assessment) -> float:
    """P(the two end kernels themselves, layout and all, differ by less than the minimum), if the
    testbox stood still.

    Unlike P(no step) more boots always settle it.
    """
    ev = case.ev
    good, bad = case.end_boots()
    each = 1.0 / len(good) + 1.0 / len(bad)
    sd, df = math.sqrt(case.posterior.boot_var * each), case.spread_df
    effect, least = case.end_effect(), ev.threshold(case.state.min_effect_pct)
    levels = float(stdtr(df, (least - effect) / sd) - stdtr(df, (-least - effect) / sd))
    path = case.posterior.slow_path
    return levels if path is None else levels * (1.0 - path.p * (1.0 - path.small))


def _untold(case: Assessment) -> str | None:
    """Why boots of the ends that are alike tell nothing, if they do not: they repeat, or most of
    both ends are at a bound of the scale."""
    ev = case.ev
    ends = [[boot.values for boot in ev.at(p)] for p in (0, ev.last)]
    bound = ev.bound
    if bound is None:
        return repeated_digits(ends, paired=case.state.paired)
    reached = [sum(map(bound.holds_all, boots)) for boots in ends]
    if any(2 * n <= len(boots) for n, boots in zip(reached, ends, strict=True)):
        return None
    return (
        f"{sum(reached)} of {sum(map(len, ends))} boots of the ends are at {bound.value:g}, and"
        f" none is {bound.beyond}: whether they differ there, another metric has to show"
    )


def _no_change_reason(case: Assessment, p: float) -> str:
    return (
        "fresh boots of both ends do not differ: P(no change of"
        f" {case.state.min_effect_pct:g} % or more) = {p:.3f}"
        f" after {len(case.ev.at(0))} and {len(case.ev.at(case.ev.last))} boots{_unseen(case)}"
    )


def _unseen(case: Assessment) -> str:
    """Say which paths of the bad end the boots exclude, if no run and no boot is far off."""
    post, bad = case.posterior, case.ev.at(case.ev.last)
    if case.state.paired or post.slow_path is not None or max(post.wild, default=0.0) > WILD_P:
        return ""
    least = case.ev.threshold(case.state.min_effect_pct)
    sd = run_spread(case.ev) or math.sqrt(post.boot_var)
    size = f"{rounded_up(case.ev.pct(max(FAR_RUN_SDS * sd, least))):g} %"
    return f"; in the bad end {excluded(len(bad), sum(len(b.values) for b in bad), size)}"
