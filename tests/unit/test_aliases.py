"""Rows of a comparison that are the same number under another name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from swingbot.core.model.comparison_row import ComparisonRow, Side, without_aliases
from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot.core.plan.aliases import aliases_of_boots, with_aliases
from swingbot.core.report.table.formats import as_text
from swingbot.core.report.table.sheet import sheet_of_table
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.parse import parse_run
from tests.programs import PROGRAMS
from tests.table_documents import a_table

PROGRAMS_DIR = Path(__file__).parents[2] / "jobs" / "programs"
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
    own = [row.to_json() for row in judged(job, rows)]
    document = a_table({}, ["base", "head"], against=("first",), rows=own)
    text = as_text(sheet_of_table(document), counters=True)
    assert "(also netperf.Throughput_total_Mbps" in text
    assert text.count("netperf.Throughput_total_Mbps") == 1


ONE_ITERATION = UnitJob(name="job", program="hackbench", params={"iterations": "1"}, runs=1)
TWO_ITERATIONS = replace(ONE_ITERATION, params={"iterations": "2"})


def boots(*means: float) -> list[PastBoot]:
    return [
        PastBoot(code="c", image="i", day="d", k=k, shared=True, values=(mean,))
        for k, mean in enumerate(means)
    ]


def of_boots(job: UnitJob, **measured: list[PastBoot]) -> dict[tuple[str, str], str]:
    by_key = {(job.name, f"hackbench.{name}"): of_metric for name, of_metric in measured.items()}
    return aliases_of_boots(by_key, {job.name: job}, PROGRAMS)


def test_boots_without_a_comparison_know_aliases_too() -> None:
    same = boots(100.0, 101.0)
    alias = {("job", "hackbench.throughput_avg"): "hackbench.throughput"}
    assert of_boots(ONE_ITERATION, throughput=same, throughput_avg=same) == alias
    assert of_boots(TWO_ITERATIONS, throughput=same, throughput_avg=same) == {}
    assert of_boots(ONE_ITERATION, throughput_avg=same) == {}, "the original was never measured"
    assert of_boots(ONE_ITERATION, throughput=same, throughput_avg=same[1:]) == alias, (
        "the parser learned the second name after the first boot"
    )


def test_one_boot_that_contradicts_the_declaration_keeps_both_records() -> None:
    one, other = boots(100.0, 101.0), boots(100.0, 102.0)
    assert of_boots(ONE_ITERATION, throughput=one, throughput_avg=other) == {}
    assert of_boots(ONE_ITERATION, throughput=one, throughput_avg=other[:1]) == {}, "another boot"


def test_a_noise_record_names_its_original_and_has_no_key_without_one() -> None:
    record = NoiseRecord(alias_of="hackbench.throughput")
    assert codec.typed(NoiseRecord, json.loads(json.dumps(codec.plain(record)))) == record
    assert "alias_of" not in codec.plain(NoiseRecord())
