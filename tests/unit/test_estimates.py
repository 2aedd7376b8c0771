"""The table of estimates that the demo prints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.demo.estimates import Estimate, EstimateLog, summary

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def status(at: int, eta: float | None, boots: int = 0) -> dict[str, Any]:
    progress = {"builds": 1, "builds_total": 2, "boots": boots, "boots_total": 6}
    one = {"id": "c1", "eta_seconds": eta, "progress": progress}
    now = (START + timedelta(seconds=at)).isoformat()
    return {"now": now, "tables": [one], "bisections": []}


def test_an_estimate_is_noted_once_for_each_step_of_its_request() -> None:
    log = EstimateLog()
    for at, eta, boots in ((0, None, 0), (1, 90.0, 0), (2, 80.0, 0), (30, 60.0, 1)):
        log.note(status(at, eta, boots))
    assert [(one.seconds, one.done) for one in log.estimates] == [
        (90.0, "1/2 builds, 0/6 boots"),
        (60.0, "1/2 builds, 1/6 boots"),
    ]
    end = (START + timedelta(seconds=181)).isoformat()
    *_, first, second, last = log.table(lambda id: end)
    assert first.split()[-1] == "2.00"
    assert second.split()[-1] == "2.52"
    assert last == "0 of 2 within a factor of 1.5 (wanted: 80%)"
    assert log.table(lambda id: None) == ["no estimate was shown for anything that ended"]


@pytest.mark.parametrize(
    ("said", "took", "factor"), [(100, 150, 1.5), (100, 50, 0.5), (3, 12, 1.0), (0, 30, 30.0)]
)
def test_the_factor_is_of_what_it_took_over_what_was_said(
    said: int, took: int, factor: float
) -> None:
    one = Estimate(id="c1", at=START, seconds=said, done="")
    assert one.factor(START + timedelta(seconds=took)) == factor


def test_four_of_five_are_wanted() -> None:
    assert summary([1.0, 1.5, 0.67, 1.2, 3.0]).endswith("(as wanted)")
    assert summary([1.0, 1.6, 0.67, 1.2, 3.0]).endswith("(wanted: 80%)")
