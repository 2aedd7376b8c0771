"""Rows of a comparison that are the same number under another name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from swingbot.app.commands.text import comparison
from swingbot.core.model.comparison_row import ComparisonRow, Side, without_aliases
from swingbot.core.plan.aliases import with_aliases
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_run

PROGRAMS_DIR = Path(__file__).parents[2] / "jobs" / "programs"
PROGRAMS = load_programs(PROGRAMS_DIR)
NETPERF = PROGRAMS_DIR / "netperf" / "samples"


def rows_of(recorded: str, **params: str) -> tuple[UnitJob, list[ComparisonRow]]:
    """The rows of a comparison in which both kernels gave this recorded output."""
    job = UnitJob(name="job", program="netperf", params=params, runs=1)
    raw = {"stdout": (NETPERF / f"{recorded}.raw" / "stdout").read_text()}
    rows = []
    for metric, (value,) in parse_run("netperf", raw, params, PROGRAMS).items():
        side = Side(boots=1, runs=1, mean=value, stddev=None, values=(value,))
        row = ComparisonRow(
            testbox="vm1",
            unit_job=job.name,
            metric=metric,
            better="higher",
            headline=PROGRAMS["netperf"].metrics[metric].headline,
            base=side,
            head=side,
            change_pct=0.0,
            interval_pct=None,
            verdict="unclear",
        )
        rows.append(row)
    return job, rows


def judged(job: UnitJob, rows: list[ComparisonRow]) -> list[ComparisonRow]:
    return list(with_aliases(rows, {job.name: job}, PROGRAMS))


def names(rows: list[ComparisonRow]) -> set[str]:
    return {row.metric.removeprefix("netperf.") for row in rows}


def test_one_flow_of_udp_has_three_rates_and_one_workload_under_seven_names() -> None:
    job, rows = rows_of("guest-udp-stream", test="UDP_STREAM", nr_threads="1")
    assert len(rows) == 7
    assert names(without_aliases(judged(job, rows))) == {
        "Throughput_Mbps",
        "ThroughputRecv_Mbps",
        "ThroughputBoth_Mbps",
        "workload",
    }


def test_two_flows_have_a_total_that_is_not_their_mean() -> None:
    job, rows = rows_of("guest-tcp-stream-2", test="TCP_STREAM", nr_threads="2")
    assert names(without_aliases(judged(job, rows))) == {
        "Throughput_Mbps",
        "Throughput_total_Mbps",
        "workload",
    }


def test_a_declaration_that_the_numbers_contradict_hides_nothing() -> None:
    job, rows = rows_of("guest-udp-stream", test="UDP_STREAM", nr_threads="1")
    doubled = [
        replace(row, head=replace(row.head, mean=2 * (row.head.mean or 0.0)))
        if row.metric == "netperf.Throughput_total_Mbps"
        else row
        for row in rows
    ]
    assert "Throughput_total_Mbps" in names(without_aliases(judged(job, doubled)))


def test_what_an_alias_is_of_is_stored_and_read_back() -> None:
    job, rows = rows_of("guest-udp-stream", test="UDP_STREAM", nr_threads="1")
    stored = [json.loads(json.dumps(row.to_json())) for row in judged(job, rows)]
    assert len(without_aliases(ComparisonRow.from_json(row) for row in stored)) == 4
    assert sum("alias_of" in row for row in stored) == 3


def test_the_command_line_names_aliases_beside_their_original() -> None:
    job, rows = rows_of("guest-udp-stream", test="UDP_STREAM", nr_threads="1")
    facts = {
        "id": "c1",
        "base": "a" * 40,
        "head": "b" * 40,
        "status": "done",
        "rows": [row.to_json() for row in judged(job, rows)],
    }
    text = comparison(facts, counters=True)
    assert "  aliases: netperf.Throughput_total_Mbps\n" in text
    assert text.count("netperf.Throughput_total_Mbps") == 1
