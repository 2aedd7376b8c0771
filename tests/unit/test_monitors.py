"""Monitors: what is made of proc files before and after a run, of perf by interval, of a
profile; and runs that belong to a monitor."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swingbot_jobs import codec, limits
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import find_metric
from swingbot_jobs.reading import snapshots
from swingbot_jobs.reading.parse import parse_file, parse_results
from swingbot_jobs.reading.perf_interval import read_intervals, samples
from swingbot_jobs.reading.perf_profile import lock_slowpath, read_profile
from swingbot_jobs.reading.result import ParseError
from tests.amount import ALL, examples
from tests.programs import PROGRAMS
from tests.unit.test_parse_results import GOOD, tar

MONITORS = sorted(name for name, program in PROGRAMS.items() if program.kind == "monitor")
RAW = [
    path.read_bytes()
    for path in sorted(
        (Path(__file__).resolve().parents[2] / "jobs" / "programs").glob("*/samples/*.raw")
    )
    if path.is_file()
]


# --- proc files -----------------------------------------------------------------------------------


def vmstat(*snapshot: str) -> dict[str, float]:
    text = "".join(f"time: {at}.00\n{lines}\n" for at, lines in enumerate(snapshot))
    return snapshots.vmstat(snapshots.read_snapshots(text, snapshots.key_values))


def test_counters_are_what_they_grew_by_and_gauges_their_mean() -> None:
    assert vmstat(
        "pgfault 5\nnr_free_pages 10\nnr_dirtied 7\nworkingset_nodes 2",
        "pgfault 9\nnr_free_pages 20\nnr_dirtied 8\nworkingset_nodes 4",
    ) == {
        "pgfault": 4,
        "nr_free_pages": 15,
        "nr_dirtied": 1,
        "workingset_nodes": 3,
    }


def test_a_counter_that_ran_backwards_or_stands_in_one_snapshot_only_is_missing() -> None:
    assert vmstat(
        "pgfault 5\npgfree 3\npgmajfault 0", "pgfault 4\npgmajfault 0\nthp_fault_alloc 6"
    ) == {"pgmajfault": 0}


def test_one_snapshot_tells_how_it_stood_and_nothing_about_what_happened() -> None:
    assert vmstat("pgfault 5\nnr_free_pages 10") == {"nr_free_pages": 10}
    found = snapshots.read_snapshots("Node 0, zone DMA 1 2\n", snapshots.buddyinfo)
    assert snapshots.before_and_after(found) == {
        "before.Node.0.zone.DMA.0": 1,
        "before.Node.0.zone.DMA.1": 2,
    }


def test_of_a_key_that_stands_twice_the_first_counts() -> None:
    assert vmstat("pgfault 5\npgfault 50", "pgfault 6\npgfault 90") == {"pgfault": 1}


def test_interrupts_of_cpus_are_summed_and_those_of_no_cpu_kept() -> None:
    text = (
        "            CPU0       CPU1\n  0:   3   4  IO-APIC   2-edge      timer\nLOC:  10  "
        "20   Local timer interrupts\nERR:  1\n"
    )
    found = snapshots.interrupts(text.splitlines())
    assert found["0:IO-APIC.2-edge.timer"] == 7
    assert (
        found["CPU0.LOC:Local_timer_interrupts"],
        found["CPU1.LOC:Local_timer_interrupts"],
        found["ERR"],
    ) == (10, 20, 1)


# --- perf by interval -----------------------------------------------------------------------------


def interval(at: str, **counts: str) -> str:
    return "".join(
        f"     {at},{count},,{event.replace('_', '-')},1000,100.00,,\n"
        for event, count in counts.items()
    )


THREE = interval(
    "1.000000000", cpu_cycles="200", instructions="100", cache_references="50", cache_misses="10"
) + interval(
    "3.000000000", cpu_cycles="100", instructions="200", cache_references="50", cache_misses="40"
)
LAST = interval(
    "4.000000000", cpu_cycles="999", instructions="999", cache_references="999", cache_misses="999"
)


def test_the_last_interval_counts_nowhere_but_in_the_time_that_the_rates_are_of() -> None:
    found = samples(read_intervals(THREE + LAST))
    assert found["ps.cpu-cycles"] == [300 / 4]
    assert found["total.instructions"] == [300]
    assert found["i.cpu-cycles"] == [(200 / 1 + 100 / 2) / 2]


def test_the_mean_of_ratios_is_not_the_ratio_of_sums_and_both_are_given() -> None:
    found = samples(read_intervals(THREE + LAST))
    assert (found["i.ipc"], found["overall.ipc"]) == ([(0.5 + 2) / 2], [1.0])
    assert (found["i.cache-miss-rate%"], found["overall.cache-miss-rate%"]) == (
        [(20 + 80) / 2],
        [50.0],
    )
    assert found["overall.MPKI"] == [50 / 300 * 1000]
    assert found["overall.cycles-between-cache-misses"] == [300 / 50]


def test_misses_of_the_tlb_are_divided_by_loads_and_misses() -> None:
    text = interval("1.000000000", dTLB_loads="30", dTLB_load_misses="10") + interval(
        "2.000000000", dTLB_loads="1", dTLB_load_misses="1"
    )
    assert samples(read_intervals(text))["overall.dTLB-load-miss-rate%"] == [25.0]


def test_an_interval_in_which_an_event_was_not_counted_has_none_rather_than_zero() -> None:
    text = "".join(
        interval(f"{at}.000000000", page_faults=count)
        for at, count in ((1, "100"), (2, "<not counted>"), (3, "300"), (4, "5"))
    )
    found = samples(read_intervals(text))
    # nothing says that the second interval had ended
    assert found["i.page-faults"] == [(100 + 300 / 2) / 2]


def test_the_halves_of_a_hybrid_cpu_add_up_within_an_interval() -> None:
    lines = (
        "     {at},5,,cpu_core/cpu-cycles/,1,100.00,,\n     "
        "{at},7,,cpu_atom/cpu-cycles/,1,100.00,,\n"
    )
    assert samples(read_intervals(lines.format(at="1.0") + lines.format(at="2.0")))[
        "i.cpu-cycles"
    ] == [12.0]


def test_sockets_count_by_themselves_and_together() -> None:
    lines = "     {at},S0,12,5,,cpu-cycles,1,100.00,,\n     {at},S1,12,7,,cpu-cycles,1,100.00,,\n"
    found = samples(read_intervals(lines.format(at="1.0") + lines.format(at="2.0")))
    assert (found["i.cpu-cycles"], found["i.S0.cpu-cycles"], found["i.S1.cpu-cycles"]) == (
        [12.0],
        [5.0],
        [7.0],
    )


@pytest.mark.parametrize(
    "line",
    [
        "     {at},1234.50,msec,task-clock,1,100.00,1.2,CPUs utilized\n",
        "     {at};1234.50;msec;task-clock;1;100.00;1.2;CPUs utilized\n",
        "     {at}     1,234.50 msec task-clock      #    1.2 CPUs utilized\n",
        "     {at} 1234.50 msec task-clock 1 100.00 1.2 CPUs utilized\n",
        (
            '{{"interval" : {at}, "counter-value" : "1234.500000", "unit" : "msec", "event" '
            ': "task-clock", "event-runtime" : 1}}\n'
        ),
    ],
)
def test_intervals_are_read_in_every_form_that_perf_writes(line: str) -> None:
    assert samples(
        read_intervals(line.format(at="1.000000000") + line.format(at="2.000000000"))
    ) == {"i.task-clock": [1234.5], "ps.task-clock": [1234.5]}


def test_perfs_own_rates_are_summed_within_an_interval() -> None:
    line = (
        "     {at},8778,,context-switches,1,100.00,0.526,K/sec\n     "
        "{at},100,,page-faults,1,100.00,0.25,K/sec\n"
    )
    assert samples(read_intervals(line.format(at="1.0") + line.format(at="2.0")))[
        "i.metric.K/sec"
    ] == [0.776]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        THREE[: THREE.index("3.0")],
        "1,,cycles,1,100.00,,\n",
        # a decimal comma beside commas between fields
        (
            "     1,000000000,12,5,msec,task-clock,1,100,00,1,2,CPUs utilized\n     "
            "2,000000000,12,5,msec,task-clock,1,100,00,1,2,CPUs utilized\n"
        ),
        (
            "     1.000000000,12,5,msec,task-clock,1,100,00,1,2,CPUs utilized\n     "
            "2.000000000,12,5,msec,task-clock,1,100,00,1,2,CPUs utilized\n"
        ),
    ],
)
def test_what_holds_no_whole_interval_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="no complete interval of perf stat -I"):
        read_intervals(text)


# --- profiles -------------------------------------------------------------------------------------

PROFILE = """# ========
# Samples: 8K of event 'cycles:pp'
    50.00%    20.00%  [kernel.kallsyms]  [k] do_work.isra.3
