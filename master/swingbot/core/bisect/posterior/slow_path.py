"""What the counts of far-off runs say about the step, beside the levels of boots.

A step may change the share of runs that take another path, and leave the others as they are. The
runs of a boot are not independent, so counts are beta-binomial. They meet the model of levels in
one posterior: each hypothesis about the level is weighed with and without a step of the share.
Formulas: docs/statistics.md, "A path that some runs take".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import betaln

from swingbot.core.bisect.evidence.far_runs import FarRuns
from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.gaps import gap_prior, per_commit
from swingbot.core.bisect.posterior.log_sums import ln_sum
from swingbot.core.bisect.posterior.step_posterior import Posterior, SlowPath
from swingbot.core.bisect.thresholds import FAR_RUNS_TOGETHER, SLOW_PATH_STEP, Policy

_SHARES: Final = np.geomspace(0.0005, 0.9, 32)  # of the runs; each as likely before any boot


def weighed(
    post: Posterior, ev: Evidence, far: FarRuns | None, policy: Policy, least: float
) -> Posterior:
    """The posterior of the levels with the evidence of the far-off runs."""
    if far is None or policy.prior_no_change <= 0.0 or post.none <= 0.0:
        return post
    at, place = np.unique(np.array(ev.boot_positions, np.intp), return_inverse=True)
    steps = [
        ShareStep.of(counts, far.runs, place, offset)
        for counts, offset in ((far.below, far.offset_below), (far.above, far.offset_above))
        if counts.any()
    ]
    alone = SLOW_PATH_STEP / 2.0 / len(steps) * np.array([step.ratio for step in steps])
    ln_prior = gap_prior(at, ev.mass, policy)
    odds = np.exp(ln_prior[:-1] - ln_prior[-1])

    def hypotheses(commit: Floats, none: float) -> tuple[Floats, Floats, Floats, float]:
        """Weights by gap of a step of the level alone, and by path and gap of both and of the
        share alone; and their sum with that of no step.
        """
        gaps = np.add.reduceat(commit, at[:-1] + 1)
        level, both, share = gaps * (1.0 - SLOW_PATH_STEP), gaps * alone, none * odds * alone
        return level, both, share, float(level.sum() + both.sum() + share.sum()) + none

    def reweighed(commit: Floats | None) -> Floats | None:
        if commit is None:
            return None
        level, both, share, total = hypotheses(commit, max(1.0 - float(commit.sum()), 0.0))
        return per_commit(at, (level + (both + share).sum(axis=0)) / total, ev.mass)

    level, both, share, total = hypotheses(post.commit, post.none)
    of_share = (share + both) / total
    likeliest = int(np.argmax(of_share.sum(axis=1)))
    path = steps[likeliest].path(of_share[likeliest], ev, least)
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
        slow_path=replace(path, p=float(of_share.sum()), alone=only),
    )


@dataclass(frozen=True, slots=True)
class ShareStep:
    """Counts of runs on the path before and behind each gap between measured positions.

    Likelihoods are (dependence of runs, gap, share).
    """

    ratio: Floats  # gap -> likelihood of two shares over that of one
    before: Floats
    behind: Floats
    offset: float

    @classmethod
    def of(cls, counts: Indices, runs: Indices, place: Indices, offset: float) -> ShareStep:
        """From the runs of each boot on the path and all, and the measured position of each."""
        table = np.zeros((len(FAR_RUNS_TOGETHER), int(place.max()) + 1, len(_SHARES)))
        for row, (together, _) in zip(table, FAR_RUNS_TOGETHER, strict=True):
            np.add.at(row, place, _ln_counts(counts, runs, together))
        upto = np.cumsum(table, axis=1)
        ln_weights = np.log([w for _, w in FAR_RUNS_TOGETHER])
        mean = math.log(len(_SHARES))
        before, behind = upto[:, :-1], upto[:, -1:] - upto[:, :-1]
        one = float(ln_sum(ln_sum(upto[:, -1], axis=1) - mean + ln_weights))
        two = ln_sum(before, axis=2) + ln_sum(behind, axis=2) - 2.0 * mean + ln_weights[:, None]
        ratio = np.exp(np.minimum(ln_sum(two, axis=0) - one, 600.0))
        return cls(ratio, before + ln_weights[:, None, None], behind, offset)

    def path(self, gaps: Floats, ev: Evidence, least: float) -> SlowPath:
        """The shares before and behind the step, weighed over `gaps`, and what they do to the mean.

        `small`: P(the mean changes by less than `least`).
        """
        joint = np.zeros((len(_SHARES), len(_SHARES)))
        for g, weight in enumerate(gaps):
            ln = ln_sum(self.before[:, g, :, None] + self.behind[:, g, None, :], axis=0)
            likely = np.exp(ln - ln.max())
            joint += weight * likely / likely.sum()
        joint /= max(float(joint.sum()), 1e-300)
        mean = _mean_effect(_SHARES, self.offset, ev)
        change = mean[None, :] - mean[:, None]
        return SlowPath(
            before=float(joint.sum(axis=1) @ _SHARES),
            behind=float(joint.sum(axis=0) @ _SHARES),
            offset=self.offset,
            change=float((joint * change).sum()),
            small=float(joint[np.abs(change) < least].sum()),
        )


def _ln_counts(counts: Indices, runs: Indices, together: float) -> Floats:
    """(boot, share) -> ln likelihood of its count."""
    k, n, share = counts[:, None], runs[:, None], _SHARES[None, :]
    if together == 0.0:
        return np.asarray(k * np.log(share) + (n - k) * np.log1p(-share))
    size = 1.0 / together - 1.0
    a, b = share * size, (1.0 - share) * size
    return np.asarray(betaln(k + a, n - k + b) - betaln(a, b))


def _mean_effect(share: Floats, offset: float, ev: Evidence) -> Floats:
    """What a share of runs that are off by `offset` does to the mean, on the effect scale."""
    return np.log1p(share * math.expm1(offset)) if ev.ratio else share * offset
