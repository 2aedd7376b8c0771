"""End of a bisection: its conclusion, and the sentence that gives the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots
from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior.assessment import Assessment, why_not
from swingbot.core.bisect.posterior.belief import candidates
from swingbot.core.bisect.posterior.step_posterior import Posterior, SlowPath
from swingbot.core.bisect.state import Action, Conclude, Conclusion, Culprit, Wait
from swingbot.core.bisect.thresholds import (
    EXPLAINED_SHARE,
    LISTED_P,
    ODD_IMAGES_STATED,
    SPREAD_CHANGED_P,
)
from swingbot.core.model.statuses import ConclusionKind
from swingbot.core.text.numbers import two_digits


def conclude(case: Assessment, kind: ConclusionKind, reason: str) -> Conclude:
    """Conclude without naming a commit."""
    return concluded(case, Conclusion(kind=kind, reason=reason))


def concluded(case: Assessment, conclusion: Conclusion) -> Conclude:
    """Conclude with `conclusion` and the belief about each commit of the whole range."""
    return Conclude(conclusion=replace(conclusion, candidates=candidates(case.whole)))


def found(case: Assessment, seen: ConfirmationBoots, *, of_set: bool = False) -> Conclude:
    """The step is between the two kernels of `seen`: a culprit, or with commits in between a
    credible set.

    `of_set`: a set was suspected, and stays one even if all but one of its commits are ruled out.
    Nothing is named where odd images leave less than the probability that was asked for.
    """
    ev, row, post = case.ev, seen.row, case.posterior
    members = tuple(
        ev.points[p] for p in range(seen.left + 1, seen.right + 1) if post.commit[p] > 0
    )
    change, interval = (row.change_pct, row.interval_pct) if row else (None, None)
    single = len(members) == 1 and not of_set
    of_all = stated(case, seen.left, seen.right)
    named = not of_set or of_all >= case.policy.confidence
    culprits = tuple(
        Culprit(
            idx=c,
            parent_idx=case.name(seen.left),
            probability=of_all
            if single
            else stated(case, ev.points.index(c) - 1, ev.points.index(c)),
            change_pct=change,
            interval_pct=interval,
        )
        for c in members
        if named
    )
    return concluded(
        case,
        Conclusion(
            kind="inconclusive" if not named else "culprit" if single else "credible_set",
            reason=_of_commit(case, seen) if single else _of_set(case, seen, members),
            culprits=culprits,
            members=members,
            probability=of_all,
            change_pct=change,
            interval_pct=interval,
            settled_by=None if named else "builds in another layout",
        ),
    )


def _of_commit(case: Assessment, seen: ConfirmationBoots) -> str:
    ev = case.ev
    ends = case.whole.end_effect()
    share = seen.effect / ends if ends else 1.0
    text = f"confirmed by {seen.pairs} fresh pairs of boots{_layout_and_spread(case)}"
    return (
        text
        if EXPLAINED_SHARE[0] <= share <= EXPLAINED_SHARE[1]
        else (
            f"{text}; it explains {ev.pct(seen.effect):+.1f} % of the {ev.pct(ends):+.1f} %"
            " between the ends"
        )
    )


def _layout_and_spread(case: Assessment) -> str:
    """Describe images and noise for the reader, in addition to the change of the mean."""
    notes = "" if case.ev.layout_cost is not None else "; layout not checked: one build of each"
    likely, factor = case.posterior.noisier
    if likely >= SPREAD_CHANGED_P and two_digits(factor) != "1":
        notes += f"; the spread after it is {two_digits(factor)} times as large"
    path = case.posterior.slow_path
    if path is not None and path.p >= 0.5:
        notes += f"; {on_the_path(case, path)} (P = {path.p:.2f})"
    bound = case.ev.bound
    if bound is not None:
        reached = sum(bound.holds_all(boot.values) for boot in case.ev.boots)
        notes += (
            f"; {reached} of {len(case.ev.boots)} boots are at {bound.value:g}, and none is"
            f" {bound.beyond}: no change shows there"
        )
    return notes


def on_the_path(case: Assessment, path: SlowPath) -> str:
    """Such as "1 run in 7 about 50 % lower than the others, before it 1 run in 2000"."""
    way = "lower" if path.offset < 0.0 else "higher"
    far = two_digits(abs(case.ev.pct(path.offset)))
    behind, before = (_share(share, path.unit) for share in (path.behind, path.before))
    return f"{behind} about {far} % {way} than the others, before it {before}"


def _share(share: float, unit: str) -> str:
    if share > 0.25:
        return f"{100.0 * share:.0f} % of {unit}s"
    return f"1 {unit} in {two_digits(1.0 / max(share, 1e-4))}"


def _of_set(case: Assessment, seen: ConfirmationBoots, members: tuple[int, ...]) -> str:
    between = [p for p in range(seen.left + 1, seen.right) if not case.ev.measurable[p]]
    if len(between) == seen.right - seen.left - 1:
        whys = "; ".join(f"commit {case.name(p)}: {why_not(case, p)}" for p in between)
        return f"{_one_of(members)}; the kernels between them cannot be measured ({whys})"
    return (
        f"{_one_of(members)}; more boots cannot distinguish them, as these kernels differ only in"
        " layout"
    )


def _one_of(members: tuple[int, ...]) -> str:
    return f"one of these {len(members)} commits" if len(members) > 1 else f"commit {members[0]}"


def out_of_boots(case: Assessment) -> Action:
    """Conclude because the budget is spent, or wait for boots in flight."""
    if case.ev.pending:
        return Wait(why="the last boots of the budget are in flight")
    left, right = hull(case.ev, case.posterior, LISTED_P)
    members = tuple(
        case.ev.points[p] for p in range(left + 1, right + 1) if case.posterior.commit[p] > 0
    )
    return concluded(
        case,
        Conclusion(
            kind="inconclusive",
            reason=f"{case.used} boots were not enough; the step is most likely in "
            + (f"commit {members[0]}" if len(members) == 1 else f"one of {len(members)} commits")
            + ", not confirmed",
            members=members,
            probability=stated(case, left, right),
            settled_by="more boots",
        ),
    )


def hull(ev: Evidence, post: Posterior, confidence: float) -> tuple[int, int]:
    """Return the shortest range of measurable positions with the step, with P >= `confidence`.

    The probability is conditional on the existence of a step.
    """
    can = [p for p in range(ev.last + 1) if ev.measurable[p]]
    upto = np.cumsum(post.commit)
    at = upto[can]
    reach = np.searchsorted(at, at + confidence * float(upto[-1]) * (1 - 1e-12))
    fits = np.flatnonzero(reach < len(can))
    if not len(fits):
        return can[0], can[-1]
    best = int(fits[np.argmin(reach[fits] - fits)])
    return can[best], can[int(reach[best])]


def stated(case: Assessment, left: int, right: int) -> float:
    """P(the step is between these positions), the possibility of a creep included.

    If no build in another layout can show whether an image is odd, "some images are odd" counts
    with at least `ODD_IMAGES_STATED`: how often they are is a prior, which no boot measures.
    """
    post, inside = case.posterior, slice(left + 1, right + 1)
    likely = believed(post, left, right)
    if not case.rebuilds and post.if_odd is not None:
        odd = max(post.odd_images, ODD_IMAGES_STATED)
        even = float(post.if_images_are_even()[inside].sum())
        cautious = (1.0 - odd) * even + odd * float(post.if_odd[inside].sum())
        likely = min(likely, cautious * (1.0 - post.creep))
    return likely


def believed(post: Posterior, left: int, right: int) -> float:
    """P(the step is between these positions) by the posterior, the possibility of a creep
    included.
    """
    return share(post, left, right) * (1.0 - post.creep)


def share(post: Posterior, left: int, right: int) -> float:
    """P(the step is between these positions), if the level does not creep."""
    return min(1.0, float(post.commit[left + 1 : right + 1].sum()))
