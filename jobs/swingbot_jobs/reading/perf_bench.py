"""Numbers that `perf bench` prints twice."""

from __future__ import annotations


def agree(rate: float, microseconds: float) -> bool:
    """Say whether operations a second, a whole number, and the time of one are the same result."""
    return abs(rate * microseconds - 1e6) <= 1e4 + microseconds
