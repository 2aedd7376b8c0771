"""What a command prints above the plot of a bisection."""

from __future__ import annotations

from swingbot.app.commands.text import bisection_head

FACTS = {
    "id": "b2",
    "metric": "netperf.Throughput_Mbps",
    "unit_job": "netperf-udp",
    "testbox": "vm-icount",
    "status": "inconclusive",
    "reason": "fewer than 20 boots",
    "boots": 20,
    "builds": 4,
}


def test_a_suspect_is_named_with_its_probability_and_what_would_settle_it() -> None:
    suspect = {
        "commit": "d" * 40,
        "subject": "mm: drain pages late",
        "probability": 0.9321,
        "settled_by": "6 more boots",
    }
    said = bisection_head(FACTS | {"suspect": suspect})
    assert (
        "suspect dddddddddddd (mm: drain pages late): P = 0.932, too little to name it;"
        " 6 more boots would settle it" in said
    )
    assert "suspect" not in bisection_head(FACTS | {"suspect": None})
    assert "suspect" not in bisection_head(FACTS), "one that was cancelled"


def test_where_only_the_spread_changes_no_change_of_the_mean_is_printed() -> None:
    only = {"spread_ratio": 3.14, "change_pct": 0.4, "interval_pct": [-1.0, 2.0]}
    said = bisection_head(FACTS | only)
    assert "  3.1 times the spread between boots" in said.splitlines()
    assert "change" not in said
    assert "change in its own boots +4.00 %" in bisection_head(
        FACTS | only | {"change_pct": 4.0, "interval_pct": [3.0, 5.0]}
    )
