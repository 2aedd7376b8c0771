"""Steps of the database's clock, and ages across them."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from swingbot.app.keep.retain import due
from swingbot.app.settings import PathSection, RetentionSection, Settings
from swingbot.service.clock_watch import STEP_SECONDS, ClockWatch

HOUR, YEAR = 3600.0, 365 * 86_400.0


class Clocks:
    """A clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 1.7e9, 5_000.0
        self.watch = ClockWatch(lambda: self.monotonic)

    def later(self, seconds: float, set_by: float = 0.0) -> float:
        """Let time pass, set the clock, and look at it."""
        self.monotonic += seconds
        self.wall += seconds + set_by
        return self.watch.look(self.wall)


@pytest.mark.parametrize("step", [HOUR, -HOUR, YEAR, -YEAR])
def test_an_age_is_the_same_whatever_the_clock_was_set_to(step: float) -> None:
    clocks = Clocks()
    clocks.later(0)
    began, began_at = clocks.wall, clocks.monotonic
    assert clocks.later(100) == 0
    assert clocks.later(2, set_by=step) == pytest.approx(step)
    assert clocks.watch.age(clocks.wall - began) == pytest.approx(102)
    after = clocks.wall
    assert clocks.later(50) == 0
    assert clocks.watch.age(clocks.wall - began) == pytest.approx(clocks.monotonic - began_at)
    assert clocks.watch.age(clocks.wall - after) == pytest.approx(50)
    assert clocks.later(2, set_by=-step) == pytest.approx(-step)  # set right again
    assert clocks.watch.age(clocks.wall - began) == pytest.approx(clocks.monotonic - began_at)


def test_a_clock_is_steady_since_its_last_step() -> None:
    clocks = Clocks()
    clocks.later(0)
    clocks.later(500)
    assert clocks.watch.steady() == 500
    clocks.later(1, set_by=HOUR)
    assert clocks.watch.steady() == 0
    clocks.later(10, set_by=STEP_SECONDS / 2)
    assert clocks.watch.steady() == 10


def test_an_age_is_never_negative() -> None:
    clocks = Clocks()
    clocks.later(0)
    assert clocks.watch.age(-YEAR) == 0  # set back before this process began


NOW, DAY = datetime(2026, 5, 1, tzinfo=UTC), timedelta(days=1)


def settings_with_a_run(state: Path, at: datetime) -> Settings:
    """Settings with daily retention, which ran `at`."""
    (state / "retention.json").write_text(json.dumps({"at": at.isoformat()}))
    settings = Settings(paths=PathSection(state=str(state)))
    return dataclasses.replace(settings, retention=RetentionSection(enabled=True))


def test_retention_waits_for_a_day_after_the_clock_was_set(tmp_path: Path) -> None:
    settings, clocks = settings_with_a_run(tmp_path, NOW - 2 * DAY), Clocks()
    clocks.later(0)
    assert due(settings, NOW, clocks.watch)
    clocks.later(2, set_by=YEAR)
    assert not due(settings, NOW + timedelta(days=365), clocks.watch)
    clocks.later(23 * HOUR)
    assert not due(settings, NOW + timedelta(days=366), clocks.watch)
    clocks.later(2 * HOUR)
    assert due(settings, NOW + timedelta(days=366), clocks.watch)


def test_retention_waits_where_the_clock_may_have_been_set_while_no_loop_ran(
    tmp_path: Path,
) -> None:
    settings, clocks = settings_with_a_run(tmp_path, NOW - timedelta(days=365)), Clocks()
    clocks.later(0)
    assert not due(settings, NOW, clocks.watch)
    clocks.later(25 * HOUR)
    assert due(settings, NOW + DAY, clocks.watch)


def test_retention_runs_again_after_a_clock_was_ahead(tmp_path: Path) -> None:
    settings, clocks = settings_with_a_run(tmp_path, NOW + timedelta(days=365)), Clocks()
    clocks.later(0)
    assert due(settings, NOW, clocks.watch)
    settings_with_a_run(tmp_path, NOW - timedelta(hours=3))
    assert not due(settings, NOW, clocks.watch)
