"""How well an effect is known: Welch's, Yuen's and paired variances with their degrees of freedom, floors and earlier knowledge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import fdtri, stdtr

from swingbot.core.stats.moments import stddev, t_quantile
from swingbot.core.stats.robust import middle
from swingbot.core.stats.rows import Rule
from swingbot.core.stats.samples import Levels
from swingbot.core.thresholds import RUNS_ALIKE_P, WILD_SHARE


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a difference on the scale of effects."""

    one_boot: float  # variance that a single counted boot a side (a single pair) has
    variance: float  # of the difference as measured, without `fixed`
    fixed: float  # variance that no number of boots averages out
    own_df: float  # of `variance`

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance + self.fixed)

    @property
    def df(self) -> float:
        """Of the sum, by Satterthwaite: `fixed` is known."""
        return self.own_df * ((self.variance + self.fixed) / self.variance) ** 2

    def half(self, alpha: float) -> float:
        """Half the width of the interval that misses with probability `alpha`.

        Never narrower than without `fixed`: its degrees of freedom would otherwise take away more than its variance adds.
        """
        sure = 1.0 - alpha / 2.0
        return max(
            t_quantile(sure, self.df) * self.sd,
            t_quantile(sure, self.own_df) * math.sqrt(self.variance),
        )

    def p(self, d: float) -> float:
        """Two-sided, of a difference as large as d when there is none."""
        return 2.0 * max(
            float(stdtr(self.df, -abs(d) / self.sd)),
            float(stdtr(self.own_df, -abs(d) / math.sqrt(self.variance))),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """One side, or the pairs."""

    variance: float  # of one value
    n: int  # values counted
    own_df: float
    df: float  # with what was known before


def spread_of(levels: Levels, pairs: bool, rule: Rule) -> Spread:
    scale, at = levels.scale, levels.at
    floor = scale.floor(replace(rule, poisson=False) if pairs else rule, *at)
    values = [[scale.of(v) for v in side] for side in levels.units]
    unit = scale.relative  # priors and layout are given in relative terms
    if pairs:
        differences = [h - b for b, h in zip(*values, strict=True)]
        return _combined(
            [_part(differences, math.sqrt(2.0) * floor, levels.trimmed, rule, unit)], rule, unit
        )
    floors = [max(floor, _alike(levels, len(side))) for side in values]
    return _combined(
        [
            _part(side, least, levels.trimmed, rule, unit)
            for side, least in zip(values, floors, strict=True)
        ],
        rule,
        unit,
    )


def _alike(levels: Levels, n: int) -> float:
    """Boots are not more alike than their runs allow: the spread of n boots that the runs alone go below in 1 of 20.

    It guards against boots that agree by accident of rounding; independent boots do not notice it.
    """
    if levels.runs is None:
        return 0.0
    variance, df = levels.runs
    return math.sqrt(variance * float(fdtri(n - 1, df, RUNS_ALIKE_P)))


def counted(n: int, trimmed: bool) -> int:
    """How many of n boots make the level."""
    return n - 2 * int(WILD_SHARE * n) if trimmed else n


def _part(values: Sequence[float], floor: float, trimmed: bool, rule: Rule, unit: float) -> _Part:
    """Variance of one value and its degrees of freedom. A known spread counts as `prior_df` more observations of it."""
    n = counted(len(values), trimmed)
    variance = middle(values).variance if trimmed else stddev(values) ** 2
    known = max(rule.prior_df, 0.0)
    variance = ((n - 1) * variance + known * (rule.prior_sd * unit) ** 2) / (n - 1 + known)
    return _Part(max(variance, floor * floor), n, n - 1, n - 1 + known)


def most_df(own: Sequence[float]) -> float:
    """Degrees of freedom that sides with `own` ones may have together: all of them where they are equal, at least half as many more as
    the smaller side has where they are not. If that side is the noisier one, the boots of the other say nothing of its spread.
    """
    if len(own) == 1:
        return own[0]
    small, large = sorted(own)
    return small * (1.0 + max(0.5, (small + 1.0) / (large + 1.0)))


def _combined(parts: Sequence[_Part], rule: Rule, unit: float) -> Spread:
    """Welch's, with no more degrees of freedom than there are values; or the pooled form where that is the wider.

    With 2 boots against 20, Welch's alone is wrong in 5 % instead of 0.5 %: the spread of the 2 is too small by chance and then governs.
    So the degrees of freedom of unequal sides are bounded by those of the smaller one: see `most_df`.
    """
    fixed = 2.0 * (rule.layout * unit) ** 2
    most = most_df([p.own_df for p in parts]) + max(rule.prior_df, 0.0)
    variance = math.fsum(p.variance / p.n for p in parts)
    df = min(variance**2 / math.fsum((p.variance / p.n) ** 2 / p.df for p in parts), most)
    found = Spread(math.fsum(p.variance for p in parts), variance, fixed, df)
    if len(parts) == 1 or parts[0].n == parts[1].n:
        return found
    pooled = math.fsum(p.variance * p.df for p in parts) / sum(p.df for p in parts)
    other = Spread(2.0 * pooled, pooled * sum(1.0 / p.n for p in parts), fixed, most)
    return max(found, other, key=lambda s: s.half(rule.alpha))
