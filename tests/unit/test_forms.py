"""One comparison as a mail's table, LKP's, perf stat's, and a commit message's lines."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.report import words
from swingbot.core.report.forms import FORMS, NothingToShow, as_changelog, as_lkp, as_mail, as_perf
from swingbot.core.report.sheet import Sheet, sheet_of_bisection, sheet_of_comparison

VARIANTS = {f"{side}_variant": {"commit": letter * 40, "subject": f"mm: {side}"} for side, letter in (("base", "b"), ("head", "a"))}


def a_side(mean: float | None) -> dict[str, Any]:
    return {"boots": 2, "runs": 4, "mean": mean, "stddev": 1.0}


def a_row(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "testbox": "box",
        "label": "emulated",
        "unit_job": "netperf-1",
        "metric": "netperf.Throughput_Mbps",
        "unit": "Mbit/s",
        "better": "higher",
    }
    row |= {"base": a_side(100.0), "head": a_side(90.0), "change_pct": -10.0, "interval_pct": [-11.0, -9.0], "verdict": "worse", "counter": False}
    return row | changes


def samples_of(metric: str, base: float, head: float) -> list[dict[str, Any]]:
    return [
        {"side": side, "testbox": "box", "unit_job": "netperf-1", "metric": metric, "k": k, "run": run, "seq": seq, "value": level + (1 if seq else -1)}
        for side, level in (("base", base), ("head", head))
        for k in range(2)
        for run in range(2)
        for seq in range(2)
    ]


def a_sheet(*rows: dict[str, Any]) -> Sheet:
    samples = samples_of("netperf.Throughput_Mbps", 100.0, 90.0) + samples_of("perf-stat.context-switches", 1000.0, 1500.0)
    samples += samples_of("perf-stat.task-clock", 200.0, 200.0) + samples_of("perf-stat.i.cycles", 1.0, 1.0)
    return sheet_of_comparison("c3", {**VARIANTS, "rows": list(rows or (a_row(),))}, samples)


def test_a_run_with_several_samples_counts_with_their_mean() -> None:
    assert a_sheet().rows[0].base.values == (100.0,) * 4
    assert a_sheet().rows[0].head.values == (90.0,) * 4


def test_counters_are_no_rows_and_intervals_no_counts_of_a_run() -> None:
    sheet = a_sheet(a_row(), a_row(metric="perf-stat.context-switches", counter=True))
    assert [row.metric for row in sheet.rows] == ["netperf.Throughput_Mbps"]
    base, head = sheet.counts["box", "netperf-1"]
    assert base == ({"context-switches": 1000.0, "task-clock": 200.0},) * 4
    assert head[0]["context-switches"] == 1500.0


def test_a_mail_has_both_levels_boots_runs_deviation_and_the_label() -> None:
    text = as_mail(a_sheet(a_row(), a_row(metric="x.noisy", verdict="unclear")))
    assert "On box (emulated), netperf-1:" in text
    assert "  netperf.Throughput_Mbps  100.000 +- 1.00  90.000 +- 1.00    2+2   4+4\n" in text
    assert "      in Mbit/s: 10.0% worse (95% interval 9.0% to 11.0%)\n" in text
    assert "Unclear (too noisy or too few boots): x.noisy." in text
    assert all(words.columns(line) <= words.WIDTH for line in text.splitlines())


def test_lkps_form_names_both_commits_and_the_testbox() -> None:
    text = as_lkp(a_sheet())
    assert '  bbbbbbbbbb ("mm: base")\n  aaaaaaaaaa ("mm: head")\n' in text
    assert "tbox_group/testcase:\n  box/netperf-1\n" in text
    assert "    100.00           -10.0%      90.00        netperf.Throughput_Mbps\n" in text


def test_perf_stat_stands_before_and_after() -> None:
    before, _, after = as_perf(a_sheet()).partition("after: ")
    assert "Performance counter stats for 'netperf-1' (4 runs)" in before
    assert "1,000 context-switches" in before
    assert "1,500 context-switches" in after


def test_a_commit_message_tells_one_of_several_names_of_the_same_number() -> None:
    text = as_changelog(a_sheet(a_row(), a_row(metric="netperf.Throughput_total_Mbps"), a_row(metric="x.same", verdict="same")))
    assert "netperf.Throughput_Mbps" in text
    assert "total" not in text
    assert "x.same" not in text
    assert text.count("\n") < 12


def test_a_commit_message_without_a_change_says_what_stayed() -> None:
    assert "x.same" in as_changelog(a_sheet(a_row(metric="x.same", verdict="same")))


@pytest.mark.parametrize("form", FORMS)
def test_a_form_without_numbers_says_which_are_missing(form: str) -> None:
    empty = sheet_of_comparison("c3", {**VARIANTS, "rows": []}, [])
    with pytest.raises(NothingToShow, match=r"^c3 has no "):
        FORMS[form](empty)


def a_bisection(**changes: Any) -> dict[str, Any]:
    def seen(mean: float, phase: str) -> dict[str, Any]:
        return {"values": [mean - 1, mean + 1], "phase": phase}

    points = [
        {"commit": "c" * 40, "subject": "good end", "observations": [seen(100.0, "ends")]},
        {"commit": "b" * 40, "subject": "before", "observations": [seen(120.0, "search"), seen(100.0, "confirm"), {"values": None, "phase": "confirm"}]},
        {"commit": "a" * 40, "subject": "culprit", "observations": [seen(90.0, "confirm"), seen(90.0, "confirm")]},
    ]
    found: dict[str, Any] = {
        "id": "b2",
        "status": "culprit",
        "culprit": {"commit": "a" * 40},
        "points": points,
        "testbox": "box",
        "label": None,
        "unit_job": "netperf-1",
    }
    found |= {"metric": "x.m", "unit": "s", "better": "lower", "change_pct": -10.0, "interval_pct": [-11.0, -9.0]}
    return found | changes


def test_a_bisection_is_shown_by_the_boots_that_confirmed_it() -> None:
    sheet = sheet_of_bisection(a_bisection())
    assert sheet is not None
    row = sheet.rows[0]
    assert (sheet.base.sha, sheet.head.sha) == ("b" * 40, "a" * 40)
    assert (row.base.mean, row.base.boots, row.base.runs, row.head.boots) == (100.0, 1, 2, 2)
    assert row.change_pct == pytest.approx(-10.0)
    assert (row.interval_pct, row.verdict) == ((-11.0, -9.0), "better")


def test_an_interval_of_another_change_is_not_printed_beside_this_one() -> None:
    sheet = sheet_of_bisection(a_bisection(change_pct=-14.0))
    assert sheet is not None
    assert sheet.rows[0].interval_pct is None


def test_a_bisection_without_a_culprit_or_without_its_boots_has_no_sheet() -> None:
    assert sheet_of_bisection(a_bisection(culprit=None)) is None
    unmeasured = a_bisection()
    unmeasured["points"][1]["observations"] = []
    assert sheet_of_bisection(unmeasured) is None
