"""Noise prior of a benchmark without history, estimated from its own boots so far. Pure.

A standard deviation s has the prior ln s ~ N(ln 2 %, 1.2^2), which puts about 95 % of benchmarks
between 0.2 % and 20 %. The estimate is the mode of the posterior after d degrees of freedom with
sum of squares SS, the root of

    -d + SS / s^2 - (ln s - ln 2 %) / 1.2^2 = 0

which decreases with s and is found by bisection. Between boots, one standard deviation of ln s is
added because boots are few. Two pairs of equal boots give 0.2 %, not 0. The engine takes the
estimate as a weak prior (`certainty`) and weighs all boots again itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from swingbot.core.model.noise import NoisePrior
from swingbot.core.stats.moments import mean

USUAL: Final = 0.02  # a benchmark on a machine in use
_LN_SD: Final = 1.2
_CERTAINTY: Final = 0.75  # +-100 %: the engine counts the same boots again
_FLOOR: Final = 1e-4  # relative to the level; no benchmark is assumed to repeat better
_COARSE: Final = (
    0.03  # upper limit for the effect of rounding; small integers are more likely counts
)
# difference between commits that change nothing; at most a fifth of the smallest effect sought
_LAYOUT: Final = 0.002

Boots = Mapping[str, Sequence[Sequence[float]]]  # commit -> boots -> values of its runs


@dataclass(frozen=True, slots=True)
class SumOfSquares:
    """Squares about the mean, and their degrees of freedom."""

    squares: float
    df: int

    def mode(self, centre: float = USUAL) -> float:
        """Most likely standard deviation, by the formula in the module docstring."""
        low, high = math.log(_FLOOR), math.log(10.0)
        for _ in range(60):
            ln = (low + high) / 2
            slope = (
                -self.df + self.squares * math.exp(-2 * ln) - (ln - math.log(centre)) / _LN_SD**2
            )
            low, high = (ln, high) if slope > 0 else (low, ln)
        return math.exp(low)

    def careful(self) -> float:
        """Upper estimate: one standard deviation of ln s above the mode.

        A few boots that agree by chance must not make all others look like steps.
        """
        return (
            self.mode() * math.exp(1.0 / math.sqrt(2.0 * self.df + 1.0 / _LN_SD**2))
            if self.df
            else self.mode()
        )


def estimate(boots: Boots, ends: tuple[str, str], min_effect: float) -> NoisePrior:
    """Estimate the noise relative to the level. `min_effect` is a fraction (0.01 is 1 %)."""
    layout = min(_LAYOUT, min_effect / 5)
    scaled, floor = _scaled(boots, ends)
    within, between, runs = _within(scaled), _between(scaled), _usual_runs(scaled)
    boot_mean = max(between.careful(), floor)
    # With one run per boot the two sources cannot be separated, which makes no difference.
    if not within.df:
        share = boot_mean / math.sqrt(2.0)
        return NoisePrior(sd_run=share, sd_boot=share, sd_layout=layout, certainty=_CERTAINTY)
    run = max(within.mode(), floor)
    between_variance = boot_mean**2 - run**2 / runs if between.df else run**2 / 4
    return NoisePrior(
        sd_run=run,
        sd_boot=math.sqrt(max(between_variance, run**2 / 25)),
        sd_layout=layout,
        certainty=_CERTAINTY,
    )


def known(pct: float, min_effect: float) -> NoisePrior:
    """Prior from a user-supplied standard deviation between boots, in percent of the level."""
    sd = max(pct / 100.0, _FLOOR) / math.sqrt(2.0)
    return NoisePrior(sd_run=sd, sd_boot=sd, sd_layout=min(_LAYOUT, min_effect / 5), certainty=2.0)


def _scaled(boots: Boots, ends: tuple[str, str]) -> tuple[Boots, float]:
    """Values on the engine's scale, and the standard deviation that rounding hides.

    The scale is logarithmic if all values are positive, else relative to the larger end's level.
    """
    values = [v for of in boots.values() for boot in of for v in boot]
    if not values:
        return {}, _FLOOR
    if all(v > 0 for v in values):
        level = sorted(values)[len(values) // 2]
        return {
            sha: [[math.log(v) for v in boot] for boot in of] for sha, of in boots.items()
        }, _floor(values, level)
    level = (
        max(
            (abs(mean([mean(b) for b in boots[end]])) for end in ends if boots.get(end)),
            default=0.0,
        )
        or max(abs(v) for v in values)
        or 1.0
    )
    return {sha: [[v / level for v in boot] for boot in of] for sha, of in boots.items()}, _floor(
        values, level
    )


def _floor(values: Sequence[float], level: float) -> float:
    return min(max(_FLOOR, _rounding(values) / level), _COARSE)


def _rounding(values: Iterable[float]) -> float:
    """Standard deviation of the rounding error of the printed values (uniform: step / sqrt 12)."""
    step = Decimal(1)
    for value in values:
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        step = min(step, Decimal(10) ** int(exponent))
    return float(step) / math.sqrt(12.0)


def _within(boots: Boots) -> SumOfSquares:
    groups = [boot for of in boots.values() for boot in of]
    return SumOfSquares(sum(_squares(g) for g in groups), sum(len(g) - 1 for g in groups))


def _between(boots: Boots) -> SumOfSquares:
    means = [[mean(boot) for boot in of] for of in boots.values() if of]
    return SumOfSquares(sum(_squares(g) for g in means), sum(len(g) - 1 for g in means))


def _usual_runs(boots: Boots) -> float:
    counts = [len(boot) for of in boots.values() for boot in of]
    return max(1.0, len(counts) / sum(1.0 / n for n in counts)) if counts else 1.0


def _squares(values: Sequence[float]) -> float:
    middle = mean(values)
    return math.fsum((v - middle) ** 2 for v in values)
