"""A bound of the scale that whole boots reach: the share of a cache's hits, a link's bandwidth.

A value at a bound says that the level is there or beyond, and nothing about the noise.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.stats.rounding import last_digit

_FEWEST_OFF: Final = 3  # other values
_EQUAL: Final = 0.1  # share of them that may be equal to another
_CHANCE: Final = 1e-6  # that rounding makes as many boots equal
_PARTS: Final = 1000  # most steps of rounding in the smallest distance of two values
_EVEN: Final = 1e-4  # that a distance may be off a multiple of a step, in steps
_DENSEST: Final = 4.0  # density of values where it is largest, over its mean


@dataclass(frozen=True, slots=True)
class Bound:
    """No value is above `value`, or, if it is not `upper`, none is below it."""

    value: float
    upper: bool

    @property
    def beyond(self) -> str:
        """Where no value is."""
        return "above" if self.upper else "below"

    def holds_all(self, runs: Iterable[float]) -> bool:
        """Whether every run of a boot is at the bound."""
        return all(run == self.value for run in runs)


def reached_bound(kernels: Iterable[Sequence[Sequence[float]]]) -> Bound | None:
    """Return the bound that whole boots reach; None if there is none.

    `kernels`: the runs of the boots of each image. At a bound alone values are equal: two boots or
    more have the largest or the smallest value in every run, which rounding does not explain, and
    an image that reaches it has other values too, hardly any of which are equal (not so where
    boots repeat).
    """
    images = [[frozenset(runs) for runs in boots] for boots in kernels]
    of_images = [frozenset[float]().union(*image) for image in images]
    boots = [runs for image in images for runs in image]
    for upper in (True, False) if boots else ():
        value = (max if upper else min)(max(runs) if upper else min(runs) for runs in boots)
        whole = boots.count(frozenset({value}))
        off = [v for runs in boots for v in runs if v != value]
        levels = sorted({value, *off})
        if (
            whole > 1
            and len(off) >= _FEWEST_OFF
            and len(levels) - 1 >= (1.0 - _EQUAL) * len(off)
            and any(value in seen and len(seen) > 1 for seen in of_images)
            and _ln_chance(levels, len(boots), whole) < math.log(_CHANCE)
        ):
            return Bound(value, upper)
    return None


def _ln_chance(levels: Sequence[float], boots: int, equal: int) -> float:
    """ln of an upper bound of P(so many of the boots are equal by rounding)."""
    step, width = max(_lattice(levels), min(map(last_digit, levels))), levels[-1] - levels[0]
    if not math.isfinite(width):
        return 0.0
    share = min(max(_DENSEST * step / width, sys.float_info.min), 1.0)
    return math.log(math.comb(boots, equal)) + (equal - 1) * math.log(share)


def _lattice(levels: Sequence[float]) -> float:
    """The step of which all distances of the levels are multiples, if it is a `_PARTS`th of the
    smallest or more; else 0."""
    gaps = [b - a for a, b in itertools.pairwise(levels)]
    least = min(gaps)
    if not math.isfinite(max(gaps) / least * _PARTS):
        return 0.0
    for parts in range(1, _PARTS + 1):
        steps = (gap / least * parts for gap in gaps)
        if all(abs(n - round(n)) <= _EVEN for n in steps):
            return least / parts
    return 0.0
