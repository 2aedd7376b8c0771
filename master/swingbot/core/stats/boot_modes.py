"""Two modes of boots, from boots of any number of kernels: the share of the smaller one and how
far it is from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from swingbot.core.stats.moments import within
from swingbot.core.thresholds import MODE_LEAST_SHARE, MODES_SDS

Array = npt.NDArray[np.float64]
_LEAST_PAIRS: Final = 6  # differences of two boots of a kernel on either side of the gap


@dataclass(frozen=True, slots=True)
class BootModes:
    """The smaller mode: its share of the boots, and its distance from the other, in the unit of
    the levels (negative: low)."""

    share: float
    apart: float


def boot_modes(groups: Sequence[Sequence[float]]) -> BootModes | None:
    """The modes that boot levels show, `groups` of one kernel each; None where one mode explains
    them.

    The differences of two boots of a kernel fall into those within a mode and those across: there
    has to be a gap between them, and the modes have to be MODES_SDS of their own spreads apart.
    """
    each = [np.sort(np.asarray(g, dtype=np.float64)) for g in groups if len(g) > 1]
    if not each:
        return None
    apart = np.sort(
        np.concatenate([(g[None, :] - g[:, None])[np.triu_indices(len(g), 1)] for g in each])
    )
    if len(apart) < 2 * _LEAST_PAIRS:
        return None
    inner = slice(_LEAST_PAIRS - 1, len(apart) - _LEAST_PAIRS)
    at = int(np.argmax(np.diff(apart)[inner])) + _LEAST_PAIRS
    cut = float(apart[at - 1] + apart[at]) / 2.0
    parts = [part for g in each for part in np.split(g, np.flatnonzero(np.diff(g) > cut) + 1)]
    spread = within([list(map(float, part)) for part in parts]) or 0.0
    distance = float(np.median(apart[at:]))
    if distance < MODES_SDS * spread or any(g[-1] - g[0] > 1.5 * distance for g in each):
        return None
    both = [g for g in each if g[-1] - g[0] > cut]
    if not both:
        return None
    low = float(np.mean(np.concatenate([g < g[-1] - cut for g in both])))
    # kernels with boots in one mode alone count half in either: which one it is they do not say
    if min(low, 1.0 - low) < MODE_LEAST_SHARE:
        return None
    return BootModes(low, -distance) if low <= 0.5 else BootModes(1.0 - low, distance)


def in_second(levels: Array, modes: BootModes) -> npt.NDArray[np.bool_]:
    """Which boots of one kernel are in the smaller mode; none where they all lie in one."""
    half = abs(modes.apart) / 2.0
    if float(np.ptp(levels)) < half:
        return np.zeros(len(levels), dtype=bool)
    if modes.apart < 0:
        return np.asarray(levels < float(levels.max()) - half)
    return np.asarray(levels > float(levels.min()) + half)
