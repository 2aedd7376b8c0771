"""Which points of a crash test are tried: a sample within a budget of processor time, or with
SWINGBOT_TEST_ALL=1 all of them.

All of them take longer than the time limit of a test, so they have none; each is printed (pytest
shows it with -s).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from tests.amount import ALL
from tests.times import processor_seconds

unhurried: Final = pytest.mark.timeout(0 if ALL else 900)
SECONDS: Final = 30.0  # of processors, for the sample of one test
LEAST: Final = 3  # points that are tried whatever they take


def tried(points: Sequence[int], sample: Sequence[int]) -> Iterator[int]:
    """Yield `sample`, in an order that its length decides, or all `points`.

    Beyond the budget the rest of the sample is left out, and said so.
    """
    began = processor_seconds()
    order = points if ALL else random.Random(len(points)).sample(sample, len(sample))
    for number, point in enumerate(order, 1):
        if not ALL and number > LEAST and processor_seconds() - began > SECONDS:
            print(f"{len(order) - number + 1} points of the sample do not fit into {SECONDS:.0f} s")
            return
        if ALL:
            print(f"point {point}, {number} of {len(order)}", flush=True)
        yield point
