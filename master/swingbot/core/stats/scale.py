"""Scales on which a difference of two levels is an effect: logarithm, root, plain difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from swingbot.core.stats.moments import mean
from swingbot.core.stats.rows import Form, Rule

FAR = 700.0  # exp of a larger number overflows


class Scale(Protocol):
    """Map levels with `of`; differences d of mapped levels become effects and percentages.

    All maps are odd in d, so that swapping the sides negates them.
    """

    def of(self, value: float) -> float: ...
    def effect(self, d: float) -> float: ...
    def slope(self, d: float) -> float:
        """Return d effect / d d, to convert a standard error."""
        ...

    @property
    def form(self) -> Form: ...
    @property
    def unit(self) -> float:
        """The size of 1 on this scale, on a scale of the same form that is independent of
        levels."""
        ...

    @property
    def relative(self) -> float:
        """The size of a small relative spread of 1 on this scale."""
        ...

    def stretch(self, value: float) -> float:
        """Return the size of a small relative spread of 1 around `value` on this scale."""
        ...

    def threshold(self, pct: float) -> float:
        """Return the d of a change of `pct` percent."""
        ...

    def margin(self, d: float) -> float:
        """Return the change in percent for d >= 0; inverse of `threshold`."""
        ...

    def pct(self, d: float, base_level: float) -> float | None: ...
    def floor(self, rule: Rule) -> float:
        """Return the lower limit for the spread of one boot on this scale."""
        ...


@dataclass(frozen=True, slots=True)
class LogScale:
    """Ratios, for levels above zero."""

    @property
    def form(self) -> Form:
        return "ratio"

    @property
    def unit(self) -> float:
        return 1.0

    def of(self, value: float) -> float:
        return math.log(value)

    def effect(self, d: float) -> float:
        return d

    def slope(self, d: float) -> float:
        return 1.0

    @property
    def relative(self) -> float:
        return 1.0

    def stretch(self, value: float) -> float:
        return 1.0

    def threshold(self, pct: float) -> float:
        return math.log1p(pct / 100.0)

    def margin(self, d: float) -> float:
        return 100.0 * math.expm1(min(d, FAR))

    def pct(self, d: float, base_level: float) -> float | None:
        return 100.0 * math.expm1(min(d, FAR))

    def floor(self, rule: Rule) -> float:
        return rule.spread_floor


@dataclass(frozen=True, slots=True)
class SqrtScale:
    """Counts: the root of a Poisson count has a spread of 1/2 for any mean.

    `middle` is the mean of the two rooted levels, above 0. With q = middle, d corresponds to the
    ratio (q + d/2)^2 / (q - d/2)^2, which is exact at the measured d and odd in d.
    """

    middle: float
    runs: float  # number of runs averaged by one boot; divides the Poisson variance

    @property
    def form(self) -> Form:
        return "root"

    @property
    def unit(self) -> float:
        return 1.0

    def of(self, value: float) -> float:
        return math.sqrt(value)

    def effect(self, d: float) -> float:
        share = d / (2.0 * self.middle)
        return 4.0 * math.atanh(share) if abs(share) < 1.0 else math.copysign(FAR, d)

    def slope(self, d: float) -> float:
        share = d / (2.0 * self.middle)
        return 2.0 / self.middle / (1.0 - share * share) if abs(share) < 1.0 else math.inf

    @property
    def relative(self) -> float:
        return self.middle / 2.0

    def stretch(self, value: float) -> float:
        return math.sqrt(max(value, 0.0)) / 2.0

    def threshold(self, pct: float) -> float:
        return 2.0 * self.middle * math.tanh(math.log1p(pct / 100.0) / 4.0)

    def margin(self, d: float) -> float:
        return 100.0 * math.expm1(min(self.effect(d), FAR))

    def pct(self, d: float, base_level: float) -> float | None:
        return 100.0 * math.expm1(min(self.effect(d), FAR)) if base_level else None

    def floor(self, rule: Rule) -> float:
        poisson = 0.5 / math.sqrt(self.runs) if rule.poisson else 0.0
        return max(rule.spread_floor * self.relative, poisson)


@dataclass(frozen=True, slots=True)
class DifferenceScale:
    """Differences in `unit`: 1 point for a share, otherwise the larger of the two magnitudes."""

    unit: float
    magnitude: float  # the larger of the two levels, for the spread floor

    @property
    def form(self) -> Form:
        return "difference"

    def of(self, value: float) -> float:
        return value / self.unit

    def effect(self, d: float) -> float:
        return d * self.unit / self.magnitude

    def slope(self, d: float) -> float:
        return self.unit / self.magnitude

    @property
    def relative(self) -> float:
        return self.magnitude / self.unit

    def stretch(self, value: float) -> float:
        return abs(value) / self.unit

    def threshold(self, pct: float) -> float:
        return pct / 100.0

    def margin(self, d: float) -> float:
        return 100.0 * d

    def pct(self, d: float, base_level: float) -> float | None:
        return 100.0 * d * self.unit / abs(base_level) if base_level else None

    def floor(self, rule: Rule) -> float:
        return rule.spread_floor * self.relative


def scale_for(base: Sequence[float], head: Sequence[float], rule: Rule, runs: float) -> Scale:
    """Return the rule's scale if it can map all boots, and differences otherwise.

    `runs` is the harmonic mean of the number of runs per boot.
    """
    least = min(*base, *head)
    if rule.form == "ratio" and least > 0:
        return LogScale()
    middle = (math.sqrt(mean(base)) + math.sqrt(mean(head))) / 2.0 if least >= 0 else 0.0
    if rule.form == "root" and middle > 0:
        return SqrtScale(middle, runs)
    magnitude = max(abs(mean(base)), abs(mean(head))) or max(map(abs, (*base, *head))) or 1.0
    return DifferenceScale(100.0 if rule.points else magnitude, magnitude)
