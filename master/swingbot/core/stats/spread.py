"""How well an effect is known: Welch's, Yuen's and paired variances with their degrees of freedom, floors and earlier knowledge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import fdtri, stdtr

from swingbot.core.stats.moments import stddev, t_quantile
from swingbot.core.stats.robust import middle
from swingbot.core.stats.rows import Basis, Pooled, Rule
from swingbot.core.stats.samples import Levels
from swingbot.core.stats.simultaneous import sidak, together, unlike_share
from swingbot.core.thresholds import RUNS_ALIKE_P, WILD_SHARE


@dataclass(frozen=True, slots=True)
class Shared:
    """What the other rows of a family do to the spread of one."""

    rows: int
    alpha: float  # of the family
    own_share: float  # of it, for the row's own spread
    pooled: Spread | None = None  # None: nothing but the row's own boots is known
    independent: tuple[float, float] = (1.0, 1.0)  # rows that need the same bound: at either alpha

    @property
    def deciding(self) -> Spread | None:
        """The pooled spread where it has a say: otherwise the own ones hold the rows together by Bonferroni's inequality."""
        return self.pooled if self.own_share * self.rows > 1.0 else None

    def independent_at(self, alpha: float) -> float:
        """Of the two alphas that a row is judged at."""
        return self.independent[0] if alpha <= self.alpha else self.independent[1]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of a difference on the scale of effects."""

    one_boot: float  # variance that a single counted boot a side (a single pair) has
    variance: float  # of the difference as measured, without `fixed`
    fixed: float  # variance that no number of boots averages out
    own_df: float  # of `variance`
    shared: Shared | None = None  # with other rows; None: this row stands alone

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance + self.fixed)

    @property
    def df(self) -> float:
        """Of the sum, by Satterthwaite: `fixed` is known."""
        return self.own_df * ((self.variance + self.fixed) / self.variance) ** 2

    def half(self, alpha: float) -> float:
        """Half the width of the interval that misses with probability `alpha`; in a family: of the intervals that miss together so often.

        Never narrower than without `fixed`: its degrees of freedom would otherwise take away more than its variance adds.
        """
        if self.shared is None:
            return self._half(alpha)
        own = self._half(alpha * self.shared.own_share)
        pooled = self.shared.deciding
        if pooled is None:
            return own
        return max(own, pooled.half(sidak(alpha, self.shared.independent_at(alpha))))

    def _half(self, alpha: float) -> float:
        sure = 1.0 - alpha / 2.0
        return max(
            t_quantile(sure, self.df) * self.sd,
            t_quantile(sure, self.own_df) * math.sqrt(self.variance),
        )

    def p(self, d: float) -> float:
        """Two-sided, of a difference as large as d when there is none; in a family: of one or more so large."""
        if self.shared is None:
            return self._p(d)
        own = min(1.0, self._p(d) / self.shared.own_share)
        pooled = self.shared.deciding
        return max(own, together(pooled.p(d), self.shared.independent[0])) if pooled else own

    def _p(self, d: float) -> float:
        return 2.0 * max(
            float(stdtr(self.df, -abs(d) / self.sd)),
            float(stdtr(self.own_df, -abs(d) / math.sqrt(self.variance))),
        )

    @property
    def governing(self) -> Spread:
        """The one that is better known: the family's where that has a say."""
        return (self.shared and self.shared.deciding) or self

    def at(self, n: int, df: float) -> Spread:
        """With n counted boots a side, the row's own spread with `df` degrees of freedom."""
        shared = self.shared
        if shared is not None and shared.pooled is not None:
            shared = replace(shared, pooled=shared.pooled.at(n, shared.pooled.own_df))
        return Spread(self.one_boot, self.one_boot / n, self.fixed, df, shared)


@dataclass(frozen=True, slots=True)
class _Part:
    """One side, or the pairs."""

    variance: float  # of one value
    n: int  # values counted
    own_df: float
    df: float  # with what was known before


def spread_of(levels: Levels, pairs: bool, rule: Rule) -> Spread:
    """Of the difference of two levels; in a family with what the other rows say of it."""
    own, floor = _own(levels, pairs, rule)
    if rule.family is None:
        return own
    rows, scale = rule.family.rows, levels.scale
    found = rule.family.pooled(Basis(scale.form, levels.medians, levels.trimmed, pairs))
    if found is None:
        return replace(own, shared=Shared(rows, rule.alpha, unlike_share(rows)))
    pooled = _pooled_spread(found, levels, pairs, rule, floor)
    shared = Shared(rows, rule.alpha, found.own_share, pooled, found.independent)
    return replace(own, shared=shared)


def _pooled_spread(found: Pooled, levels: Levels, pairs: bool, rule: Rule, floor: float) -> Spread:
    """Of the row's difference, by the pooled variance of one boot (of one pair)."""
    scale, known = levels.scale, max(rule.prior_df, 0.0)
    before = (rule.prior_sd * scale.relative) ** 2
    df = found.df + known
    variance = (found.df * found.variance / scale.unit**2 + known * before) / df
    variance = max(variance, floor * floor)
    counts = [counted(len(side), levels.trimmed) for side in levels.units]
    share = 1.0 / counts[0] if pairs else math.fsum(1.0 / n for n in counts)
    fixed = 2.0 * (rule.layout * scale.relative) ** 2
    return Spread(variance * (1.0 if pairs else 2.0), variance * share, fixed, df)


def _own(levels: Levels, pairs: bool, rule: Rule) -> tuple[Spread, float]:
    """(of the row's own boots, the least spread that one boot or pair may have)."""
    scale, at = levels.scale, levels.at
    floor = scale.floor(replace(rule, poisson=False) if pairs else rule, *at)
    values = [[scale.of(v) for v in side] for side in levels.units]
    unit = scale.relative  # priors and layout are given in relative terms
    if pairs:
        differences = [h - b for b, h in zip(*values, strict=True)]
        least = math.sqrt(2.0) * floor
        part = _part(differences, least, levels.trimmed, rule, unit)
        return _combined([part], rule, unit), least
    floors = [max(floor, _alike(levels, len(side))) for side in values]
    parts = [
        _part(side, least, levels.trimmed, rule, unit)
        for side, least in zip(values, floors, strict=True)
    ]
    return _combined(parts, rule, unit), max(floors)


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
