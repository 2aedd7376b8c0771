"""The same numbers as a mail's table, LKP's table, `perf stat` before and after, and a commit
message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from swingbot.core.model.comparison_row import ComparisonRow, Side, Verdict
from swingbot.core.report.formats.sheet import Sheet, sheet_of_comparison
from swingbot.core.report.formats.sheet_formats import FORMS, NothingToShow
from swingbot.core.report.report_facts import Commit

NETPERF, HACKBENCH = "vm-netperf-udp", "vm-hackbench-socket"


def a_row(
    metric: str, unit_job: str, base: float, head: float, verdict: Verdict = "worse"
) -> ComparisonRow:
    values = ((base - 1, base + 1), (head - 1, head + 1))
    sides = [
        Side(boots=2, runs=2, mean=mean, stddev=1.0, values=runs)
        for mean, runs in zip((base, head), values, strict=True)
    ]
    change = 100 * (head / base - 1)
    return ComparisonRow(
        testbox="vm-icount",
        label="emulated",
        unit_job=unit_job,
        metric=metric,
        unit="Mbit/s",
        better="higher",
        base=sides[0],
        head=sides[1],
        change_pct=change,
        interval_pct=(change - 0.3, change + 0.3),
        verdict=verdict,
    )


def a_sheet() -> Sheet:
    rows = (
        a_row("netperf.Throughput_Mbps", NETPERF, 2262.0, 2051.0),
        a_row("hackbench.throughput", HACKBENCH, 365.0, 364.0, "same"),
    )
    counts = {
        ("vm-icount", job): (
            (({"task-clock": 10.0},), ({"task-clock": 12.0},)),
            (({"task-clock": 20.0},),),
        )
        for job in (HACKBENCH, NETPERF)
    }
    commits = [
        Commit(sha=digit * 40, subject=f"mm: {word}", author="A <a@b>")
        for digit, word in (("a", "before"), ("b", "after"))
    ]
    return Sheet(id="c5", base=commits[0], head=commits[1], rows=rows, counts=counts)


@pytest.mark.parametrize("form", ["mail", "changelog"])
def test_mail_and_changelog_say_levels_boots_and_direction_in_words(form: str) -> None:
    text = FORMS[form](a_sheet())
    assert "9.3% worse" in text
    assert "2262" in text
    assert "2+2" in text
    assert max(map(len, text.splitlines())) <= 78


def test_a_changelog_tells_what_changed_and_not_what_did_not() -> None:
    assert "hackbench" not in FORMS["changelog"](a_sheet())
    assert "hackbench" in FORMS["mail"](a_sheet())


@pytest.mark.parametrize("form", ["mail", "changelog", "lkp"])
def test_one_number_is_printed_under_one_name(form: str) -> None:
    sheet = a_sheet()
    flow, other = sheet.rows
    names = ["netperf.Throughput_total_Mbps", "netperf.ThroughputBoth_Mbps"]
    aliases = [replace(flow, metric=name, alias_of=flow.metric) for name in names]
    text = FORMS[form](replace(sheet, rows=(*aliases, flow, replace(other, verdict="worse"))))
    assert flow.metric in text
    assert other.metric in text
    assert not [name for name in names if name in text]


@pytest.mark.parametrize("form", ["mail", "changelog", "lkp"])
def test_equal_numbers_of_two_metrics_that_no_program_calls_aliases_are_both_printed(
    form: str,
) -> None:
    sheet = a_sheet()
    flow = sheet.rows[0]
    text = FORMS[form](replace(sheet, rows=(flow, replace(flow, metric="netperf.workload"))))
    assert flow.metric in text
    assert "netperf.workload" in text


def test_an_alias_without_its_original_is_printed() -> None:
    sheet = a_sheet()
    alone = replace(sheet.rows[0], metric="netperf.x", alias_of="netperf.Throughput_Mbps")
    assert "netperf.x" in FORMS["mail"](replace(sheet, rows=(alone,)))


def test_lkps_table_has_a_line_a_metric_and_the_change_as_lkp_prints_it() -> None:
    text = FORMS["lkp"](a_sheet())
    (line,) = [line for line in text.splitlines() if line.endswith("netperf.Throughput_Mbps")]
    assert line.split()[:3] == ["2262", "-9.3%", "2051"]
    assert text.count("tbox_group/testcase:") == 2


def test_perf_tables_come_in_the_order_of_the_rows_before_each_after() -> None:
    text = FORMS["perf"](a_sheet())
    places = [text.index(f"stats for '{job}'") for job in (NETPERF, HACKBENCH)]
    assert places == sorted(places)
    assert text.index("before: aaaaaaaaaaaa") < text.index("after: bbbbbbbbbbbb")


def a_comparison(runs: list[tuple[str, int, int, float]]) -> Sheet:
    """A comparison as JSON with task-clock of (side, k, run, msec), made into a sheet."""
    part = {"testbox": "vm-icount", "unit_job": NETPERF}
    job = {
        "name": NETPERF,
        "program": "netperf",
        "params": {"test": "UDP_STREAM", "nr_threads": "1"},
        "runs": 2,
    }
    variants = {
        f"{side}_variant": {"commit": letter * 40, "subject": "mm: x", "author": ""}
        for side, letter in (("base", "a"), ("head", "b"))
    }
    samples = [
        part | {"metric": "perf-stat.task-clock", "side": side, "k": k, "run": run, "value": value}
        for side, k, run, value in runs
    ]
    parts = [{"testbox": "vm-icount", "unit_jobs": [job]}]
    return sheet_of_comparison("c5", {"rows": [], "parts": parts, **variants}, samples)


def test_perf_tables_are_headed_by_the_command_and_their_noise_is_that_of_boots() -> None:
    sides = [("base", 2145.0), ("head", 2145.0)]
    runs = [(side, k, 0, slow) for side, slow in sides for k in range(3)]
    runs += [(side, k, 1, 1169.0) for side, _ in sides for k in range(3)]
    text = FORMS["perf"](a_comparison(runs))
    command = "nr_threads=1 test=UDP_STREAM jobs/programs/netperf/run"
    assert text.count(f" Performance counter stats for '{command}' (6 runs in 3 boots):") == 2
    assert text.count("( +-  0.00% )") == 2


@pytest.mark.parametrize("form", ["mail", "lkp", "perf", "changelog"])
def test_no_numbers_are_one_sentence(form: str) -> None:
    with pytest.raises(NothingToShow, match="c5 "):
        FORMS[form](replace(a_sheet(), rows=(), counts={}))


@pytest.mark.parametrize("form", ["mail", "lkp", "perf", "changelog"])
def test_subjects_from_strangers_break_no_line(form: str) -> None:
    sheet = a_sheet()
    hostile = replace(
        sheet, base=replace(sheet.base, subject="x\n\nSigned-off-by: No One\x1b[31m" + "y" * 10_000)
    )
    text = FORMS[form](hostile)
    assert "\nSigned-off-by" not in text
    assert "\x1b" not in text
    assert len(text) < 4 * len(FORMS[form](sheet)) + 2000
