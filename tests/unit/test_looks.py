"""A table that is judged again after boots were added."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swingbot.core.model.comparison_row import ComparisonRow, Side, Verdict
from swingbot.core.stats.looks import NOT_STATED, Look, keyed
from swingbot.core.stats.rows import Rule


def a_row(verdict: Verdict, pct: float = -5.0, *, arm: int = 1, boots: int = 5) -> ComparisonRow:
    side = Side(boots=boots, runs=boots, mean=100.0, stddev=1.0)
    return ComparisonRow(
        better="higher",
        arm=arm,
        base=side,
        head=side,
        change_pct=pct,
        interval_pct=None,
        verdict=verdict,
    )


def later(*earlier: ComparisonRow, stated: int = 1, number: int = 2) -> Look:
    return Look(number=number, stated=stated, earlier={keyed(row): row for row in earlier})


@pytest.mark.parametrize("stated", [1, 2, 5])
def test_stated_looks_and_later_ones_spend_the_error_rate_once_each(stated: int) -> None:
    shares = [Look(number=n, stated=stated).share for n in range(1, 60)]
    assert sum(shares[:stated]) == pytest.approx(1.0)
    assert sum(shares[stated:]) <= 1.0


def test_a_table_that_is_not_extended_keeps_its_rule_and_its_rows() -> None:
    rule, row = Rule(better="higher"), a_row("worse")
    assert Look().rule(rule) == rule
    assert Look().admitted(row, keyed(row)) is row


def test_a_stated_look_claims_new_changes_at_its_share() -> None:
    row, look = a_row("worse"), later(a_row("unclear"), stated=2)
    assert look.admitted(row, keyed(row)) is row
    assert look.rule(Rule(better="higher")).alpha == pytest.approx(0.0025)


@pytest.mark.parametrize("before", ["unclear", "same", "better", "invalid"])
def test_a_look_that_was_not_stated_claims_no_new_change(before: Verdict) -> None:
    row = replace(a_row("worse"), reason="the boots drift")
    judged = later(a_row(before)).admitted(row, keyed(row))
    assert (judged.verdict, judged.more_boots) == ("unclear", None)
    assert judged.reason == f"{NOT_STATED}; the boots drift"
    assert judged.change_pct == row.change_pct


def test_a_look_that_was_not_stated_keeps_and_withdraws_changes() -> None:
    look = later(a_row("worse"))
    for verdict in ("worse", "unclear", "same"):
        row = a_row(verdict)
        assert look.admitted(row, keyed(row)) is row


def test_a_metric_without_a_better_direction_keeps_its_sign() -> None:
    look = later(a_row("changed", -5.0))
    down, up = a_row("changed", -4.0), a_row("changed", 4.0)
    assert look.admitted(down, keyed(down)).verdict == "changed"
    assert look.admitted(up, keyed(up)).verdict == "unclear"


@pytest.mark.parametrize("boots", [None, 0])
def test_a_row_that_was_not_examined_before_is_judged_as_in_a_first_look(boots: int | None) -> None:
    added = a_row("worse", arm=2)
    before = [] if boots is None else [a_row("invalid", arm=2, boots=boots)]
    assert later(a_row("same"), *before).admitted(added, keyed(added)) is added


def test_looks_are_numbered_from_one() -> None:
    with pytest.raises(ValueError, match="numbered from 1"):
        Look(number=0)
