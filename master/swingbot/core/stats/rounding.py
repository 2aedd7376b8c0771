"""Values that are printed in coarse steps: whole numbers, ticks of a clock.

The mean of rounded values differs from the mean of what was rounded, and more values do not help
where their noise is smaller than a step.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import numpy as np
from scipy.special import chdtri

from swingbot.core.stats.moments import squares
from swingbot.core.thresholds import STEP_P

# Odds at which distinct values have a common divisor by chance: about g^-(m - 1) for m values
_ODDS: Final = 1e5
_FEWEST_DISTINCT: Final = 3  # values whose common divisor, or smallest distance, is a step
_EXACT: Final = 2.0**53  # units of the last digit that a value holds exactly
_OF_GAP: Final = 0.2  # of the distance of neighbouring levels: a smaller step is none
_UNEVEN: Final = 0.3  # that a distance may be off a multiple, as a share
_AS_BY_CHANCE: Final = 0.5  # changes between neighbours of noise, of those in a random order
_HARMONICS: Final = 20
_SPREAD_P: Final = 0.1  # that the spread of what was rounded is smaller than assumed


def last_digit(value: float) -> float:
    """Return the unit of the last digit, 1 at most: 0.01 of 100.31."""
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return 10.0 ** min(int(exponent), 0)


def printed_step(values: Iterable[float]) -> float:
    """Return the step in which the values were printed, in their unit; 0.0 without a value.

    It is the unit of the last digit, or a larger common divisor that chance does not explain, such
    as that of times from a clock of 100 Hz.
    """
    distinct = sorted(set(values))
    if not distinct:
        return 0.0
    unit = min(map(last_digit, distinct))
    if len(distinct) >= _FEWEST_DISTINCT and max(-distinct[0], distinct[-1]) < _EXACT * unit:
        common = math.gcd(*(round(abs(value) / unit) for value in distinct))
        if math.log(common) * (len(distinct) - 1) >= math.log(_ODDS):
            return unit * common
    return unit


def tied_step(values: Sequence[float]) -> float:
    """Return the smallest distance of the values if more than half are equal to others, else
    0.0."""
    levels = sorted(set(values))
    if len(levels) < _FEWEST_DISTINCT or 2 * len(levels) >= len(values):
        return 0.0
    return min(b - a for a, b in itertools.pairwise(levels))


def unrounded(values: Sequence[float]) -> Sequence[float]:
    """Spread noise that repeats over the step in which it was printed, by fixed random numbers.

    What was rounded is one of these values: neither levels nor noise are better known. Levels that
    repeat exactly, one after another, are returned as they are, and so are zeros in a longer row
    than chance explains: nothing happened there.
    """
    levels, changes = sorted(set(values)), sum(a != b for a, b in itertools.pairwise(values))
    if len(levels) < 2 or 2 * len(levels) > len(values):
        return values
    counts = Counter(values)
    by_chance = len(values) - sum(n * n for n in counts.values()) / len(values)
    gaps = [b - a for a, b in itertools.pairwise(levels)]
    step = min(gaps) if _even(gaps) else printed_step(levels)
    if changes < _AS_BY_CHANCE * by_chance or step < _OF_GAP * min(gaps):
        return values
    dither = np.random.default_rng(0).uniform(-0.5, 0.5, len(values))
    spread = np.asarray(values) + np.where(_nothing(values), 0.0, step * dither)
    return [float(v) for v in spread] if min(values) <= 0.0 or spread.min() > 0.0 else values


def _nothing(values: Sequence[float]) -> list[bool]:
    """Return which values are in a row of zeros that is longer than chance explains."""
    share, marked = values.count(0.0) / len(values), []
    for zero, row in itertools.groupby(values, lambda value: value == 0.0):
        n = len(list(row))
        marked += [zero and len(values) * share**n < STEP_P] * n
    return marked


def _even(gaps: Sequence[float]) -> bool:
    """Whether the distances are multiples of the smallest, as of a rate over ticks of a clock."""
    times = [gap / min(gaps) for gap in gaps]
    return len(gaps) > 1 and all(abs(n - round(n)) < _UNEVEN * round(n) < 1.0 for n in times)


def rounding_bias(values: Sequence[float], step: float) -> float:
    """Return by how much rounding to `step` may move the mean of the values, in their unit.

    The error of rounding a Gaussian is a sum of harmonics of its mean, of the amplitudes
    `step / (pi k) exp(-2 (pi k sd / step)^2)` (Widrow and Kollar, Quantization Noise, 2008): half a
    step if the noise is much smaller than a step, nothing if it is larger. The spread is a lower
    limit, without the variance of rounding (Sheppard's correction).
    """
    if step <= 0.0:
        return 0.0
    spread = 0.0
    if len(values) > 1:
        total, unit = squares(values)
        variance = total * unit * unit / float(chdtri(len(values) - 1, _SPREAD_P))
        spread = min(math.sqrt(max(variance / step / step - 1.0 / 12.0, 0.0)), 1.0)
    bias = math.fsum(
        math.exp(-2.0 * (math.pi * k * spread) ** 2) / (math.pi * k)
        for k in range(1, _HARMONICS + 1)
    )
    return step * min(bias, 0.5)
