"""What the counts of far-off runs and boots say about the step, beside the levels of boots.

A step may change the share of runs, or of boots, that take another path, and leave the others as
they are. The runs of a boot are not independent, so their counts are beta-binomial. They meet the
model of levels in one posterior: each hypothesis about the level is weighed with and without a step
of the share. Formulas: docs/statistics.md, "A path that some runs take".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.gaps import gap_prior, per_commit
from swingbot.core.bisect.posterior.log_sums import ln_sum
from swingbot.core.bisect.posterior.step_posterior import Posterior, SlowPath
from swingbot.core.bisect.thresholds import SLOW_PATH_STEP, WILD_P, Policy
from swingbot.core.stats.path_share import SHARES, FarRuns, ln_counts
from swingbot.core.thresholds import FAR_RUNS_TOGETHER

_BOOTS_TELL: Final = 1.0  # ratio below which the model of levels alone explains wild boots


def weighed(
    post: Posterior, ev: Evidence, far: FarRuns | None, policy: Policy, least: float
) -> Posterior:
    """The posterior of the levels with the evidence of the far-off runs."""
    at, place = np.unique(np.array(ev.boot_positions, np.intp), return_inverse=True)
    runs = [ShareStep.of(path, place) for path in _of_runs(far)]
    # boots are far off a level, so which are depends on whether it has a step
    stepped = runs + _supported(_of_boots(_far_boots(post, ev), place), place)
    even = runs + _supported(_of_boots(np.array(post.far_if_none), place), place)
    if not (stepped or even) or policy.prior_no_change <= 0.0 or post.none <= 0.0:
        return post
    ln_prior = gap_prior(at, ev.mass, policy)
    odds = np.exp(ln_prior[:-1] - ln_prior[-1])

    def hypotheses(commit: Floats, none: float) -> tuple[Floats, Floats, Floats, float]:
        """Weights by gap of a step of the level alone, and by path and gap of both and of the
        share alone; and their sum with that of no step.
        """
        gaps = np.add.reduceat(commit, at[:-1] + 1)
        level, both = gaps * (1.0 - SLOW_PATH_STEP), gaps * _by_path(stepped, len(gaps))
        share = none * odds * _by_path(even, len(gaps))
        return level, both, share, float(level.sum() + both.sum() + share.sum()) + none

    def reweighed(commit: Floats | None) -> Floats | None:
        if commit is None:
            return None
        level, both, share, total = hypotheses(commit, max(1.0 - float(commit.sum()), 0.0))
        ratio = (level + both.sum(axis=0) + share.sum(axis=0)) / total
        return per_commit(at, ratio, ev.mass)

    level, both, share, total = hypotheses(post.commit, post.none)
    of_share = {step: np.zeros(len(level)) for step in (*stepped, *even)}
    for step, weights in (*zip(stepped, both, strict=True), *zip(even, share, strict=True)):
        of_share[step] += weights / total
    likeliest = max(of_share, key=lambda step: float(of_share[step].sum()))
    path = likeliest.path(of_share[likeliest], ev, least)
    only = float(share.sum()) / total
    small = (post.none_or_small - post.none) / max(1.0 - post.none, 1e-300) * float(level.sum())
    commit = reweighed(post.commit)
    assert commit is not None
    return replace(
        post,
        commit=commit,
        none=post.none / total,
        none_or_small=min((post.none + small) / total + only * path.small, 1.0),
        if_even=reweighed(post.if_even),
        if_odd=reweighed(post.if_odd),
        slow_path=replace(path, p=float(both.sum()) / total + only, alone=only),
    )


def _by_path(steps: Sequence[ShareStep], gaps: int) -> Floats:
    """(path, gap): prior of a step of this share, alone or with the level, times its likelihood
    ratio."""
    ratios = np.array([step.ratio for step in steps]).reshape(len(steps), gaps)
    return np.asarray(SLOW_PATH_STEP / 2.0 / max(len(steps), 1) * ratios)


def _supported(paths: Iterable[Path], place: Indices) -> list[ShareStep]:
    """The steps of shares of boots that the boots do not speak against."""
    steps = [ShareStep.of(path, place) for path in paths]
    return [step for step in steps if step.ratio.max() >= _BOOTS_TELL]


@dataclass(frozen=True, slots=True)
class Path:
    """How many units of each boot take a path, in the order of `Evidence.boots`."""

    unit: str  # run or boot
    taken: Indices
    units: Indices
    offset: float  # median distance of these units from the others, on the effect scale


def _of_runs(far: FarRuns | None) -> list[Path]:
    if far is None:
        return []
    paths = (
        Path("run", far.below, far.runs, far.offset_below),
        Path("run", far.above, far.runs, far.offset_above),
    )
    return [path for path in paths if path.taken.any()]


def _far_boots(post: Posterior, ev: Evidence) -> Floats:
    """Boot -> how far it is from the others if it is wild or of the second mode, else 0."""
    if any(post.mode) or not post.wild:
        return np.array(post.mode)
    return np.where(np.array(post.wild) > WILD_P, ev.means - post.low, 0.0)


def _of_boots(far: Floats, place: Indices) -> Iterator[Path]:
    """`far`: boot -> how far it is from the others; 0: it is one of them.

    The path is what most boots of the good end do not take: shares are as likely only where they
    are small, and the level of a testbox with two modes may be either.
    """
    one, good = np.ones(len(far), np.intp), place == 0
    for taken in (far < 0.0, far > 0.0):
        if not taken.any():
            continue
        offset = float(np.median(far[taken]))
        if 2 * taken[good].sum() > good.sum():
            taken, offset = ~taken, -offset
        if taken.any():
            yield Path("boot", taken.astype(np.intp), one, offset)


@dataclass(frozen=True, slots=True, eq=False)
class ShareStep:
    """Counts of units on the path before and behind each gap between measured positions.

    Likelihoods are (dependence of units, gap, share).
    """

    observed: Path
    ratio: Floats  # gap -> likelihood of two shares over that of one
    before: Floats
    behind: Floats

    @classmethod
    def of(cls, path: Path, place: Indices) -> ShareStep:
        """`place`: boot -> measured position."""
        table = np.zeros((len(FAR_RUNS_TOGETHER), int(place.max()) + 1, len(SHARES)))
        for row, (together, _) in zip(table, FAR_RUNS_TOGETHER, strict=True):
            np.add.at(row, place, ln_counts(path.taken, path.units, together))
        upto = np.cumsum(table, axis=1)
        ln_weights = np.log([w for _, w in FAR_RUNS_TOGETHER])
        mean = math.log(len(SHARES))
        before, behind = upto[:, :-1], upto[:, -1:] - upto[:, :-1]
        one = float(ln_sum(ln_sum(upto[:, -1], axis=1) - mean + ln_weights))
        if path.unit == "boot":  # whose levels were weighed with the share that fits best
            one = _best_fit(int(path.taken.sum()), len(path.taken))
        two = ln_sum(before, axis=2) + ln_sum(behind, axis=2) - 2.0 * mean + ln_weights[:, None]
        ratio = np.exp(np.minimum(ln_sum(two, axis=0) - one, 600.0))
        return cls(path, ratio, before + ln_weights[:, None, None], behind)

    def path(self, gaps: Floats, ev: Evidence, least: float) -> SlowPath:
        """The shares before and behind the step, weighed over `gaps`, and what they do to the mean.

        `small`: P(the mean changes by less than `least`).
        """
        joint = np.zeros((len(SHARES), len(SHARES)))
        for g, weight in enumerate(gaps):
            ln = ln_sum(self.before[:, g, :, None] + self.behind[:, g, None, :], axis=0)
            likely = np.exp(ln - ln.max())
            joint += weight * likely / likely.sum()
        joint /= max(float(joint.sum()), 1e-300)
        mean = _mean_effect(SHARES, self.observed.offset, ev)
        change = mean[None, :] - mean[:, None]
        return SlowPath(
            before=float(joint.sum(axis=1) @ SHARES),
            behind=float(joint.sum(axis=0) @ SHARES),
            unit=self.observed.unit,
            taken=tuple(map(int, self.observed.taken)),
            units=tuple(map(int, self.observed.units)),
            offset=self.observed.offset,
            change=float((joint * change).sum()),
            small=float(joint[np.abs(change) < least].sum()),
        )


def _best_fit(taken: int, boots: int) -> float:
    """ln likelihood of which boots take the path, at the share that fits best."""
    shares = (taken / boots, 1.0 - taken / boots)
    return boots * sum(s * math.log(s) for s in shares if s > 0.0)


def _mean_effect(share: Floats, offset: float, ev: Evidence) -> Floats:
    """What a share of runs that are off by `offset` does to the mean, on the effect scale."""
    return np.log1p(share * math.expm1(offset)) if ev.ratio else share * offset