20.00% do_work.isra.3;b;c;d.constprop.0;e;f;g
    10.00%     5.00%  [kernel.kallsyms]  [k] do_work            -      -
     7.25%     7.25%  [kernel.kallsyms]  [k] native_queued_spin_lock_slowpath
     0.02%     0.02%  libc.so.6          [.] never_seen
# Samples: 3 of event 'dummy:HG'
    99.00%    98.00%  [kernel.kallsyms]  [k] other
"""


def test_copies_of_a_function_are_one_symbol_and_events_are_kept_apart() -> None:
    shares = read_profile(PROFILE)
    assert (shares["children.cycles-pp.do_work"], shares["self.cycles-pp.do_work"]) == (60.0, 25.0)
    assert shares["calltrace.cycles-pp.do_work.b.c.d.e"] == 20.0
    assert shares["self.dummy-HG.other"] == 98.0


def test_the_share_of_the_lock_slow_path_is_reported_and_is_zero_where_nobody_waited() -> None:
    assert lock_slowpath(read_profile(PROFILE)) == 7.25
    assert lock_slowpath(read_profile(PROFILE.replace("native_queued", "other"))) == 0.0


def test_a_profile_without_samples_or_header_is_refused() -> None:
    for text, message in (
        ("", "names no event"),
        ("# Samples: 0  of event 'cycles'\n#\n", "no sample"),
    ):
        with pytest.raises(ParseError, match=message):
            read_profile(text)


# --- runs that belong to a monitor ----------------------------------------------------------------

WATCHED = UnitJob(
    name="j-1",
    program="page-fault",
    params={"nr_task": "1", "mode": "process"},
    runs=1,
    monitors=("perf-profile", "vmstat"),
)


def a_boot(*runs: dict[str, str]) -> io.BytesIO:
    return io.BytesIO(
        b"".join(
            tar({f"j-1/{number}/{name}": content for name, content in files.items()})
            for number, files in enumerate(runs)
        )
    )


def test_numbers_of_a_run_that_a_monitor_disturbs_are_never_stored_under_compared_names() -> None:
    plain = {name: text for name, text in GOOD.items() if name != "perf-stat"}
    light = {"proc-vmstat": "time: 1.0\npgfault 5\ntime: 2.0\npgfault 9\n"}
    first, second, third = parse_results(
        a_boot(GOOD | light, plain | light | {"perf-profile": PROFILE}, plain), [WATCHED], PROGRAMS
    )
    assert set(first.samples) == {
        "page-fault.per_process_ops",
        "perf-stat.page-faults",
        "proc-vmstat.pgfault",
    }
    assert first.monitor is None
    assert (second.status, second.monitor) == ("ok", "perf-profile")
    assert {name.partition(".")[0] for name in second.samples} == {"perf-profile"}
    assert second.samples["perf-profile.beside.page-fault.per_process_ops"] == [2.0]
    assert second.samples["perf-profile.lock_slowpath"] == [7.25]
    assert (third.status, third.reason, third.samples) == (
        "failed",
        "vmstat printed only the row of averages since boot: the run was too short",
        {},
    )


def test_the_path_length_is_instructions_by_workload() -> None:
    job = UnitJob(
        name="j-1",
        program="will-it-scale",
        params={"nr_task": "1", "mode": "process"},
        runs=1,
        monitors=("perf-stat-interval",),
    )
    good = {"stdout": "average:50\n", "rc": "0\n"}
    runs = parse_results(a_boot(good, good | {"perf-stat-interval": THREE + LAST}), [job], PROGRAMS)
    assert runs[1].samples["perf-stat.overall.path-length"] == [300 / 50]
    assert "perf-stat.overall.path-length" not in runs[0].samples


def test_a_unit_job_without_monitors_is_written_as_it_always_was() -> None:
    plain = UnitJob(name="j", program="p", params={}, runs=2)
    assert "monitors" not in codec.plain(plain)
    assert codec.typed(UnitJob, codec.plain(WATCHED)) == WATCHED
    assert [WATCHED.monitor_of(number) for number in WATCHED.numbers] == [
        None,
        "perf-profile",
        "vmstat",
    ]


def test_only_what_is_watched_in_every_run_and_is_not_a_crowd_of_names_is_judged() -> None:
    judged = {
        name: bool(metric and metric.judged)
        for name in JUDGED
        for metric in (find_metric(PROGRAMS, name),)
    }
    assert judged == JUDGED


JUDGED = {
    "time.system_time": True,
    "proc-vmstat.pgfault": True,
    "perf-stat.context-switches": True,
    "perf-profile.lock_slowpath": True,
    "perf-profile.self.cycles-pp.clear_page_erms": False,
    "perf-profile.beside.netperf.Throughput_Mbps": False,
    "perf-stat.i.ipc": False,
    "perf-stat.beside.netperf.Throughput_Mbps": False,
    "buddyinfo.after.Node.0.zone.Normal.3": False,
    "interrupts.LOC:Local_timer_interrupts": False,
}


# --- hostile input --------------------------------------------------------------------------------


@st.composite
def bytes_of(draw: st.DrawFn) -> bytes:
    """Arbitrary bytes, or pieces of recorded outputs of any program, cut and joined."""
    pieces = draw(st.lists(st.sampled_from(RAW), max_size=4))
    cut = [
        piece[draw(st.integers(0, len(piece))) :][: draw(st.integers(0, 2000))] for piece in pieces
    ]
    return b"".join([*cut, draw(st.binary(max_size=200))])


@pytest.mark.parametrize("program", sorted(PROGRAMS))
@settings(max_examples=examples(40))
@given(content=bytes_of())
@example(
    content=(
        b" Errors   Throughput   Util     Demand\nbytes   bytes    secs            #      #   "
        b"10^6bits/sec\n\n212992   6"
    )
)
@example(content=b"Size Time Throughput\n10^6bits\n1 2 3\n")
def test_arbitrary_bytes_are_samples_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, program: str, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "output"
    path.write_bytes(content)
    try:
        found = parse_file(program, path, PROGRAMS)["samples"]
    except ParseError as error:
        assert "\n" not in str(error)  # noqa: PT017 - what is checked is that nothing else is ever raised
        return
    assert isinstance(found, dict)
    assert all(abs(value) < limits.SAMPLE_VALUE for values in found.values() for value in values)


HOSTILE = {
    "blanks": " " * 99 + "\n",
    "digits": "9" * 4000 + "\n",
    "numbers": "1 " * 4000 + "\n",
    "snapshots": "time: 1\na 1\n",
    "cpus": "CPU0 " * 3000 + "\n" + "LOC: " + "1 " * 3000 + "\n",
    "chains": "1.00% " + "a;" * 4000 + "\n",
    "intervals": "1.000000000,1,,a,1,100.00,,\n",
    "times": "Time: 1.0\n",
    "new events": "# Samples: 1 of event 'x'\n",
    "headers": "# Samples: 1 of event " + " " * 9000 + "y y\n",
}


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_file_full_of_what_is_hard_to_read_is_read_or_refused(
    tmp_path: Path, program: str
) -> None:
    size = limits.RESULT_FILE_BYTES // (1 if ALL else 4)
    for kind, pattern in HOSTILE.items():
        (tmp_path / kind).write_text((pattern * (size // len(pattern) + 1))[:size])
        try:
            assert parse_file(program, tmp_path / kind, PROGRAMS)["program"] == program, kind
        except ParseError as error:
            assert len(str(error)) < 1000, kind  # noqa: PT017 - either outcome is right
