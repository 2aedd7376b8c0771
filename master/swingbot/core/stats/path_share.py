"""How many runs of each boot are far off the others, and whether two kernels differ in that share.

Runs of a boot are not independent, so counts are beta-binomial. Formulas: docs/statistics.md, "A
path that some runs take".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from swingbot.core.stats.moments import median
from swingbot.core.thresholds import FAR_RUN_SDS, FAR_RUNS_TOGETHER

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

SHARES: Final = np.geomspace(0.0005, 0.9, 32)  # of the runs; each as likely before any boot
_FEWEST: Final = 3  # runs of a boot, for a middle of its own
_SD_OF_MEDIAN: Final = 1.4826  # sd over the median distance, of a Gaussian
_SD_OF_QUARTILE: Final = 3.1382  # the same of the lower quartile


@dataclass(frozen=True, slots=True)
class FarRuns:
    """Counts by boot."""

    runs: Indices
    below: Indices  # runs far below the usual ones
    above: Indices
    # median distance of these runs from the usual ones, on the scale of the values; 0: none
    offset_below: float
    offset_above: float


def far_runs(
    boots: Sequence[Floats], kernel: Indices, ends: tuple[int, int], least: float
) -> FarRuns | None:
    """Count far-off runs; None if there are none, or if no boot has three runs.

    `kernel`: boot -> its kernel, of which `ends` are two that have boots. A run is far off if it is
    farther from the middle of its boot than `FAR_RUN_SDS` of the spread of runs (that of all boots
    and that of its own kernel), and than `least`, both on the scale of the values. In a boot most
    of whose runs are off, the usual runs are those near the level of an end.
    """
    if not any(len(v) >= _FEWEST for v in boots):
        return None
    apart = [_distances(v) for v in boots]
    common = _sd(np.concatenate(apart))
    reach = np.zeros(len(boots))
    for own in np.unique(kernel):
        mine = [apart[i] for i in np.flatnonzero(kernel == own) if len(apart[i])]
        sd = max(common, _own_sd(np.concatenate(mine)) if mine else 0.0)
        reach[kernel == own] = max(FAR_RUN_SDS * sd, least)
    levels = [
        float(np.median(np.concatenate([boots[int(i)] for i in np.flatnonzero(kernel == end)])))
        for end in ends
    ]
    off = [v - _middle(v, levels, r) for v, r in zip(boots, reach, strict=True)]
    far = [o[np.abs(o) > r] for o, r in zip(off, reach, strict=True)]
    offsets = np.concatenate(far)
    if not len(offsets):
        return None
    below, above = offsets[offsets < 0], offsets[offsets > 0]
    return FarRuns(
        runs=np.array([len(v) for v in boots], np.intp),
        below=np.array([int((o < 0).sum()) for o in far], np.intp),
        above=np.array([int((o > 0).sum()) for o in far], np.intp),
        offset_below=float(np.median(below)) if len(below) else 0.0,
        offset_above=float(np.median(above)) if len(above) else 0.0,
    )


def run_spread(boots: Sequence[Floats]) -> float:
    """The sd of runs within boots; 0 if no boot has three runs."""
    apart = [_distances(v) for v in boots]
    return _sd(np.concatenate(apart)) if any(len(d) for d in apart) else 0.0


def _distances(values: Floats) -> Floats:
    """Distances from the median, without the one that is 0, or one of two that are equal."""
    if len(values) < _FEWEST:
        return np.zeros(0)
    return np.sort(np.abs(values - median(np.sort(values))))[1:]


def _sd(distances: Floats) -> float:
    """The spread by the lower median, which one far run of three does not move."""
    return _SD_OF_MEDIAN * float(np.sort(distances)[(len(distances) - 1) // 2])


def _own_sd(distances: Floats) -> float:
    """The spread of one kernel by the lower quartile: half of its runs may be far off."""
    return _SD_OF_QUARTILE * float(np.sort(distances)[(len(distances) - 1) // 4])


def _middle(values: Floats, levels: list[float], reach: float) -> float:
    """The level of the usual runs of a boot."""
    own = median(np.sort(values))
    nearest = min(levels, key=lambda level: abs(own - level))
    if abs(own - nearest) <= reach or len(values) < _FEWEST:
        return own
    near = values[np.abs(values - nearest) <= reach]
    return float(np.median(near)) if len(near) else own


def ln_counts(taken: Indices, units: Indices, together: float) -> Floats:
    """(boot, share) -> ln likelihood that `taken` of its `units` are on a path.

    `together`: correlation of the units of a boot.
    """
    k, n, share = taken[:, None], units[:, None], SHARES[None, :]
    if together == 0.0:
        return np.asarray(k * np.log(share) + (n - k) * np.log1p(-share))
    size = 1.0 / together - 1.0
    a, b = share * size, (1.0 - share) * size
    return np.asarray(betaln(k + a, n - k + b) - betaln(a, b))


def two_shares(taken: Indices, units: Indices, head: npt.NDArray[np.bool_]) -> float:
    """Likelihood of two shares over that of one; `head` marks the boots of the second kernel."""
    tables = [
        [ln_counts(taken[side], units[side], together).sum(axis=0) for side in (~head, head)]
        for together, _ in FAR_RUNS_TOGETHER
    ]
    tops = [max(float(table[side].max()) for table in tables) for side in (0, 1)]
    one, two = 0.0, 0.0
    for table, (_, weight) in zip(tables, FAR_RUNS_TOGETHER, strict=True):
        sides = [np.exp(ln - top) for ln, top in zip(table, tops, strict=True)]
        two += weight * float(sides[0].mean() * sides[1].mean())
        one += weight * float((sides[0] * sides[1]).mean())
    return two / max(one, 1e-300)


def pair_odds(base: Sequence[Floats], head: Sequence[Floats], least: float) -> list[float]:
    """Number of pairs - 1 -> likelihood that the kernels differ in the share of runs far off.

    It is over that of one share, averaged over runs far below and far above; 1 without such runs.
    Boots are runs on the effect scale, in the order of the pairs; `least` is as in `far_runs`.
    """
    odds = []
    for pairs in range(1, min(len(base), len(head)) + 1):
        is_head = np.repeat([False, True], pairs)
        boots = [*base[:pairs], *head[:pairs]]
        far = far_runs(boots, is_head.astype(np.intp), (0, 1), least)
        odds.append(
            1.0
            if far is None
            else (
                two_shares(far.below, far.runs, is_head) + two_shares(far.above, far.runs, is_head)
            )
            / 2.0
        )
    return odds
