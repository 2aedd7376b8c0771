"""A plot of thousands of commits stays small and loses no spike; labels never overlap."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.plots import metric_plot as plots
from swingbot.web.plots.drawing import FIELDS, LETTER, PlotSubject, fitting

SUBJECT = PlotSubject("vm", "job", "m", "ops", "higher", None)
HOSTILE = '</title><script>alert("1")</script>&'


def a_history(levels: list[list[float]], **more: Any) -> plots.History:
    columns = [
        {
            "commit": f"{at:040x}",
            "subject": HOSTILE,
            "author": f"{HOSTILE} <a@b>",
            "release": f"v{at}" if at % 100 == 0 else None,
            "variant": f"v{at}",
        }
        for at in range(len(levels))
    ]
    boots = [
        [
            {
                "boot": f"x{at}{n}",
                "mean": mean,
                "runs": 3,
                "booted_at": datetime.fromtimestamp(3600 * at + n, UTC).isoformat(),
            }
            for n, mean in enumerate(of)
        ]
        for at, of in enumerate(levels)
    ]
    series = [plots.HistorySeries(name="", boots=boots)]
    return plots.History(subject=SUBJECT, columns=columns, series=series, **more)


@given(st.lists(st.lists(st.floats(1.0, 1e6), max_size=4), max_size=60), st.integers(2, 40))
def test_what_is_drawn_is_bounded_and_has_the_lowest_and_the_highest_boot(
    levels: list[list[float]], most: int
) -> None:
    history = a_history(levels)
    drawn, size = plots.chosen_boots(history.series[0], most)
    total = sum(map(len, levels))
    assert len(drawn) <= max(most, 2)
    assert (size == 0) == (total <= most)
    if total:
        means = [one.boot["mean"] for one in drawn]
        values = [value for of in levels for value in of]
        assert (min(means), max(means)) == (min(values), max(values))
        assert [one.column for one in drawn] == sorted(one.column for one in drawn)


def test_five_thousand_tips_are_few_marks_with_their_spike() -> None:
    levels = [[100.0 + at % 7, 101.0] for at in range(5000)]
    levels[3333][0] = 7.0
    drawing = plots.metric_plot(a_history(levels))
    html, words = drawing.inline(), drawing.words
    assert len(html) < 150_000
    assert html.count("<circle") <= plots.MOST_MARKS
    assert "boot x33330: mean 7 of 3 runs" in html
    assert "of 10000 boots the lowest and the highest of each 25 commits are drawn" in words
    ElementTree.fromstring(f"<div>{html}</div>")
    ElementTree.fromstring(drawing.picture(SUBJECT))


def test_counters_of_five_thousand_tips_are_small_and_lie_below_their_commits() -> None:
    levels = [[100.0 + at % 7] if at % 40 == 0 else [] for at in range(5000)]
    whole = a_history([[100.0]] * 5000, by_time=True)
    ends = ["1970-01-01T00:00:00+00:00", whole.series[0].boots[4999][0]["booted_at"]]
    for by_time in (False, True):
        few = a_history(levels, by_time=by_time, times=ends, some=True, most=150)
        series = [replace(few.series[0], name=f"{HOSTILE}{n}", scale=1.0 + n) for n in range(6)]
        html = plots.metric_plot(replace(few, series=series)).inline()
        root = ElementTree.fromstring(f"<div>{html}</div>")
        assert len(html) < 40_000 and html.count('href="/boot/') <= 150 and "no boot" not in html
        lines = [one.get("points", "").split() for one in root.iter() if one.tag == "polyline"]
        assert len(lines) == 6 and all(len(one) >= 20 for one in lines)
        above = plots._HistoryParts(replace(whole, by_time=by_time))
        below = [one for one in root.iter() if one.tag == "circle"]
        assert below[0].get("cx") == above.share(0.0), "the same scale of x"


def test_words_of_strangers_are_escaped_by_order_and_by_time() -> None:
    for by_time in (False, True):
        mark = plots.HistoryMark(
            column=1, id="i1", href="/incident/i1", words=HOSTILE, kind="incident"
        )
        period = plots.HistoryPeriod(begin=0.0, end=5000.0, words=HOSTILE)
        band = plots.NoiseBand(first=0, last=2, level=10.0, low=9.0, high=11.0)
        history = a_history(
            [[10.0], [10.5, 11.0], [9.0]],
            marks=[mark], periods=[period], bands=[band], by_time=by_time,
        )  # fmt: skip
        html = plots.metric_plot(history).inline()
        assert "<script" not in html
        root = ElementTree.fromstring(f"<div>{html}</div>")
        assert len([one for one in root.iter() if one.tag == "circle"]) == 4


@given(st.lists(st.tuples(st.floats(0, 100), st.text("abc", min_size=1, max_size=14)), max_size=80))
def test_labels_do_not_overlap_in_a_field_that_they_are_shown_in(
    labels: list[tuple[float, str]],
) -> None:
    labels.sort()
    kept = fitting(labels)
    classes = [class_ for _, class_ in FIELDS]
    for number, (width, _) in enumerate(FIELDS):
        shown = sorted(at for at, class_ in kept.items() if classes.index(class_) <= number)
        ends = [
            (
                labels[at][0] * width / 100 - LETTER * len(labels[at][1]) / 2,
                labels[at][0] * width / 100 + LETTER * len(labels[at][1]) / 2,
            )
            for at in shown
        ]
        assert all(one[1] <= other[0] for one, other in pairwise(ends))


def test_alternating_testboxes_do_not_fill_a_page_with_gaps() -> None:
    drawing = plots.metric_plot(a_history([[100.0] if at % 2 else [] for at in range(5000)]))
    html, words = drawing.inline(), drawing.words
    assert len(html) < 150_000
    assert "bars of fewer than 10 commits without a boot are left out" in words
    drawing = plots.metric_plot(a_history([[100.0] if at % 2 else [] for at in range(400)]))
    html, words = drawing.inline(), drawing.words
    assert html.count("1 commit has no boot here") == 200 and "left out" not in words


def away(begin: float, end: float, levels: list[list[float]]) -> list[float]:
    """Where a shaded period begins, in per cent of the width."""
    period = plots.HistoryPeriod(begin=begin, end=end, words="away")
    html = plots.metric_plot(a_history(levels, periods=[period])).inline()
    return [float(x) for x in re.findall(r'<rect x="([\d.]+)%"[^>]*class="away"', html)]


def test_a_period_lies_among_the_commits_that_have_boots() -> None:
    levels = [[], [], [1.0], [1.0], [], [1.0]]
    (begin,) = away(3600.0 * 3.2, 3600.0 * 4, levels)
    assert begin == pytest.approx(100 * (3.5 + 0.7) / 6.4, abs=0.1), "behind the fourth commit"
    assert away(10.0, 20.0, levels) == [], "it ended before the first boot that is shown"


def test_each_incident_of_a_commit_has_its_own_mail() -> None:
    def mark(id: str, kind: str, of: str = "") -> plots.HistoryMark:
        return plots.HistoryMark(column=1, id=id, href=f"/{id}", words=id, kind=kind, of=of)

    marks = [mark("i1", "incident"), mark("r1", "mail", "i1"), mark("i2", "incident")]
    html = plots.metric_plot(a_history([[1.0], [2.0]], marks=marks)).inline()
    assert html.count('href="/r1"') == 1
    assert re.search(r'class="small w4"[^>]*>i2<', html), "no label over another, however wide"


@pytest.mark.parametrize("levels", [[1e16, 1e16 + 2], [0.0, 0.0], [1e308, 1e308], [5e-324]])
def test_values_that_floats_hardly_tell_apart_are_drawn(levels: list[float]) -> None:
    html = plots.metric_plot(a_history([[one] for one in levels])).inline()
    assert html.count("<circle") == len(levels)
