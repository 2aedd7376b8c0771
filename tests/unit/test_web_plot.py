"""Plots are well-formed pictures that hold every value, whatever the names in them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.pages.shown_bisection import bisection_history
from swingbot.web.plots import svg
from swingbot.web.plots.metric_plot import metric_plot

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
            "commit": f"{idx:040x}",
            "subject": HOSTILE,
            "author": HOSTILE,
            "variant": f"v{idx}",
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


def drawn(bisection: dict[str, Any]) -> str:
    history = bisection_history(bisection)
    return metric_plot(history).picture(history.subject)


def test_a_bisection_shows_each_boot_that_came_and_a_bar_for_each_belief() -> None:
    text = drawn(a_bisection(next=[{"idx": 1, "k": 3, "commit": "1" * 40}]))
    assert "<script" not in text
    search, confirmation = (elements(text, f"{look} boot")[0] for look in ("base", "head"))
    assert [one.get("href") for one in (search[0], confirmation[0])] == ["/boot/x1"] * 2
    assert "boot x1: mean 100 of 1 run" in "".join(search.itertext())
    assert "boot x1 (confirmation): mean 80" in "".join(confirmation.itertext())
    assert "search: &lt;/text&gt;" in text, "why there is no value"
    assert "the next boot is k=3 of 111111111111" in text
    bars = elements(text, "probability")
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert len(bars) == 3
    assert heights[1] == pytest.approx(18 * heights[0], rel=0.05)
    assert text.count(": 0.0500") == 2 and text.count(": 0.9000") == 1


def test_a_bisection_that_has_seen_nothing_has_its_beliefs() -> None:
    assert len(elements(drawn(a_bisection(log=[])), "probability")) == 3


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
