"""The page of a bisection that ended without a culprit."""

from __future__ import annotations

from typing import Any

from swingbot.web.http.render import Renderer
from swingbot.web.pages.shown_bisection import bisection_history
from swingbot.web.plots.metric_plot import metric_plot
from tests.unit.test_web_facts import Settings


def page(**more: Any) -> str:
    """The page of a bisection without boots."""
    nothing = ("parent", "swing", "incident", "noise", "levels", "p_none", "unit", "better")
    empty = ("branches", "culprits", "log", "points", "steers")
    texts = ("good", "bad", "tree", "testbox", "unit_job", "metric", "label", "reason")
    document = dict.fromkeys(nothing) | dict.fromkeys(texts, "x") | {key: [] for key in empty}
    document |= {"id": "b1", "culprit": None, "change_pct": None, "interval_pct": None}
    document |= {"resumable": False, "boots": 0, "max_boots": 9, "builds": 0, "seconds": 1.0}
    document |= {"steps": 0, "probability": None}
    this = document | more
    plot = metric_plot(bisection_history(this))
    answer = Renderer(Settings()).page("bisection.html", this=this, plot=plot, legend=())
    return bytes(answer.body).decode()


def test_a_cancelled_bisection_has_a_page() -> None:
    """Cancelled by hand it has no conclusion, and so no key `suspect`."""
    assert "The bisection was cancelled." in page(status="cancelled")


def test_a_suspect_is_named_with_what_would_settle_it() -> None:
    suspect = {"commit": "f" * 40, "subject": "mm: x", "probability": 0.93, "settled_by": "boots"}
    said = page(status="inconclusive", suspect=suspect)
    assert "a suspect and no culprit" in said and "mm: x" in said
    assert "does not suffice to name it; boots would settle it." in said
    assert "without a reliable result" in page(status="inconclusive", suspect=None)


def test_a_culprit_that_changes_only_the_spread_has_no_change_of_the_mean() -> None:
    named = {"commit": "f" * 40, "subject": "mm: x", "probability": 0.995, "parent": "e" * 40}
    of_mean = {"change_pct": 0.44, "interval_pct": [-1.0, 2.0]}
    more = {"status": "culprit", "culprit": named, "culprits": [named | of_mean]}
    said = page(**more, **of_mean, spread_ratio=3.14)
    assert "3.1 times the spread between boots" in said and "0.44" not in said
    said = page(**more, change_pct=4.44, interval_pct=[3.0, 5.0], spread_ratio=None)
    assert "4.4" in said and "spread" not in said
