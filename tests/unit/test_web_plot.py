"""Plots are well-formed pictures that hold every value, whatever the names in them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.plots import plot, svg

SHOWN = plot.PlotSubject(
    testbox="vm-icount",
    unit_job="page-fault",
    metric="page-fault.ops",
    unit="ops/s",
    better="higher",
    label="emulated",
)
TAG = "{http://www.w3.org/2000/svg}"


def elements(text: str, class_: str) -> list[ElementTree.Element]:
    return [
        element for element in ElementTree.fromstring(text).iter() if element.get("class") == class_
    ]


HOSTILE = '</text><script>alert("1")</script>&'


def a_bisection(**more: Any) -> dict[str, Any]:
    points = [
        {
            "idx": idx,
            "state": "culprit" if idx == 2 else "measured",
            "probability": 0.9 if idx == 2 else 0.05 if idx else None,
        }
        for idx in range(4)
    ]
    entry = {
        "k": 0,
        "phase": "search",
        "seen_at": "2026-03-02T09:00:00Z",
        "skip": None,
        "boot": "x1",
    }
    log = [
        entry | {"idx": 0, "values": [100.0], "mean": 100.0},
        entry | {"idx": 2, "values": [80.0], "mean": 80.0, "phase": "confirm"},
        entry | {"idx": 1, "values": [], "mean": None, "skip": HOSTILE},
        entry | {"idx": 3, "values": None, "mean": None, "seen_at": None, "boot": None},
    ]
    return {
        "id": "b1",
        "metric": "m",
        "unit_job": "j",
        "testbox": "t",
        "label": "emulated",
        "unit": "ops",
        "better": "higher",
        "points": points,
        "log": log,
    } | more


def test_a_bisection_shows_each_boot_that_came_and_a_bar_for_each_belief() -> None:
    text = plot.bisection_plot(a_bisection())
    assert len(elements(text, "base boot")) == 1 + 1
    assert len(elements(text, "head boot")) == 1 + 1
    assert len(elements(text, "cross")) == 1 + 1
    bars = elements(text, "probability")
    assert [bar.findtext(f"{TAG}title") for bar in bars] == [
        "commit 1: 0.0500",
        "commit 2: 0.9000",
        "commit 3: 0.0500",
    ]
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[1] == pytest.approx(18 * heights[0], rel=0.05)


def test_a_bisection_that_has_seen_nothing_says_so() -> None:
    assert "No boot has completed yet" in plot.bisection_plot(a_bisection(log=[]))


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_are_round_and_within(low: float, width: float) -> None:
    high = low + width
    if high - low < 1e-9 * max(abs(low), abs(high)):
        return
    found = svg.ticks(low, high)
    assert 2 <= len(found) <= 12
    assert all(low - 1e-6 * width <= value <= high + 1e-6 * width for value in found)
    step = found[1] - found[0]
    assert re.fullmatch(r"[125]\.0*e[+-]\d+|9\.9+\de[+-]\d+", f"{step:.2e}") or step < 1e-9 * abs(
        low
    )


@pytest.mark.parametrize(
    ("value", "step", "shown"),
    [
        (0.0, 5.0, "0"),
        (0.25, 0.05, "0.25"),
        (20000.0, 5000.0, "20k"),
        (240500.0, 500.0, "240.5k"),
        (5.5e9, 5e8, "5.5G"),
    ],
)
def test_tick_labels_have_the_digits_of_their_step(value: float, step: float, shown: str) -> None:
    assert svg.tick_label(value, step) == shown


def a_point(place: int | None, *means: float, commit: str = "") -> dict[str, Any]:
    """A row of `read.history`."""
    name = commit or f"{place or 0:040x}"
    boots = [{"boot": f"x{name[-3:]}{k}", "mean": mean, "runs": 2} for k, mean in enumerate(means)]
    return {
        "commit": name,
        "subject": "mm: <b>",
        "variant": f"v{place}",
        "place": place,
        "boots": boots,
    }


def test_over_the_branch_each_boot_is_a_mark_and_the_culprit_precedes_the_tip_that_brought_it() -> (
    None
):
    points = [
        a_point(0, 10.0, 10.5),
        a_point(1, 10.2),
        a_point(2, 8.0),
        a_point(None, 10.1, commit="a" * 40),
        a_point(None, 8.1, 8.2, commit="b" * 40),
    ]
    text = plot.history_plot(SHOWN, points, {"a" * 40: "parent", "b" * 40: "culprit"}, 2)
    tips = elements(text, "base boot")
    marked = elements(text, "head boot")
    assert (len(tips), len(marked)) == (4, 3)
    xs = [float(tip.attrib["cx"]) for tip in tips]
    of_culprit = float(re.findall(r"M([\d.]+)", marked[1].attrib["d"])[0])
    assert xs[2] < of_culprit < xs[3]
    assert ">culprit</text>" in text
    assert "emulated" in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    "points",
    [
        [],
        [a_point(None, 1.0, commit="a" * 40)],
        [a_point(0, 5.0)],
        [a_point(0, 5.0), a_point(1, 5.0)],
    ],
)
def test_a_short_history_still_makes_a_picture(points: list[dict[str, Any]]) -> None:
    ElementTree.fromstring(plot.history_plot(SHOWN, points, {}, None))
