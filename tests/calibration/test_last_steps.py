"""The last step of a history: intervals hold as often as they claim, also with two points after it.

Each limit is the count that fails by chance in one of 10,000 tests (binomial) if the rate is right.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

from benchmarks.last_steps import last_step

SERIES = 150
COVERAGE = 0.93
EXACT = 239 / 240


def least(rate: float) -> int:
    return int(binom.ppf(1e-4, SERIES, rate))


@pytest.mark.parametrize(
    ("size", "noise", "after"),
    [(-3, 0.2, 2), (-3, 1, 2), (-3, 1, 4), (-10, 0.4, 2), (-10, 1, 3), (-18, 1, 2), (-18, 0.4, 10)],
)
def test_place_and_size_of_the_last_step_are_held_by_their_intervals(
    size: float, noise: float, after: int
) -> None:
    cell = last_step(size, noise, after, series=SERIES, seed=31)
    assert cell.placed >= least(COVERAGE)  # of all series: silence counts as a miss
    assert cell.sized >= least(COVERAGE)
    assert cell.others <= 5
    if abs(size) >= 10 * noise:
        assert cell.widest <= 2
        assert cell.steps >= least(EXACT)
        assert cell.exact >= least(EXACT)


def test_a_flat_history_has_no_step_at_its_end_and_seldom_a_candidate() -> None:
    cell = last_step(0.0, 0.4, 4, series=SERIES, seed=32)
    assert cell.steps <= SERIES - least(0.99)
    assert cell.candidates <= SERIES - least(0.75)
