"""Runs that are far off the others of their boot: a path that some runs take.

How many runs of each boot take it is evidence of its own, beside the level and the spread of the
others. Formulas: docs/statistics.md, "A path that some runs take".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.thresholds import FAR_RUN_SDS

_FEWEST: Final = 3  # runs of a boot, for a middle of its own
_SD_OF_MEDIAN: Final = 1.4826  # sd over the median distance, of a Gaussian


@dataclass(frozen=True, slots=True)
class FarRuns:
    """Counts by boot, in the order of `Evidence.boots`."""

    runs: Indices
    below: Indices  # runs far below the usual ones
    above: Indices
    # median distance of these runs from the usual ones, on the effect scale; 0: there are none
    offset_below: float
    offset_above: float


def far_runs(ev: Evidence, least: float) -> FarRuns | None:
    """Count far-off runs; None if there are none, or if no boot has three runs.

    A run is far off if it is farther from the middle of its boot than `FAR_RUN_SDS` of the spread
    of runs (that of all boots and that of its own kernel), and than `least`, both on the effect
    scale. In a boot most of whose runs are off, the usual runs are those near the level of an end.
    """
    if not any(len(b.values) >= _FEWEST for b in ev.boots):
        return None
    values = [np.array([ev.effect(v) for v in b.values]) for b in ev.boots]
    at = np.array(ev.boot_positions)
    apart, common = [_distances(v) for v in values], run_spread(ev)
    reach = np.zeros(len(values))
    for position in np.unique(at):
        own = [apart[i] for i in np.flatnonzero(at == position) if len(apart[i])]
        sd = max(common, _sd(np.concatenate(own)) if own else 0.0)
        reach[at == position] = max(FAR_RUN_SDS * sd, least)
    ends = [
        float(np.median(np.concatenate([values[i] for i in np.flatnonzero(at == p)])))
        for p in (at.min(), at.max())
    ]
    off = [v - _middle(v, ends, r) for v, r in zip(values, reach, strict=True)]
    far = [np.abs(o) > r for o, r in zip(off, reach, strict=True)]
    if not any(f.any() for f in far):
        return None
    offsets = np.concatenate([o[f] for o, f in zip(off, far, strict=True)])
    below, above = offsets[offsets < 0], offsets[offsets > 0]
    return FarRuns(
        runs=np.array([len(v) for v in values], np.intp),
        below=np.array([int((o[f] < 0).sum()) for o, f in zip(off, far, strict=True)], np.intp),
        above=np.array([int((o[f] > 0).sum()) for o, f in zip(off, far, strict=True)], np.intp),
        offset_below=float(np.median(below)) if len(below) else 0.0,
        offset_above=float(np.median(above)) if len(above) else 0.0,
    )


def run_spread(ev: Evidence) -> float:
    """The sd of runs within boots on the effect scale; 0 if no boot has three runs."""
    apart = [_distances(np.array([ev.effect(v) for v in b.values])) for b in ev.boots]
    return _sd(np.concatenate(apart)) if any(len(d) for d in apart) else 0.0


def _distances(values: Floats) -> Floats:
    """Distances from the median, without the one that is 0, or one of two that are equal."""
    if len(values) < _FEWEST:
        return np.zeros(0)
    return np.sort(np.abs(values - np.median(values)))[1:]


def _sd(distances: Floats) -> float:
    """The spread by the lower median, which one far run of three does not move."""
    return _SD_OF_MEDIAN * float(np.sort(distances)[(len(distances) - 1) // 2])


def _middle(values: Floats, ends: list[float], reach: float) -> float:
    """The level of the usual runs of a boot."""
    own = float(np.median(values))
    nearest = min(ends, key=lambda end: abs(own - end))
    if abs(own - nearest) <= reach or len(values) < _FEWEST:
        return own
    near = values[np.abs(values - nearest) <= reach]
    return float(np.median(near)) if len(near) else own
