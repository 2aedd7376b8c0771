"""What belongs to one incident, what a person may say of it, and what a level says about a
change."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core import limits
from swingbot.core.incident.decide import ACTS, Act, InvalidState, decide, tidy
from swingbot.core.incident.impact import MeasuredRow, impacts
from swingbot.core.incident.level import (
    beyond,
    check,
    check_spread,
    log_ratio,
    percent,
    recovered,
)
from swingbot.core.incident.match import known_as
from swingbot.core.incident.model import Sighting
from swingbot.core.model.comparison_row import ComparisonRow, Side, Verdict
from swingbot.core.model.statuses import IncidentStatus
from swingbot.core.plan.screen import against_expected
from swingbot.core.table.verdict import in_words
from swingbot.core.thresholds import GONE_SHARE, STILL_SHARE

A, B, PATCH = "a" * 40, "b" * 40, "c" * 40


def seen(incident: int, commit: str, tree: int = 1, patch_id: str | None = PATCH) -> Sighting:
    return Sighting(
        id=incident,
        incident=incident,
        bisection=1,
        culprit=1,
        tree=tree,
        commit=commit,
        patch_id=patch_id,
    )


def test_a_commit_is_known_by_itself_before_it_is_known_by_its_patch() -> None:
    assert known_as(1, A, PATCH, [seen(7, B), seen(8, A)]) == 8
    assert known_as(1, A, PATCH, [seen(7, B), seen(8, A, tree=2)]) == 8
    assert known_as(1, A, PATCH, [seen(7, A, tree=2), seen(8, A)]) == 8, (
        "a person may have split the copies of one patch: each tree keeps its own"
    )
    assert known_as(1, A, PATCH, [seen(9, B), seen(7, B)]) == 7


@pytest.mark.parametrize("none", ["", None])
def test_commits_without_a_patch_id_are_never_the_same(none: str | None) -> None:
    assert known_as(1, A, none, [seen(7, B, patch_id=none)]) is None


@pytest.mark.parametrize(
    "status", [status for status in get_args(IncidentStatus) if status != "duplicate"]
)
@pytest.mark.parametrize("act", ACTS)
def test_saying_the_same_twice_changes_nothing(status: IncidentStatus, act: Act) -> None:
    once = decide("i3", status, act)
    again = decide("i3", once.status, act, same_fix=True)
    assert again.status == once.status
    assert not again.changes
    assert not again.withdraw


def test_mails_are_taken_back_only_where_the_incident_is_not_what_they_say_any_more() -> None:
    assert [act for act in ACTS if decide("i3", "open", act).withdraw] == [
        "expected",
        "invalid",
        "close",
    ]
    assert decide("i3", "invalid", "reopen").withdraw, "a retraction that waits is wrong by then"


def test_a_fix_is_believed_when_a_tip_shows_it_not_before() -> None:
    assert decide("i3", "open", "fixed-by").status == "open"
    assert decide("i3", "fixed", "fixed-by", same_fix=True).status == "fixed"


@pytest.mark.parametrize("act", ACTS)
def test_a_duplicate_is_spoken_of_by_the_incident_that_it_belongs_to(act: Act) -> None:
    with pytest.raises(InvalidState, match="merged into i1.*split i3"):
        decide("i3", "duplicate", act, merged_into="i1")


def test_a_reason_is_one_line_of_bounded_length() -> None:
    assert tidy("not\nours\x00 \u202e") == "not ours"
    assert tidy("  ") is None
    with pytest.raises(InvalidState, match="501 characters"):
        tidy("x" * (limits.WHY_CHARACTERS + 1))


@given(st.floats(-0.99, 5.0), st.floats(-0.99, 5.0))
def test_what_is_expected_and_nothing_else_leaves_nothing(one: float, two: float) -> None:
    effects = [math.log1p(one), math.log1p(two)]
    assert beyond(math.fsum(effects), effects) == pytest.approx(0.0, abs=1e-12)


def test_a_level_that_is_expected_raises_no_alarm_and_a_second_loss_on_top_of_it_does() -> None:
    expected, least = [log_ratio(-18.0)], log_ratio(2.0)
    assert against_expected(log_ratio(-18.5), expected, least) is None
    worse = against_expected(log_ratio(-25.0), expected, least)
    assert worse is not None
    assert percent(worse.effect) == pytest.approx(100 * (0.75 / 0.82 - 1))
    gone = against_expected(log_ratio(-1.0), expected, least)
    assert gone is not None and gone.effect > 0, (
        "the number is back: against the new level that is a change for the better"
    )


SIDE = Side(boots=3, runs=9, mean=100.0, stddev=1.0)


def a_row(change: float | None, verdict: Verdict = "worse", **more: Any) -> ComparisonRow:
    facts: dict[str, Any] = {
        "testbox": "vm1",
        "unit_job": "job",
        "metric": "netperf.Throughput_Mbps",
        "better": "higher",
        "base": SIDE,
        "head": SIDE,
        "interval_pct": None,
    }
    return ComparisonRow(change_pct=change, verdict=verdict, **(facts | more))


def measured(*rows: ComparisonRow) -> list[MeasuredRow]:
    return [MeasuredRow(row=row, document={}) for row in rows]


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        (a_row(-18.0), "still"),
        (a_row(0.1, "same"), "back"),
        (a_row(-2.0, "worse"), "back"),
        (a_row(3.0, "better"), "back"),
        (a_row(-9.0, "worse"), "unclear"),
        (a_row(-1.0, "unclear"), "unclear"),
        (a_row(-17.0, "unclear"), "unclear"),
        (a_row(None, "invalid"), "unclear"),
        (a_row(-0.1, "invalid"), "unclear"),
        (None, "unclear"),
    ],
)
def test_a_fix_is_taken_for_one_only_where_the_tip_is_plainly_back(
    row: ComparisonRow | None, answer: str
) -> None:
    found = check(-18.0, row)
    assert found.answer == answer
    assert "\n" not in found.words


def test_what_is_back_and_what_is_still_there_do_not_overlap() -> None:
    assert GONE_SHARE < STILL_SHARE
    for pct in (-40.0, 12.0):
        shares = [
            check(pct, a_row(percent(share * log_ratio(pct)))).answer
            for share in (0.0, 0.39, 0.41, 0.59, 0.61, 1.0)
        ]
        assert shares == ["back", "back", "unclear", "unclear", "still", "still"]


def test_each_other_test_is_listed_with_its_direction_in_words_and_worse_ones_come_first() -> None:
    rows = [
        a_row(4.0, "better", metric="a.ops"),
        a_row(-6.0, metric="b.ops"),
        a_row(0.1, "same", metric="c.ops"),
        a_row(30.0, "changed", metric="perf-stat.x", klass="counter"),
        a_row(-12.0),
    ]
    found = impacts(measured(*rows), but=("job", "netperf.Throughput_Mbps"))
    assert [(impact.metric, in_words(impact.places[0].row)) for impact in found] == [
        ("b.ops", "6.0% worse"),
        ("a.ops", "4.0% better"),
    ]


def test_better_on_one_testbox_and_worse_on_another_stand_side_by_side_and_first() -> None:
    rows = [
        a_row(-30.0, metric="b.ops"),
        a_row(-6.0),
        a_row(5.0, "better", testbox="vm2"),
        a_row(0.0, "same", testbox="vm3"),
    ]
    split, other = impacts(measured(*rows))
    assert split.split and not other.split
    assert [(place.row.testbox, in_words(place.row)) for place in split.places] == [
        ("vm1", "6.0% worse"),
        ("vm2", "5.0% better"),
        ("vm3", "no change"),
    ]


def test_a_test_is_described_by_its_headline_or_by_other_metrics_if_that_did_not_change() -> None:
    rows = [
        a_row(-9.0, headline=True),
        a_row(-9.0, metric="netperf.total"),
        a_row(-4.0, metric="other.max", unit_job="other"),
        a_row(-4.0, metric="other.peak", unit_job="other", alias_of="other.max"),
    ]
    assert [impact.metric for impact in impacts(measured(*rows))] == [
        "netperf.Throughput_Mbps",
        "other.max",
    ]


@pytest.mark.parametrize(
    ("ratio", "answer"), [(2.8, "still"), (None, "unclear"), (0.4, "unclear"), (1.9, "still")]
)
def test_a_change_of_the_spread_is_still_there_or_nothing_is_known(
    ratio: float | None, answer: str
) -> None:
    found = check_spread(3.0, a_row(0.2, "unclear", spread_ratio=ratio))
    assert (found.answer, found.share) == (answer, None)
    assert "had 3 times the spread between boots with the culprit" in found.words
    assert (
        check_spread(3.0, None).words == "the tip could not be measured: no run of it has a result"
    )


@pytest.mark.parametrize(
    ("found", "later", "since"),
    [
        (-6.0, [], None),
        (-6.0, [6.4], 0),
        (-6.0, [2.0], None),
        (-6.0, [2.0, 4.3], 1),
        (-6.0, [-3.0, 6.4], None),
        (-6.0, [6.4, -6.0], None),
        (-6.0, [6.4, -6.0, 6.4], 2),
        (6.4, [-6.0], 0),
        (-6.0, [12.0], 0),
        (None, [6.4], None),
        (0.0, [6.4], None),
        (-100.0, [6.4], None),
    ],
)
def test_a_history_has_recovered_from_the_step_behind_which_it_stays_back(
    found: float | None, later: list[float], since: int | None
) -> None:
    assert recovered(found, later) == since
