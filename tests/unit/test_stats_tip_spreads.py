"""Rules of the spread between boots from tip to tip: what raises an alarm, and how often nothing
does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from swingbot.core.plan.screen import MetricHistory, TipBoots, against_spreads
from swingbot.core.stats.findings import Findings, look
from swingbot.core.stats.findings_text import tell
from swingbot.core.stats.tip_spreads import (
    SpreadChange,
    TipSpread,
    _tail,
    change_within,
    latest_change,
    tip_spread,
)
from swingbot_jobs import codec


def tips(rng: np.random.Generator, count: int, sd: float, boots: int = 3) -> list[TipSpread]:
    """Spreads of `count` tips whose boots are Gaussian."""
    drawn = rng.normal(0.0, sd, (count, boots)).std(axis=1, ddof=1)
    return [TipSpread(sd=float(each), df=boots - 1) for each in drawn]


def test_the_distribution_is_that_of_all_orders() -> None:
    n, m = 5, 3
    counts = [
        sum(other < place for place in late for other in range(n + m) if other not in late)
        for late in itertools.combinations(range(n + m), m)
    ]
    expected = [np.mean([count >= u for count in counts]) for u in range(n * m + 1)]
    assert _tail(n, m).tolist() == pytest.approx(expected)


def test_three_times_the_spread_is_noticed_where_it_began() -> None:
    rng = np.random.default_rng(1)
    seen = tips(rng, 60, 0.01) + tips(rng, 12, 0.03)
    change = latest_change(seen)
    assert change is not None
    assert change.times == pytest.approx(3.0, rel=0.5)
    assert abs(change.at - 60) <= 4
    assert latest_change(seen[:60]) is None


def test_a_smaller_spread_is_a_change_too() -> None:
    rng = np.random.default_rng(2)
    change = latest_change(tips(rng, 60, 0.05) + tips(rng, 12, 0.01))
    assert change is not None
    assert change.times < 0.5


def test_half_as_much_again_raises_no_alarm() -> None:
    rng = np.random.default_rng(3)
    assert latest_change(tips(rng, 76, 0.01) + tips(rng, 24, 0.015)) is None


def test_one_tip_raises_no_alarm_however_wild() -> None:
    rng = np.random.default_rng(4)
    assert latest_change([*tips(rng, 99, 0.01), TipSpread(sd=10.0, df=2)]) is None


def test_a_coarse_scale_hides_no_change() -> None:
    """Of 0.7 % in steps of 2 % most tips have no spread at all."""
    rng = np.random.default_rng(10)

    def coarse(count: int, sd: float) -> list[TipSpread]:
        drawn = np.round(rng.normal(0.0, sd, (count, 3)) / 0.02) * 0.02
        return [TipSpread(sd=float(each), df=2) for each in drawn.std(axis=1, ddof=1)]

    quiet = coarse(80, 0.007)
    assert np.median([tip.sd for tip in quiet]) == 0.0
    change = latest_change(quiet + coarse(12, 0.035))
    assert change is not None
    assert change.times > 2.0
    assert latest_change(quiet) is None


def test_more_boots_for_a_tip_are_no_change() -> None:
    """The spread of few boots is usually smaller than the true one."""
    rng = np.random.default_rng(5)
    few, many = (
        float(np.median([tip.typical for tip in tips(rng, 4000, 0.01, boots)])) for boots in (3, 12)
    )
    assert few == pytest.approx(many, rel=0.03)


def test_boots_without_a_spread_count_nowhere() -> None:
    assert tip_spread(100.0, None, 1) is None
    assert tip_spread(0.0, 1.0, 3) is None
    assert tip_spread(None, None, 0) is None
    assert latest_change([TipSpread(sd=0.0, df=2)] * 60) is None
    assert change_within([]) is None


def past(rng: np.random.Generator, first: int | None = 3) -> MetricHistory:
    """Forty quiet tips, then seven with ten times their spread; latest first."""
    spreads = [
        TipBoots(mean=100.0, stddev=100.0 * tip.sd, boots=3)
        for tip in tips(rng, 40, 0.01) + tips(rng, 7, 0.1)
    ]
    return MetricHistory(spreads=spreads[::-1], min_effect=0.01, first=first)


def test_the_anchor_of_an_alarm_is_before_the_change() -> None:
    rng = np.random.default_rng(6)
    alarm = against_spreads([95.0, 100.0, 106.0], past(rng))
    assert alarm is not None
    assert alarm.source == "spread"
    assert alarm.anchor is not None
    assert alarm.anchor >= 7  # of 47 tips, the seven latest are noisy
    assert alarm.times is not None
    assert alarm.times > 2.0
    assert "times the spread between boots in the last" in alarm.why


def test_a_tip_of_one_boot_or_a_repeatable_testbox_says_nothing_about_the_spread() -> None:
    rng = np.random.default_rng(7)
    assert against_spreads([95.0], past(rng)) is None
    assert against_spreads([95.0, 100.0, 106.0], past(rng, first=None)) is None


def test_a_history_names_the_tip_from_which_boots_spread_further() -> None:
    rng = np.random.default_rng(8)
    spreads: list[TipSpread | None] = [*tips(rng, 30, 0.01), *tips(rng, 30, 0.04)]
    spreads[3] = None
    levels = [100.0 * float(np.exp(rng.normal(0.0, 0.002))) for _ in spreads]
    findings = look(levels, spreads=spreads)
    assert findings.boots_spread is not None
    assert abs(findings.boots_spread.at - 30) <= 2
    line = f"times as large from {findings.boots_spread.at} on, level unchanged"
    assert any(line in said for said in tell(findings, [str(n) for n in range(60)]))
    assert codec.typed(Findings, codec.plain(findings)) == findings


def test_findings_stored_before_they_had_the_spread_between_boots_are_read() -> None:
    stored = codec.plain(look([100.0, 101.0, 99.0]))
    del stored["boots_spread"]
    assert codec.typed(Findings, stored).boots_spread is None


def test_a_step_at_the_same_place_is_not_called_an_unchanged_level() -> None:
    rng = np.random.default_rng(9)
    levels = [
        (100.0 if n < 30 else 90.0) * float(np.exp(rng.normal(0.0, 0.002))) for n in range(60)
    ]
    findings = look(levels, spreads=[*tips(rng, 30, 0.01), *tips(rng, 30, 0.04)])
    assert findings.changes
    assert isinstance(findings.boots_spread, SpreadChange)
    said = tell(findings, [str(n) for n in range(60)])
    assert not any("level unchanged" in line for line in said)
