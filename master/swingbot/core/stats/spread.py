"""The precision of an effect: variances, degrees of freedom, lower limits and prior knowledge.

Implements Welch's, Yuen's and paired variances.
"""

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
    """Effect of the other rows of a family on the spread of one row."""

    rows: int
    alpha: float  # of the family
    own_share: float  # share of alpha for the row's own spread
    pooled: EffectSpread | None = None  # None: only the row's own boots are known
    independent: tuple[float, float] = (1.0, 1.0)  # equivalent independent rows at either alpha

    @property
    def deciding(self) -> EffectSpread | None:
        """The pooled spread if it applies.

        Otherwise the own spreads hold simultaneously by Bonferroni's inequality.
        """
        return self.pooled if self.own_share * self.rows > 1.0 else None

    def independent_at(self, alpha: float) -> float:
        """Return the equivalent number of independent rows at one of the two alphas."""
        return self.independent[0] if alpha <= self.alpha else self.independent[1]


@dataclass(frozen=True, slots=True)
class EffectSpread:
    """Spread of a difference on the scale of effects."""

    one_boot: float  # variance with a single counted boot per side (a single pair)
    variance: float  # of the difference as measured, without `fixed`
    fixed: float  # variance that does not average out with more boots
    own_df: float  # degrees of freedom of `variance`
    fixed_df: float = math.inf  # degrees of freedom of `fixed`; inf: known exactly
    shared: Shared | None = None  # family of simultaneous rows; None: single comparison

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance + self.fixed)

    @property
    def df(self) -> float:
        """Degrees of freedom of the sum, by Satterthwaite."""
        own = self.variance / (self.variance + self.fixed)
        return 1.0 / (own**2 / self.own_df + (1.0 - own) ** 2 / self.fixed_df)

    def half(self, alpha: float) -> float:
        """Return half the width of the interval that misses with probability `alpha`.

        In a family, `alpha` is the probability that any interval misses. Never narrower than with
        one of the two variances alone, as the degrees of freedom of both could outweigh the other.
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
            t_quantile(sure, self.fixed_df) * math.sqrt(self.fixed),
        )

    def p(self, d: float) -> float:
        """Return the two-sided P of a difference of d if there is none.

        In a family, of at least one such difference.
        """
        if self.shared is None:
            return self._p(d)
        own = min(1.0, self._p(d) / self.shared.own_share)
        pooled = self.shared.deciding
        return max(own, together(pooled.p(d), self.shared.independent[0])) if pooled else own

    def _p(self, d: float) -> float:
        parts = [(self.df, self.sd), (self.own_df, math.sqrt(self.variance))]
        if self.fixed:
            parts.append((self.fixed_df, math.sqrt(self.fixed)))
        return 2.0 * max(float(stdtr(df, -abs(d) / sd)) for df, sd in parts)

    @property
    def governing(self) -> EffectSpread:
        """The more precise spread: the family's, if it applies."""
        return (self.shared and self.shared.deciding) or self

    def at(self, n: int, df: float) -> EffectSpread:
        """Return the spread with n counted boots per side and `df` degrees of freedom of its
        own."""
        shared = self.shared
        if shared is not None and shared.pooled is not None:
            shared = replace(shared, pooled=shared.pooled.at(n, shared.pooled.own_df))
        return replace(self, variance=self.one_boot / n, own_df=df, shared=shared)


@dataclass(frozen=True, slots=True)
class _Part:
    """Variance and degrees of freedom of one side, or of the pairs."""

    variance: float  # of one value
    n: int  # number of values counted
    own_df: float
    df: float  # including prior knowledge


def spread_of(levels: Levels, pairs: bool, rule: Rule) -> EffectSpread:
    """Return the spread of the difference of two levels, using the family if there is one."""
    own, floor = _own(levels, pairs, rule)
    if rule.family is None:
        return own
    rows, scale = rule.family.rows, levels.scale
    from_family = rule.family.pooled(Basis(scale.form, levels.medians, levels.trimmed, pairs))
    if from_family is None:
        return replace(own, shared=Shared(rows, rule.alpha, unlike_share(rows)))
    pooled = _pooled_spread(from_family, levels, pairs, rule, floor)
    shared = Shared(rows, rule.alpha, from_family.own_share, pooled, from_family.independent)
    return replace(own, shared=shared)


