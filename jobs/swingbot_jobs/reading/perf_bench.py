"""Numbers that `perf bench` prints twice."""

from __future__ import annotations


def agree(rate: float, microseconds: float) -> bool:
    """Whether a rate, operations a second cut to a whole number, and the time of one operation are
    the same result within 1 %.
    """
    return abs(rate * microseconds - 1e6) <= 1e4 + microseconds
