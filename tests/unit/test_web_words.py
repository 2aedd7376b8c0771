"""How numbers and times look on a page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.http import filters


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0"),
        (100.0, "100"),
        (3.14159, "3.1416"),
        (245847.21, "245\u202f847"),
        (5.1e9, "5.1000e9"),
        (-1234.5, "-1234.5"),
        (0.00012345, "1.2345e-4"),
    ],
)
def test_numbers_keep_five_digits(value: float | None, shown: str) -> None:
    assert filters.number(value) == shown


@given(st.floats(min_value=1, max_value=1e12), st.floats(min_value=-0.9, max_value=2))
def test_a_printed_change_can_be_recomputed_from_the_printed_levels(
    base: float, change: float
) -> None:
    head = base * (1 + change)
    read = [float(filters.number(level).replace("\u202f", "")) for level in (base, head)]
    assert abs((read[1] / read[0] - 1) - change) < 0.0005


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (None, "–"),
        (0.0, "< 0.1\u00a0%"),
        (0.0001, "< 0.1\u00a0%"),
        (0.5, "50.0\u00a0%"),
        (0.99999, "> 99.9\u00a0%"),
        (1.0, "100\u00a0%"),
    ],
)
def test_a_probability_is_never_rounded_to_certainty(p: float | None, shown: str) -> None:
    assert filters.probability(p) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.25, "0.25 s"),
        (59.4, "59 s"),
        (75, "1 min 15 s"),
        (600, "10 min"),
        (3599, "59 min 59 s"),
        (3700, "1 h 1 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert filters.FILTERS["duration"](seconds) == shown


def test_ages_have_one_unit_and_never_lie_in_the_future() -> None:
    now = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
    assert filters.ago("2026-03-02T11:57:00Z", now) == "3 min ago"
    assert filters.ago("2026-03-02T12:00:09Z", now) == "0 s ago"
    assert filters.ago(None, now) == "–"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (None, "–"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_600, "100 kB"),
        (999_600, "1.0 MB"),
        (12_400_000_000, "12.4 GB"),
    ],
)
def test_sizes(size: int | None, shown: str) -> None:
    assert filters.size(size) == shown


def test_backticks_become_code_and_nothing_else_becomes_markup() -> None:
    assert filters.code("run `a <b>` & wait") == "run <code>a &lt;b&gt;</code> &amp; wait"
    assert filters.code("an odd ` <tick>") == "an odd ` &lt;tick&gt;"
