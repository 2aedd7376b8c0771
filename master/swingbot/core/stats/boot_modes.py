"""Detect two modes of boots from boots of any number of kernels.

The result is the share of the smaller mode and its distance from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from swingbot.core.stats.moments import within
from swingbot.core.thresholds import MODE_LEAST_SHARE, MODES_SDS

Array = npt.NDArray[np.float64]
# Boots of the smaller mode, and differences on each side of the gap; fewer are wild boots.
_LEAST_BOOTS: Final = 3


@dataclass(frozen=True, slots=True)
class BootModes:
    """The smaller of two modes.

    `share` is its share of the boots; `apart` its distance from the other mode, in the unit of the
    levels, negative if it is the lower one.
    """

    share: float
    apart: float


def boot_modes(groups: Sequence[Sequence[float] | Array]) -> BootModes | None:
    """Return the two modes of boot levels, or None if a single mode explains them.

    `groups` holds the levels of one kernel each. The differences between two boots of a kernel are
    either within a mode or across modes. There must be a gap between these two kinds, and the modes
    must be at least MODES_SDS of their own standard deviations apart.
    """
    each = [np.sort(np.asarray(g, dtype=np.float64)) for g in groups if len(g) > 1]
    if sum(len(g) * (len(g) - 1) // 2 for g in each) < 2 * _LEAST_BOOTS:
        return None
    apart = np.sort(
        np.concatenate([(g[None, :] - g[:, None])[np.triu_indices(len(g), 1)] for g in each])
    )
    inner = slice(_LEAST_BOOTS - 1, len(apart) - _LEAST_BOOTS)
    at = int(np.argmax(np.diff(apart)[inner])) + _LEAST_BOOTS
    cut = float(apart[at - 1] + apart[at]) / 2.0
    parts = [part for g in each for part in np.split(g, np.flatnonzero(np.diff(g) > cut) + 1)]
    spread = within([list(map(float, part)) for part in parts]) or 0.0
    distance = float(np.median(apart[at:]))
    if distance < MODES_SDS * spread or any(g[-1] - g[0] > 1.5 * distance for g in each):
        return None
    both = [g for g in each if g[-1] - g[0] > cut]
    if not both:
        return None
    # Only kernels with boots in both modes count: of others it is not known which mode they are in.
    lower = np.concatenate([g < g[-1] - cut for g in both])
    smaller, low = min(lower.sum(), (~lower).sum()), float(lower.mean())
    if smaller < max(_LEAST_BOOTS, MODE_LEAST_SHARE * len(lower)):
        return None
    return BootModes(low, -distance) if low <= 0.5 else BootModes(1.0 - low, distance)


def merged(levels: Array, kernels: npt.NDArray[Any], modes: BootModes) -> Array:
    """Return the levels with the boots of the smaller mode shifted onto the other.

    `kernels` has the kernel of each boot; a kernel with boots in one mode only is not shifted.
    """
    result = levels.copy()
    for kernel in np.unique(kernels):
        own = kernels == kernel
        result[own] -= np.where(in_second(levels[own], modes), modes.apart, 0.0)
    return result


def in_second(levels: Array, modes: BootModes) -> npt.NDArray[np.bool_]:
    """Return a mask of the boots of one kernel in the smaller mode; all False if there is one
    mode."""
    half = abs(modes.apart) / 2.0
    if float(np.ptp(levels)) < half:
        return np.zeros(len(levels), dtype=bool)
    if modes.apart < 0:
        return np.asarray(levels < float(levels.max()) - half)
    return np.asarray(levels > float(levels.min()) + half)
