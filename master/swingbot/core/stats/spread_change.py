"""Detect a change of the spread between boots, independently of the level.

Brown & Forsythe (JASA 69, 1974) on the boots, using distances from the median of each side. The
zero that an odd number of boots always has is dropped, and so is one of the two equal distances
of an even number (Hines & O'Hara Hines, Biometrics 56, 2000). The distances are compared by
Welch's test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from swingbot.core.stats.moments import mean, stddev, welch_p
from swingbot.core.stats.robust import median
from swingbot.core.thresholds import SPREAD_CHANGE_BOOTS


def spread_change(base: Sequence[float], head: Sequence[float], alpha: float) -> float | None:
    """Return the standard deviation of head over that of base if they differ at `alpha`.

    None if they do not differ, or there are too few boots.
    """
    if min(len(base), len(head)) < SPREAD_CHANGE_BOOTS:
        return None
    far = [_distances(side) for side in (base, head)]
    variances = [stddev(side) ** 2 / len(side) for side in far]
    difference = mean(far[1]) - mean(far[0])
    spreads = [stddev(side) for side in (base, head)]
    if not any(variances) or not min(spreads) > 0:
        return None
    p = welch_p(difference, [(v, len(side) - 1) for v, side in zip(variances, far, strict=True)])
    ratio = spreads[1] / spreads[0]
    return ratio if p < alpha and (ratio > 1.0) == (difference > 0.0) else None


def _distances(values: Sequence[float]) -> list[float]:
    middle = median(values)
    far = sorted(abs(v - middle) for v in values)
    return far[1:] if len(far) % 2 else [math.sqrt(2.0) * far[0], *far[2:]]
