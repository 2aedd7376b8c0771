"""Which points of a crash test are tried: a sample, or with SWINGBOT_TEST_ALL=1 all of them.

All of them take longer than the time limit of a test, so they have none; each is printed (pytest
shows it with -s).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.amount import ALL

unhurried: Final = pytest.mark.timeout(0) if ALL else pytest.mark.usefixtures()


def tried(points: Sequence[int], sample: Sequence[int]) -> Iterator[int]:
    """Yield `sample`, or all `points`."""
    if not ALL:
        yield from sample
        return
    for number, point in enumerate(points, 1):
        print(f"point {point}, {number} of {len(points)}", flush=True)
        yield point
