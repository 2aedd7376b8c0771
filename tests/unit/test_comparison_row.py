"""Comparison rows as JSON: what is stored stays readable, and what is written keeps its keys and
their order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swingbot.core.model.comparison_row import ComparisonRow, row_of
from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.stats.rules import rule_for
from swingbot_jobs.codec import BadDocument

VERDICT_KEYS = [
    *("class", "better", "base", "head", "change_pct", "interval_pct", "verdict", "reason"),
    *("level", "min_effect_pct", "margin_pct", "more_boots", "paired", "p"),
]
NAMES = ["unit_job", "testbox", "label", "metric", "unit", "problems", "headline"]
SIDE = {"boots": 3, "runs": 9, "mean": 100.0, "stddev": 1.0}
# As the first release stored it: without headline, margin, pairing, p and the spread within boots.
OLD: dict[str, Any] = {
    "unit_job": "netperf-UDP_STREAM",
    "testbox": "vm",
    "label": "emulated",
    "metric": "netperf.Throughput_Mbps",
    "unit": "Mbps",
    "class": "benchmark",
    "better": "higher",
    "base": SIDE,
    "head": SIDE | {"mean": 82.0},
    "change_pct": -18.0,
    "interval_pct": [-18.8, -17.2],
    "verdict": "worse",
    "reason": None,
    "level": None,
    "min_effect_pct": 2.0,
    "more_boots": None,
    "problems": [],
}


def judged(klass: str = "benchmark") -> ComparisonRow:
    base, head = (
        [BootRuns(k=k, values=(level + k % 2,)) for k in range(4)] for level in (20.0, 30.0)
    )
    return compare(base, head, rule_for(klass, "higher", 1.0))


def test_a_row_without_names_has_its_keys_in_the_order_that_scripts_know() -> None:
    assert list(judged().verdict_json()) == VERDICT_KEYS
    assert list(judged().to_json()) == [*VERDICT_KEYS, *NAMES]


def test_only_a_share_has_points() -> None:
    assert list(judged("share").verdict_json()) == [
        *VERDICT_KEYS,
        "change_points",
        "interval_points",
    ]


def test_what_is_written_is_read_back_equal() -> None:
    for klass in ("benchmark", "share"):
        written = judged(klass).to_json()
        assert ComparisonRow.from_json(json.loads(json.dumps(written))).to_json() == written


def test_a_row_of_the_first_release_still_loads() -> None:
    row = ComparisonRow.from_json(OLD)
    assert (row.key, row.changed) == (("vm", "netperf-UDP_STREAM", "netperf.Throughput_Mbps"), True)
    assert row.interval_pct == (-18.8, -17.2)
    assert (row.headline, row.margin_pct, row.paired, row.p) == (False, None, None, None)
    assert (row.points, row.base.stddev_within) == (None, None)


def test_unknown_keys_are_passed_over() -> None:
    assert ComparisonRow.from_json(OLD | {"swing": 7}) == ComparisonRow.from_json(OLD)


def test_a_row_that_compared_nothing_claims_no_test() -> None:
    assert not {"margin_pct", "paired", "p"} & ComparisonRow.from_json(OLD).to_json().keys()


@pytest.mark.parametrize("key", ["testbox", "metric", "base", "change_pct", "verdict"])
def test_a_row_without_a_key_that_every_row_had_is_refused_by_name(key: str) -> None:
    with pytest.raises(BadDocument, match=f"row.{key}: is missing"):
        ComparisonRow.from_json({name: value for name, value in OLD.items() if name != key})


def test_a_verdict_that_nobody_gives_is_refused() -> None:
    with pytest.raises(BadDocument, match="row.verdict: 'awful' is not one of"):
        ComparisonRow.from_json(OLD | {"verdict": "awful"})


def test_a_row_is_found_by_its_key() -> None:
    row = ComparisonRow.from_json(OLD)
    assert row_of([row], row.key) is row
    assert row_of([row], ("vm", "other", "metric")) is None
