"""Scales on which the difference of two levels is an effect: logarithm, root, or plain difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from swingbot.core.stats.moments import mean
from swingbot.core.stats.rows import Form, Rule

FAR = 700.0  # exp of more than this has no double


class Scale(Protocol):
    """`of` maps a level; differences d of mapped levels become effects and percent. All maps are odd in d: swapping sides negates."""

    def of(self, value: float) -> float: ...
    def effect(self, d: float) -> float: ...
    def slope(self, d: float) -> float:
        """d effect / d d, to carry a standard error over."""
        ...

    @property
    def form(self) -> Form: ...
    @property
    def unit(self) -> float:
        """What 1 on this scale is on a scale of the same form that does not depend on the levels."""
        ...

    @property
    def relative(self) -> float:
        """What a small relative spread of 1 is on this scale."""
        ...

    def stretch(self, value: float) -> float:
        """What a small relative spread of 1 around `value` is on this scale."""
        ...

    def threshold(self, pct: float) -> float:
        """The d that a change of `pct` makes."""
        ...

    def margin(self, d: float) -> float:
        """The change in percent that a difference of d >= 0 makes; inverse of `threshold`."""
        ...

    def pct(self, d: float, base_level: float) -> float | None: ...
    def floor(self, rule: Rule, base_level: float, head_level: float) -> float:
        """Spread of one boot on this scale that no set of samples can go below."""
        ...


@dataclass(frozen=True, slots=True)
class LogScale:
    """Ratios. Levels above zero."""

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

    def floor(self, rule: Rule, base_level: float, head_level: float) -> float:
        return max(
            rule.spread_floor, rule.resolution / math.sqrt(12.0) / min(base_level, head_level)
        )


@dataclass(frozen=True, slots=True)
class SqrtScale:
    """Counts: the root of a Poisson count spreads by 1/2 whatever its mean. `middle` is the mean of the two rooted levels, above 0.

    With q = middle, (q + d/2)^2 / (q - d/2)^2 is the ratio that d stands for: exact at the measured d, odd in d.
    """

    middle: float
    runs: float  # that one boot averages; 1 over it is the Poisson variance left

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

    def floor(self, rule: Rule, base_level: float, head_level: float) -> float:
        rounding = rule.resolution / math.sqrt(12.0) / (2.0 * self.middle)
        poisson = 0.5 / math.sqrt(self.runs) if rule.poisson else 0.0
        return max(rule.spread_floor * self.relative, rounding, poisson)


@dataclass(frozen=True, slots=True)
class DifferenceScale:
    """Differences in units of `unit`: of 1 point for a share, else of the larger of the two magnitudes."""

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

    def floor(self, rule: Rule, base_level: float, head_level: float) -> float:
        return (
            max(rule.spread_floor * self.magnitude, rule.resolution / math.sqrt(12.0)) / self.unit
        )


def scale_for(base: Sequence[float], head: Sequence[float], rule: Rule, runs: float) -> Scale:
    """The rule's scale where the boots' values allow it, else differences. `runs`: harmonic mean of the runs of a boot."""
    least = min(*base, *head)
    if rule.form == "ratio" and least > 0:
        return LogScale()
    middle = (math.sqrt(mean(base)) + math.sqrt(mean(head))) / 2.0 if least >= 0 else 0.0
    if rule.form == "root" and middle > 0:
        return SqrtScale(middle, runs)
    magnitude = max(abs(mean(base)), abs(mean(head))) or max(map(abs, (*base, *head))) or 1.0
    return DifferenceScale(100.0 if rule.points else magnitude, magnitude)
