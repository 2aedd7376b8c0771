"""P(each kernel has a spread of boots of its own), against a step of the spread at one position.

Boots of an image are Gaussian about a mean of their own, so that their sum of squares S with f
degrees of freedom is all that is known of its ln spread x: f x + S exp(-2 x) / 2. With a step,
kernels before it have one x and kernels from it on another, to within `ALIKE_LN_SD`; without it
each has its own, of a Gaussian with one of `OWN_LN_SDS` around a common middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats
from swingbot.core.bisect.thresholds import (
    ALIKE_LN_SD,
    OWN_LN_SDS,
    OWN_SPREADS,
    UNEQUAL_LN_SD,
)
from swingbot.core.thresholds import SPREAD_FLOOR

# ln spread in steps that a smear of ALIKE_LN_SD still sees, around that of all boots together
_GRID = np.arange(-5.0, 4.0, 0.05)


@dataclass(frozen=True, slots=True)
class KernelSpread:
    """The boots of the images of a position: sum of squares about their means, effect scale."""

    position: int
    square: float
    freedom: int  # boots less images; 0: nothing is known of the spread


def kernel_spreads(ev: Evidence) -> list[KernelSpread]:
    """Return the spread of each position that was booted, ascending."""
    images: dict[int, dict[int, list[float]]] = {}
    for position, boot, mean in zip(ev.boot_positions, ev.boots, ev.means, strict=True):
        images.setdefault(position, {}).setdefault(boot.layout, []).append(float(mean))
    return [
        KernelSpread(
            position,
            sum(float(np.var(levels)) * len(levels) for levels in own.values()),
            sum(len(levels) - 1 for levels in own.values()),
        )
        for position, own in sorted(images.items())
    ]


def own_spreads(kernels: list[KernelSpread], left: int) -> float:
    """Return P(each kernel has a spread of its own), against a step behind position `left`."""
    known = [kernel for kernel in kernels if kernel.freedom]
    freedom = np.array([kernel.freedom for kernel in known], float)
    # values that repeat do not prove that there is no noise
    square = np.array([kernel.square for kernel in known]) + freedom * SPREAD_FLOOR**2
    x = 0.5 * math.log(float(square.sum() / freedom.sum())) + _GRID
    ln = -freedom[:, None] * x - 0.5 * square[:, None] * np.exp(-2.0 * x)
    likely = np.exp(ln - ln.max(axis=1, keepdims=True))
    apart = [_ln_product(likely @ _smear(sd)) for sd in OWN_LN_SDS]
    own = float(np.exp(apart).sum(axis=1).mean())
    alike, behind = likely @ _smear(ALIKE_LN_SD), np.array([k.position > left for k in known])
    before, after = (np.exp(_ln_product(alike[side])) for side in (~behind, behind))
    step = float(before @ _smear(UNEQUAL_LN_SD) @ after)
    return OWN_SPREADS * own / max(OWN_SPREADS * own + step, 1e-300)


@lru_cache(maxsize=8)
def _smear(sd: float) -> Floats:
    """(x, x): the density of one ln spread given another, as shares of the grid."""
    density = np.exp(-0.5 * (np.subtract.outer(_GRID, _GRID) / sd) ** 2)
    return np.asarray(density / density.sum(axis=0))


def _ln_product(likely: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(likely, 1e-300)).sum(axis=0))
