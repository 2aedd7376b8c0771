"""When a percentile of latencies says something about a kernel, and not about one request."""

from __future__ import annotations

from typing import Final

# A percentile spreads by about `1 / sqrt(BEYOND)` of what the tail falls off by in one e-fold
# (docs/statistics.md); with one value beyond, intervals of 10 boots a side cover 91 % in place of
# 95 % (docs/calibration-results.md).
BEYOND: Final = 10


def has_enough(percent: float, values: int) -> bool:
    """Say whether at least `BEYOND` of `values` lie beyond the percentile."""
    return values * (100 - percent) >= 100 * BEYOND
