"""Runs that LKP did: the job that it is given, and which of its answers count. The numbers are
of runs recorded by us with lkp-tests bbbc29c495."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.lkp import NoLkpEquivalent, exit_status, job_file, job_file_by_hand
from swingbot_jobs.reading.parse import METRIC, parse_results, parse_run
from swingbot_jobs.reading.result import ParsedRun, ParseError
from tests.programs import PROGRAMS
from tests.unit.test_parse_results import tar

PARAMS = {
    "nr_threads": "2",
    "mode": "process",
    "ipc": "pipe",
    "iterations": "3",
    "loops": "50",
    "fds": "10",
    "datasize": "100",
}
HACKBENCH = UnitJob(name="hackbench-a", program="hackbench", params=PARAMS, runs=1)
STATS: dict[str, object] = {
    "hackbench.throughput": 607.4766355140187,
    "hackbench.throughput_best": 607.4766355140187,
    "hackbench.throughput_avg": 283.98,
    "hackbench.throughput_worst": 203.97489539748955,
    "hackbench.time.user_time": 0.3,
    "time.elapsed_time": 2.62,
    "time.elapsed_time.max": 2.62,
}
_ITERATION = (
    "Iterations: {}\n2026-11-22 07:11:53 hackbench -g 2 -f 10 --process --pipe -l 50 -s 100\n"
    "Running in process mode with 2 groups using 20 file descriptors each (== 40 tasks)\n"
    "Each sender will pass 50 messages of 100 bytes\nTime: {}\n"
)
STDOUT = "Instance: 1\n" + "".join(
    _ITERATION.format(n, time) for n, time in enumerate(("0.783", "0.956", "0.321"), start=1)
)
SAMPLES = {
    "hackbench.throughput": [607.4766355140187],
    "hackbench.throughput_avg": [283.98],
    "hackbench.throughput_worst": [203.97489539748955],
}


def a_run(stats: str | Mapping[str, object] = STATS, **files: str) -> dict[str, str]:
    """The files of one run as the script sends them; `__` in a name stands for a dot."""
    text = stats if isinstance(stats, str) else json.dumps(stats)
    found = {
        "engine": "lkp\n",
        "rc": "0\n",
        "seconds": "97.76\n",
        "stdout": STDOUT,
        "lkp.stats.json": text,
    }
    return found | {name.replace("__", "."): content for name, content in files.items()}


def read(files: Mapping[str, str], job: UnitJob = HACKBENCH) -> ParsedRun:
    sent = tar({f"{job.name}/0/{name}": content for name, content in files.items()})
    [run] = parse_results(io.BytesIO(sent), [job], PROGRAMS)
    return run


def refused(**files: str) -> str:
    run = read(a_run(**files))
    assert (run.status, run.samples) == ("failed", {})
    assert run.reason is not None
    return run.reason


# --- the job


def test_a_job_has_the_values_of_the_unit_job_and_none_of_lkp_s_monitors() -> None:
    document = yaml.safe_load(job_file(HACKBENCH, PROGRAMS))
    assert document == {
        "suite": "hackbench",
        "testcase": "hackbench",
        "category": "benchmark",
        "need_monitors": "false",
        "hackbench": PARAMS,
    }


def test_netperf_s_server_and_client_are_one_testbox() -> None:
    params = {
        "cluster": "cs-localhost",
        "test": "TCP_RR",
        "nr_threads": "2",
        "runtime": "3",
        "ip": "ipv6",
    }
    job = UnitJob(name="n", program="netperf", params=params, runs=1)
    document = yaml.safe_load(job_file(job, PROGRAMS))
    assert (document["cluster"], document["node_roles"], document["ip"]) == (
        "cs-localhost",
        "server client",
        "ipv6",
    )
    assert document["if role server"] == {"netserver": None}
    assert document["if role client"] == {
        "netperf": {"test": "TCP_RR", "nr_threads": "2", "runtime": "3"}
    }


def test_a_value_with_yaml_in_it_stays_one_value() -> None:
    document = yaml.safe_load(
        job_file(
            UnitJob(
                name="h",
                program="hackbench",
                params={"mode": "x\n    commit: 1", "ipc": "yes"},
                runs=1,
            ),
            PROGRAMS,
        )
    )
    assert document["hackbench"] == {"mode": "x\n    commit: 1", "ipc": "yes"}


def test_a_program_that_lkp_does_not_have_is_named() -> None:
    with pytest.raises(
        NoLkpEquivalent,
        match=(
            "can't run page-fault: lkp-tests does not have it; both have hackbench, netperf, "
            "perf-bench-sched-pipe, will-it-scale"
        ),
    ):
        job_file(UnitJob(name="p", program="page-fault", params={}, runs=1), PROGRAMS)


def test_a_job_for_people_says_what_its_boots_had_and_why_there_is_none() -> None:
    job = replace(
        HACKBENCH, monitors=("perf-stat",), cmdline="nosmt", sysctl={"kernel.sched_x": "1 2"}
    )
    notes = "# kernel command line: nosmt\n# set before the run: sysctl -w 'kernel.sched_x=1 2'\n"
    assert job_file_by_hand(job, PROGRAMS) == notes + job_file(HACKBENCH, PROGRAMS)
    none = job_file_by_hand(replace(job, program="page-fault"), PROGRAMS)
    assert yaml.safe_load(none) is None and "lkp-tests does not have it" in none


# --- what counts


def test_lkp_s_statistics_are_samples_under_the_same_names() -> None:
    run = read(a_run())
    assert (run.status, run.reason, run.samples, run.seconds) == ("ok", None, SAMPLES, 97.76)


def test_what_lkp_left_out_because_it_was_0_is_missing_here() -> None:
    stdout = (
        "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0 AF_INET to 127.0.0.1 () "
        "port 0 AF_INET : demo : first burst 0\n"
        "Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.   CPU    CPU    S.dem   "
        "S.dem\n"
        "Send   Recv   Size     Size    Time     Rate     local  remote local   remote\n"
        "bytes  bytes  bytes    bytes   secs.    per sec  % S    % S    us/Tr   us/Tr\n\n"
        "16384  131072 1        1       2.00     16362.36   9.15   9.15   11.184  11.184 "
        "\n16384  131072\n"
    )
    job = UnitJob(
        name="netperf-rr",
        program="netperf",
        params={"test": "TCP_RR", "nr_threads": "1", "runtime": "2"},
        runs=1,
    )
    kept = (
        "Throughput_tps",
        "ThroughputBoth_tps",
        "Throughput_total_tps",
        "ThroughputBoth_total_tps",
    )
    stats = {f"netperf.{name}": 16362.36 for name in kept} | {"netperf.workload": 32724.72}
    run = read(a_run(stats, stdout=stdout), job)
    assert run.status == "ok"
    assert run.samples["netperf.Throughput_tps"] == [16362.36]
    assert "netperf.ThroughputRecv_tps" not in run.samples
    lost = read(
        a_run(stats, stdout=stdout),
        UnitJob(
            name="netperf-rr", program="netperf", params={**job.params, "nr_threads": "2"}, runs=1
        ),
    )
    assert (lost.status, lost.reason) == ("failed", "1 of 2 netperf instances printed a result")


def test_a_difference_between_both_readers_is_reported_and_lkp_s_number_kept() -> None:
    run = read(a_run(STATS | {"hackbench.throughput_avg": 284.5}))
    assert (run.status, run.samples["hackbench.throughput_avg"]) == ("ok", [284.5])
    assert run.reason == "LKP and swingbot read throughput_avg differently; LKP's is kept"


@pytest.mark.parametrize(
    ("last_state", "said"),
    [
        ("is_incomplete_run: 1\n", "the run is incomplete"),
        (
            "# missing hackbench /lkp/result/x/0/hackbench\nis_incomplete_run: 1\n",
            "the run is incomplete",
        ),
        ("soft_timeout: 1\n", "it was stopped by LKP's soft time limit"),
        ("OOM: 1\nis_incomplete_run: 1\n", "the machine ran out of memory; the run is incomplete"),
        (
            "test.hackbench.exit_code.99: 1\nexit_fail: 1\n",
            "hackbench ended with exit status 99; a program failed",
        ),
        ("setup.cpufreq_governor.exit_code.1: 1\n", "cpufreq_governor ended with exit status 1"),
        ("something_new\x1b[31m: 1\n", "something_new?[31m"),
    ],
)
def test_a_run_that_last_state_complains_of_never_counts(last_state: str, said: str) -> None:
    assert refused(lkp__last_state=last_state) == f"LKP's last_state: {said}"


def test_a_state_that_is_0_is_no_complaint() -> None:
    assert read(a_run(lkp__last_state="OOM: 0\n\n")).status == "ok"


def test_states_among_the_statistics_count_too() -> None:
    assert (
        refused(lkp__stats__json=json.dumps(STATS | {"last_state.soft_timeout": 1}))
        == "LKP's last_state: it was stopped by LKP's soft time limit"
    )


def test_the_exit_status_that_lkp_run_does_not_tell_is_in_last_state() -> None:
    assert exit_status("test.hackbench.exit_code.7: 1\nexit_fail: 1\n") == 7
    assert exit_status("is_incomplete_run: 1\n") == 0


@pytest.mark.parametrize(
    ("stats", "said"),
    [
        ("", "LKP wrote no stats.json"),
        ("{}\n", "LKP's stats.json has no hackbench statistic"),
        ('{"hackbench.throughput": 1', "LKP's stats.json is broken: Expecting"),
        ("[1]", "LKP's stats.json is not a table of names and numbers"),
        ('{"hackbench.throughput": NaN}', "LKP's stats.json is broken: NaN is not a finite number"),
        (
            '{"hackbench.throughput": -Infinity}',
            "LKP's stats.json is broken: -Infinity is not a finite number",
        ),
        (
            '{"hackbench.throughput": 1e999}',
            (
                "LKP's stats.json gives 'hackbench.throughput' with a value that is not a "
                "number below 1e+100"
            ),
        ),
        (
            '{"hackbench.throughput": 1' + "0" * 400 + "}",
            (
                "LKP's stats.json gives 'hackbench.throughput' with a value that is not a "
                "number below 1e+100"
            ),
        ),
        (
            '{"hackbench.throughput": 0}',
            "LKP's stats.json gives hackbench.throughput as 0, which no run measures",
        ),
        ('{"hackbench.throughput": "607"}', "LKP's stats.json has no hackbench statistic"),
        (
            '{"hackbench.' + "x" * 10_000 + '": 1}',
            "LKP's stats.json has a name of 10010 characters: 'hackbench.xxxx",
        ),
        ("[" * 100_000, "LKP's stats.json is broken: "),
        (
            json.dumps({f"vmstat.x{n}": 1 for n in range(20_001)}),
            "LKP's stats.json has 20001 statistics, more than 20000",
        ),
        (
            '{"hackbench.throughput": 607.4766355140187}',
            "LKP's stats.json lacks hackbench.throughput_avg, which the program printed",
        ),
    ],
)
def test_statistics_that_can_t_be_believed_make_a_failed_run_and_no_zeros(
    stats: str, said: str
) -> None:
    assert refused(lkp__stats__json=stats).startswith(said)


def test_statistics_too_large_to_be_sent_are_named() -> None:
    left_out = "stats.json has 1000001 bytes\x1b and was left out\n"
    assert (
        refused(lkp__stats__json="", lkp__left_out=left_out)
        == "LKP wrote no stats.json (stats.json has 1000001 bytes? and was left out)"
    )


def test_an_iteration_that_gave_no_time_is_noticed_although_lkp_does_not() -> None:
    assert (
        refused(stdout=STDOUT.rpartition("Time")[0]) == "2 of 3 hackbench iterations printed a time"
    )


def test_a_run_that_was_killed_has_no_result() -> None:
    assert (
        refused(rc="137\n", lkp__stats__json="")
        == "hackbench was stopped by its time limit: LKP wrote no stats.json"
    )


def test_without_the_marker_our_own_parser_reads_alone() -> None:
    files = a_run(STATS | {"hackbench.throughput": 1.0})
    del files["engine"]
    assert read(files).samples == SAMPLES


@given(st.text(), st.text(), st.text())
def test_whatever_comes_back_gives_numbers_or_one_error(
    stats: str, last_state: str, stdout: str
) -> None:
    files = a_run(stats, lkp__last_state=last_state, stdout=stdout)
    said = ""
    try:
        assert all(
            METRIC.fullmatch(name) for name in parse_run("hackbench", files, PARAMS, PROGRAMS)
        )
    except ParseError as error:
        said = str(error)
    assert len(said) < 600