def _fixed(rule: Rule, unit: float) -> tuple[float, float]:
    """Return the variance that more boots do not average out, and its degrees of freedom."""
    fixed = 2.0 * unit**2 * (rule.layout**2 + rule.day**2)
    if not rule.layout:
        return fixed, math.inf
    return fixed, rule.layout_df * (1.0 + (rule.day / rule.layout) ** 2) ** 2


def _pooled_spread(
    pooled: Pooled, levels: Levels, pairs: bool, rule: Rule, floor: float
) -> EffectSpread:
    """Return the spread of the row's difference from the pooled variance of one boot or pair."""
    scale, known = levels.scale, max(rule.prior_df, 0.0)
    before = (rule.prior_sd * scale.relative) ** 2
    df = pooled.df + known
    variance = (pooled.df * pooled.variance / scale.unit**2 + known * before) / df
    variance = max(variance, floor * floor)
    counts = [counted(len(side), levels.trimmed) for side in levels.units]
    share = 1.0 / counts[0] if pairs else math.fsum(1.0 / n for n in counts)
    fixed, fixed_df = _fixed(rule, scale.relative)
    each = variance * (1.0 if pairs else 2.0)
    return EffectSpread(each, variance * share, fixed, df, fixed_df)


def _own(levels: Levels, pairs: bool, rule: Rule) -> tuple[EffectSpread, float]:
    """Return (spread from the row's own boots, lower limit for the spread of one boot or pair)."""
    scale = levels.scale
    floor = scale.floor(replace(rule, poisson=False) if pairs else rule)
    values = [[scale.of(v) for v in side] for side in levels.units]
    unit = scale.relative  # priors and layout are relative
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
    """Return a lower limit for the spread between boots, derived from their runs.

    Runs alone would make n boots agree better than this in 1 of 20 cases. It guards against boots
    that agree by rounding; independent boots are not affected.
    """
    if levels.runs is None:
        return 0.0
    variance, df = levels.runs
    return math.sqrt(variance * float(fdtri(n - 1, df, RUNS_ALIKE_P)))


def counted(n: int, trimmed: bool) -> int:
    """Return how many of n boots are in the level."""
    return n - 2 * int(WILD_SHARE * n) if trimmed else n


def _part(values: Sequence[float], floor: float, trimmed: bool, rule: Rule, unit: float) -> _Part:
    """Return the variance of one value and its degrees of freedom.

    A known spread counts as `prior_df` additional observations.
    """
    n = counted(len(values), trimmed)
    variance = middle(values).variance if trimmed else stddev(values) ** 2
    known = max(rule.prior_df, 0.0)
    variance = ((n - 1) * variance + known * (rule.prior_sd * unit) ** 2) / (n - 1 + known)
    return _Part(max(variance, floor * floor), n, n - 1, n - 1 + known)


def most_df(own: Sequence[float]) -> float:
    """Return the maximum degrees of freedom for sides with `own` ones.

    Equal sides add up. Otherwise the limit is 1.5 times that of the smaller side: if it is the
    noisier one, the boots of the other do not determine its spread.
    """
    if len(own) == 1:
        return own[0]
    small, large = sorted(own)
    return small * (1.0 + max(0.5, (small + 1.0) / (large + 1.0)))


def _combined(parts: Sequence[_Part], rule: Rule, unit: float) -> EffectSpread:
    """Combine the parts by Welch, or by the pooled form where that is wider.

    With 2 boots against 20, Welch's form alone is wrong in 5 % instead of 0.5 % of cases: the
    spread of the 2 is too small by chance and then dominates. The degrees of freedom of unequal
    sides are therefore bounded by those of the smaller one; see `most_df`.
    """
    fixed, fixed_df = _fixed(rule, unit)
    most = most_df([p.own_df for p in parts]) + max(rule.prior_df, 0.0)
    variance = math.fsum(p.variance / p.n for p in parts)
    df = min(variance**2 / math.fsum((p.variance / p.n) ** 2 / p.df for p in parts), most)
    each = math.fsum(p.variance for p in parts)
    spread = EffectSpread(each, variance, fixed, df, fixed_df)
    if len(parts) == 1 or parts[0].n == parts[1].n:
        return spread
    pooled = math.fsum(p.variance * p.df for p in parts) / sum(p.df for p in parts)
    other = replace(
        spread,
        one_boot=2.0 * pooled,
        variance=pooled * sum(1.0 / p.n for p in parts),
        own_df=most,
    )
    return max(spread, other, key=lambda s: s.half(rule.alpha))
