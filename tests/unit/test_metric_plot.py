"""A plot of thousands of commits stays small and loses no spike; labels never overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.plots import metric_plot as plots
from swingbot.web.plots.plot import PlotSubject

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
            {"boot": f"x{at}{n}", "mean": mean, "runs": 3, "time": 3600.0 * at + n}
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
    html, words = plots.inline(a_history(levels))
    assert len(html) < 150_000
    assert html.count("<circle") <= plots.MOST_MARKS
    assert "boot x33330: mean 7 of 3 runs" in html
    assert "of 10000 boots the lowest and the highest of each 20 commits are drawn" in words
    ElementTree.fromstring(f"<div>{html}</div>")
    ElementTree.fromstring(plots.metric_plot(a_history(levels)))


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
        html, _ = plots.inline(history)
        assert "<script" not in html
        root = ElementTree.fromstring(f"<div>{html}</div>")
        assert len([one for one in root.iter() if one.tag == "circle"]) == 4


@given(st.lists(st.tuples(st.floats(0, 100), st.text("abc", min_size=1, max_size=14)), max_size=80))
def test_labels_do_not_overlap_in_a_field_that_they_are_shown_in(
    labels: list[tuple[float, str]],
) -> None:
    labels.sort()
    kept = plots._fitting(labels)
    classes = [class_ for _, class_ in plots._FIELDS]
    for number, (width, _) in enumerate(plots._FIELDS):
        shown = sorted(at for at, class_ in kept.items() if classes.index(class_) <= number)
        ends = [
            (
                labels[at][0] * width / 100 - plots._LETTER * len(labels[at][1]) / 2,
                labels[at][0] * width / 100 + plots._LETTER * len(labels[at][1]) / 2,
            )
            for at in shown
        ]
        assert all(one[1] <= other[0] for one, other in pairwise(ends))
