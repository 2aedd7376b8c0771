"""What programs print when they were cut, starved, ended or watched by another perf than ours:
read rightly or refused, never plausible and wrong. The inputs are in `raw_output/<program>/`.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from swingbot_jobs.contract.facts import demand
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading import snapshots
from swingbot_jobs.reading.parse import parse_file, parse_results, parse_run
from swingbot_jobs.reading.perf_stat import read_perf_stat
from swingbot_jobs.reading.result import ParseError
from tests.programs import PROGRAMS

INPUTS = Path(__file__).parent / "raw_output"
FAULTS = (
    "page-fault: mode=process tasks=1 cycles=2 bytes=8192 faults=4 seconds=2.0"
    " faults_per_second=2.00\n"
)
OF_THE_MAIL = {"task-clock": 9123.45, "cycles": 2345678901, "seconds-elapsed": 4.7712}

READ: dict[str, dict[str, float]] = {
    # Each PMU extrapolates the part that ran on its CPUs to the whole run.
    "perf-stat/hybrid.csv": {"cycles": 602612958},
    "perf-stat/hybrid.txt": {"cycles": 602612958, "seconds-elapsed": 1.000123456},
    "perf-stat/hybrid-half.csv": {"instructions:u": 1500000000},
    "perf-stat/hybrid-mostly-core.txt": {
        "cycles": 7434374950,
        "task-clock": 6084.32,
        "seconds-elapsed": 30.001234567,
    },
    "perf-stat/hybrid-short.csv": {"cycles:u": 5000000},
    "perf-stat/hybrid-system.csv": {"cycles": 837163746},
    "perf-stat/hybrid-shared.csv": {"cpu_core/cycles/": 1e9, "cpu_atom/cycles/": 5e8},
    # A raw code means something else to each PMU.
    "perf-stat/hybrid-raw.csv": {
        "cpu_core/event=0x3c,umask=0x0/u": 5,
        "cpu_atom/event=0x3c,umask=0x0/u": 6,
    },
    "perf-stat/hybrid-raw-code.csv": {"cpu_core/r3c/": 100, "cpu_atom/r3c/": 200},
    # With -a this is the half of the machine that has the event.
    "perf-stat/hybrid-not-supported.csv": {"cpu_core/cycles/": 100},
    "perf-stat/hybrid-shared-system.txt": {"cycles": 3e9, "seconds-elapsed": 1.000123456},
    "perf-stat/indian-groups.txt": {
        "cycles": 123456789,
        "page-faults": 123456,
        "cs": 12345,
        "seconds-elapsed": 5.482,
    },
    "perf-stat/old-clock.txt": {
        "task-clock": 0.36412,
        "context-switches": 1,
        "cycles": 1234567,
        "seconds-elapsed": 1.000123456,
    },
    "perf-stat/at.txt": {"cycles": 1234567},
    "perf-stat/at-runs.txt": {"cpu-clock": 0.34},
    "perf-stat/colon.txt": {"cycles": 1234567},
    "perf-stat/colons.txt": {"cycles": 1234567},
    "perf-stat/colon-modifier.txt": {"page-faults:u": 46, "sched:sched_switch": 7},
    "perf-stat/mail.txt": OF_THE_MAIL,
    "perf-stat/mail-event.txt": OF_THE_MAIL,
    "perf-stat/mail-wrapped.txt": OF_THE_MAIL,
    "perf-stat/mail-wrapped-metric.txt": {"cycles": 1234567, "seconds-elapsed": 1.000123456},
    "perf-stat/mail-csv.txt": {"task-clock": 3413.28, "context-switches": 8961},
    "perf-stat/multiplexed.csv": {"cycles": 1419380, "page-faults": 5000},
    "perf-stat/json-multiplexed.txt": {"cycles": 1419380, "fan1": 2400},
    "perf-stat/old-shares.txt": {
        "cycles": 829399813448,
        "instructions": 580664691740,
        "seconds-elapsed": 20.705679994,
    },
    "perf-stat/hwmon.csv": {"temp1": 45.5, "fan1": 2400, "cycles": 9876543210},
    "perf-stat/hwmon.txt": {
        "temp1": 45.5,
        "fan1": 2400,
        "fan2": 2390,
        "cycles": 9876543210,
        "seconds-elapsed": 1.000123456,
    },
    "perf-stat/runs-second-metric.txt": {
        "task-clock": 12345.67,
        "cycles": 31234567890,
        "instructions": 28866491123,
        "seconds-elapsed": 1.58038,
    },
    "perf-stat/topdown.txt": {
        "cpu_core/branch-misses/": 1234567,
        "seconds-elapsed": 0.001406318,
    },
    "perf-stat/uncore.txt": {
        "uncore_imc_0/event=0x4,umask=0x3/": 9876,
        "uncore_imc_1/event=0x4,umask=0x3/": 1234,
    },
    "will-it-scale/processes-only.csv": {
        "per_process_ops": 1217283,
        "workload": 6034567,
        "scalability": 0.972001,
        "1.processes": 1234567,
        "1.processes_idle": 97.92,
        "1.linear": 1234567,
        "4.processes": 4800000,
        "4.processes_idle": 91.66,
        "4.linear": 4938268,
    },
}

REFUSED = {
    "perf-stat/json-socket.txt": "by CPU or socket",
    "perf-stat/json-one-socket.txt": "by CPU or socket",
    "perf-stat/cpu.txt": "by CPU or socket",
    "perf-stat/json-cpu-indented.txt": "by CPU or socket",
    "perf-stat/cpu-indented.txt": "by CPU or socket",
    "perf-stat/core-indented.txt": "by CPU or socket",
    "perf-stat/threads.txt": "or by cgroup",
    "perf-stat/cgroup-table.txt": "is no row of perf stat",
    "perf-stat/colon-cgroup.txt": "no perf stat counters",
    "perf-stat/cgroup.txt": "no perf stat counters",
    "perf-stat/one-cgroup.txt": "no perf stat counters",
    "perf-stat/thread.txt": "no perf stat counters",
    "perf-stat/cut.csv": "'5000,,page-faults,1399030,100.' is no row",
    "perf-stat/two-tables.txt": "2 tables",
    "perf-stat/json-cut.txt": "it was cut",
    "netperf/zero.txt": "netperf moved nothing in 64 s: 1 of 1",
    "netperf/one-of-two-zero.txt": "netperf moved nothing in 64 s: 1 of 2",
    "netperf/cut-row.txt": "1 of 2 netperf instances",
    "netperf/cut-number.txt": "no netperf instance printed a result",
    "netperf/udp-no-receiver.txt": "0 of 1 netperf receivers",
    "netperf/udp-nothing-arrived.txt": "netperf moved nothing",
    "netperf/stream-and-requests.txt": "no known unit, or two",
    "netperf/one-of-two-short.txt": "ran for 1.02 of 10 s",
    "netperf/no-time.txt": "ran for 0 of 0 s",
    "netperf/not-a-number.txt": "no netperf instance printed a result",
    "hackbench/signal.txt": "ended by a signal or an error: signaling 80",
    "hackbench/cut-iteration.txt": "1 of 2 hackbench iterations",
    "hackbench/cut-number.txt": "ends within a line",
    "hackbench/no-thread.txt": "an error: pthread_create failed",
    "hackbench/sender.txt": "an error: SENDER: write",
    "hackbench/killed.txt": "an error: Killed",
    "lock-contention/cut-row.txt": "'3     11.95 ms      3.99 m' is no row",
    "will-it-scale/cut.csv": "row of 4 tasks is incomplete",
    "will-it-scale/cut-after-tasks.csv": "row of 4 tasks is incomplete",
    "will-it-scale/cut-linear.csv": "was cut",
    "will-it-scale/two-tables.csv": "two rows of one number of tasks",
    "will-it-scale/interrupted.csv": "was ended: Traceback",
    "will-it-scale/killed.txt": "was ended: Killed",
    "will-it-scale/zero-row.csv": "nothing of will-it-scale ran with 8 tasks",
    "will-it-scale/zero-mode.csv": "no thread of will-it-scale ran with 4 tasks",
}


@pytest.mark.parametrize("name", READ)
def test_an_input_gives_its_right_values(name: str) -> None:
    program = name.partition("/")[0]
    samples = parse_file(program, INPUTS / name, PROGRAMS)["samples"]
    assert samples == {
        f"{program}.{metric}": [pytest.approx(value, rel=1e-12)]
        for metric, value in READ[name].items()
    }


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_known_is_refused(name: str) -> None:
    with pytest.raises(ParseError, match=REFUSED[name]):
        parse_file(name.partition("/")[0], INPUTS / name, PROGRAMS)


def test_every_input_has_an_answer() -> None:
    found = {str(path.relative_to(INPUTS)) for path in INPUTS.rglob("*.*")}
    assert found == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("hybrid-mostly-core.txt", {"cycles": 99.73}),
        ("hybrid-shared.csv", {"cpu_core/cycles/": 83.0, "cpu_atom/cycles/": 83.0}),
        ("multiplexed.csv", {"cycles": 10.0}),
        ("json-multiplexed.txt", {"cycles": 25.0}),
        ("old-shares.txt", {"cycles": 83.33, "instructions": 66.7}),
        ("runs-second-metric.txt", {"instructions": 83.3}),
        ("mail-wrapped.txt", {"cycles": 24.97}),
        ("topdown.txt", {"cpu_core/branch-misses/": 98.3}),
        ("at.txt", {}),
    ],
)
def test_the_share_of_an_extrapolated_count_is_read(name: str, shares: dict[str, float]) -> None:
    counts = read_perf_stat((INPUTS / "perf-stat" / name).read_text())
    assert shares == {
        event: pytest.approx(count.running_pct)
        for event, count in counts.items()
        if count.running_pct < 100
    }


def test_parse_prints_what_qualifies_the_counts() -> None:
    document = parse_file("perf-stat", INPUTS / "perf-stat" / "runs-second-metric.txt", PROGRAMS)
    assert document["runs"] == 10
    assert document["running_pct"] == {"instructions": 83.3}
    errors = {"task-clock": 0.3, "cycles": 0.28, "instructions": 0.11, "seconds-elapsed": 0.3}
    assert document["error_pct"] == errors
    assert set(parse_file("perf-stat", INPUTS / "perf-stat" / "at.txt", PROGRAMS)) == {
        "program",
        "samples",
    }


@pytest.mark.parametrize(
    ("counters", "why"),
    [
        ("9,,cycles,10,100.00,,\n7,,page-faults,9,89.00,,\n", "counted_pct was 89.0; >= 90"),
        ("9,,cycles,10,100.00,,\n7,,page-faults,9,91.00,,\n", None),
        ("9,,cycles,10,100.00,,\n", None),
        ("", "counted_pct is unknown in this boot; >= 90"),
    ],
)
def test_a_demand_refuses_a_run_whose_counters_ran_too_little(
    counters: str, why: str | None
) -> None:
    name, wanted = demand("counted_pct", ">=90")
    job = UnitJob(name="j", program="page-fault", params={}, runs=1, demand={name: wanted})
    files = {"stdout": FAULTS, "rc": "0\n", "perf-stat": counters}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file, content in files.items():
            member = tarfile.TarInfo(f"j/0/{file}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
    (run,) = parse_results(archive, [job], PROGRAMS)
    assert run.status == ("invalid" if why else "ok")
    assert why is None or why in (run.reason or "")
    if not why and "91.00" in counters:
        assert run.samples["perf-stat.running_pct.page-faults"] == [91.0]


def test_the_error_of_repeated_runs_is_read_wherever_perf_prints_it() -> None:
    counts = read_perf_stat((INPUTS / "perf-stat" / "runs-second-metric.txt").read_text())
    assert {event: count.stderr_pct for event, count in counts.items()} == {
        "task-clock": 0.30,
        "cycles": 0.28,
        "instructions": 0.11,
        "seconds-elapsed": 0.30,
    }


SEPARATED = """3413.28,msec,task-clock,3413276777,100.00,1.628,CPUs utilized
0,,cpu-migrations,0.50%,3413276777,90.00,0.000,/sec
<not supported>,,cycles,0,100.00,,
12,,page-faults:u,341,100.00,,
"""


@pytest.mark.parametrize(
    "separator", [*"!\"#$&'()*+,/:;=>?@[]^`{|}~ \t\\", "::", "||", ", ", " | "]
)
def test_any_separator_that_is_no_part_of_a_number_is_read(separator: str) -> None:
    counts = read_perf_stat(SEPARATED.replace(",", separator))
    assert {event: (one.value, one.running_pct) for event, one in counts.items()} == {
        "task-clock": (3413.28, 100),
        "cpu-migrations": (0, 90),
        "page-faults:u": (12, 100),
    }


@pytest.mark.parametrize("separator", [*"%-.<_x", "sep"])
def test_a_separator_that_may_be_part_of_a_number_or_name_is_refused(separator: str) -> None:
    with pytest.raises(ParseError):
        read_perf_stat(SEPARATED.replace(",", separator))


def test_equal_counts_of_repeated_runs_have_an_error_of_0_which_perf_does_not_print() -> None:
    text = (
        " Performance counter stats for 'true' (3 runs):\n\n"
        "              0.42 msec cpu-clock    #  0.133 CPUs utilized  ( +-  6.69% )\n"
        "                49      page-faults  #  130.515 K/sec\n"
    )
    assert read_perf_stat(text)["page-faults"].stderr_pct == 0
    trimmed = text.replace("( +-  6.69% )", "")
    assert read_perf_stat(trimmed)["page-faults"].stderr_pct is None


def test_a_netperf_that_ended_early_is_no_run() -> None:
    text = (INPUTS / "netperf" / "zero.txt").read_text().replace("   0.00", "9410.11")
    assert parse_run("netperf", {"stdout": text}, {"runtime": "64"}, PROGRAMS)
    with pytest.raises(ParseError, match="netperf ran for 64 of 300 s"):
        parse_run("netperf", {"stdout": text}, {"runtime": "300"}, PROGRAMS)


def test_a_hackbench_that_only_its_errors_call_ended_is_no_run() -> None:
    text = (INPUTS / "hackbench" / "cut-iteration.txt").read_text().partition("Running")[2]
    whole = {"stdout": "Running" + text.partition("Running")[0]}
    assert parse_run("hackbench", whole, {}, PROGRAMS)
    for error in ("longjmp'ed out, reaping children\n", "SENDER: write (error: Broken pipe)\n"):
        with pytest.raises(ParseError, match="ended by a signal or an error"):
            parse_run("hackbench", whole | {"stderr": error}, {}, PROGRAMS)


def test_rows_without_their_heading_are_those_that_perf_aligned(tmp_path: Path) -> None:
    rows = "          9,123.45 msec task-clock\n     2,345,678,901      cycles\n"
    sentences = "5 runs\n  40 tasks\n  12 msec delay\n300 cycles less\n"
    found = monitored(tmp_path, "perf-stat", sentences + rows + sentences)
    assert found == {"task-clock": 9123.45, "cycles": 2345678901}
    with pytest.raises(ParseError, match="no perf stat counters"):
        read_perf_stat(sentences)


def test_what_the_kernel_only_adds_to_is_a_counter_whatever_it_is_called() -> None:
    counters = [
        *("nr_dirtied", "nr_written", "nr_vmscan_write", "nr_foll_pin_acquired"),
        *("nr_tlb_remote_flush", "nr_tlb_local_flush_all", "node0.nr_tlb_local_flush_one"),
        *("pgpromote_success", "numa_hit", "vma_lock_miss", "workingset_refault_anon"),
    ]
    gauges = ["nr_free_pages", "nr_hugetlb", "nr_dirty_threshold", "workingset_nodes"]
    assert not [name for name in counters if snapshots.is_vmstat_gauge(name)]
    assert all(snapshots.is_vmstat_gauge(name) for name in gauges)


def monitored(tmp_path: Path, program: str, text: str) -> dict[str, float]:
    (tmp_path / program).write_text(text)
    samples = parse_file(program, tmp_path / program, PROGRAMS)["samples"]
    assert isinstance(samples, dict)
    return {name.partition(".")[2]: values[0] for name, values in samples.items()}


def test_a_gauge_that_a_cut_snapshot_lacks_is_missing_and_a_cut_number_is_none(
    tmp_path: Path,
) -> None:
    text = "time: 1\nMemFree: 1000 kB\nCached: 500 kB\nBuffers: 7 kB\ntime: 2\nMemFree: 3000 kB\n"
    found = monitored(tmp_path, "meminfo", text + "Cached: 5")
    assert found == {"MemFree": 2000}


def test_counters_by_cpu_are_refused_if_the_cpus_changed(tmp_path: Path) -> None:
    both = "           CPU0       CPU1\n  TIMER:        {}         {}\n"
    first, last = "time: 1\n" + both.format(10, 90), "time: 2\n" + both.format(30, 95)
    assert monitored(tmp_path, "softirqs", first + last) == {"TIMER": 25}
    # The kernel counts in 32 bits.
    wrapped = both.format(5000, 5) + "  RCU: 1 1\n"
    found = monitored(tmp_path, "softirqs", first + "  RCU: 0 0\ntime: 2\n" + wrapped)
    assert found == {"RCU": 2}
    one = "time: 2\n           CPU0\n  TIMER:       130\n"
    for program in ("softirqs", "interrupts"):
        with pytest.raises(ParseError, match="the CPUs of the table changed"):
            monitored(tmp_path, program, first + one)


HEADING = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
ROW = " 2  0      0   1000     10     20    0    0     0     4   75   21  2  1 97  0  0\n"


def test_a_row_of_vmstat_that_was_cut_is_left_out(tmp_path: Path) -> None:
    cut = ROW.replace("1000", "9000")
    for last in (cut[:-4] + "\n", cut[:-1]):
        found = monitored(tmp_path, "vmstat", HEADING + ROW + ROW + last)
        assert (found["memory.free"], found["cpu.st"]) == (1000, 0)


def test_other_columns_of_vmstat_are_refused(tmp_path: Path) -> None:
    active = HEADING.replace("  buff  cache", " inact active")
    with pytest.raises(ParseError, match="other columns: r b swpd free inact active"):
        monitored(tmp_path, "vmstat", active + ROW + ROW)


def test_the_times_of_a_command_that_a_signal_ended_are_refused(tmp_path: Path) -> None:
    text = "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:03.50\n"
    assert monitored(tmp_path, "time", text) == {"elapsed_time": 3.5}
    with pytest.raises(ParseError, match="ended by signal 9"):
        monitored(tmp_path, "time", "Command terminated by signal 9\n" + text)


def test_a_symbol_that_was_cut_is_no_symbol(tmp_path: Path) -> None:
    text = "# nrcpus online : 2\n# Samples: 9 of event 'cycles'\n  9.00%  9.00%  [k]  [k] touch\n"
    cut = "  5.00%  5.00%  [k]  [k] native_queued_spin_lock_slow"
    assert monitored(tmp_path, "perf-profile", text + cut + "path\n")["lock_slowpath"] == 5
    found = monitored(tmp_path, "perf-profile", text + cut)
    assert [name for name in found if name.startswith("self")] == ["self.cycles.touch"]
    one = monitored(tmp_path, "perf-profile", text.replace("online : 2", "online : 1"))
    assert "lock_slowpath" not in one


@pytest.mark.parametrize(
    "row",
    [
        "{},604097080,,cpu_atom/cycles/,996000000,99.60,,\n",
        "     {}        604,097,080      cpu_atom/cycles/    #  1.2 GHz      (99.60%)\n",
        '{{"interval" : {}, "counter-value" : "604097080.0", "unit" : "", "event" :'
        ' "cpu_atom/cycles/", "event-runtime" : 996000000, "pcnt-running" : 99.60}}\n',
    ],
)
def test_intervals_of_one_task_on_a_hybrid_cpu_are_refused(tmp_path: Path, row: str) -> None:
    text = "".join(row.format(f"{second}.000123456") for second in (1, 2))
    with pytest.raises(ParseError, match=r"only those of all CPUs \(-a\) add up"):
        monitored(tmp_path, "perf-stat-interval", text)
    for read in ("perf stat -a -I 1000 -x , -e cycles\n" + text, text.replace("99.60", "100.00")):
        found = monitored(tmp_path, "perf-stat-interval", read)
        assert found["i.cycles"] == pytest.approx(604097080, rel=1e-3)


@pytest.mark.parametrize(
    "row", ["1.00{}45.50,'C,temp1,1000,100.00,,\n", "   1.00{}      45.50 'C   temp1\n"]
)
def test_intervals_have_units_of_any_pmu(tmp_path: Path, row: str) -> None:
    text = "".join(row.replace("1.00", f"{tenths / 10:.2f}") for tenths in (1, 2))
    text = text.format(*[",", ","] if ",'C," in row else ["", ""])
    # What a sensor shows is no rate.
    assert monitored(tmp_path, "perf-stat-interval", text) == {"i.temp1": 45.5}


def intervals(*rows: str) -> str:
    return "".join(row.format(f"{second}.000000000") for second in (1, 2, 3) for row in rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("     {},100,,cycles,user.slice,1000,100.00,,\n", "by cgroup"),
        ("     {}              1,000      cycles                    user.slice\n", "by cgroup"),
        ("     {}  1,000.50 msec cpu-clock     A   #  1.0 CPUs utilized\n", "by cgroup"),
        (
            '{{"interval" : {}, "counter-value" : "1.0", "unit" : "", "event" : "cycles",'
            ' "cgroup" : "A", "event-runtime" : 9}}\n',
            "by CPU or cgroup",
        ),
        (
            '{{"interval" : {}, "cpu" : "0", "counter-value" : "1.0", "unit" : "", "event" :'
            ' "cycles", "event-runtime" : 9}}\n',
            "by CPU or cgroup",
        ),
        ("     {},604,,armv8_cortex_a53/cycles/,1000,60.00,,\n", "add up"),
    ],
)
def test_intervals_of_parts_of_the_machine_are_refused(
    tmp_path: Path, row: str, message: str
) -> None:
    with pytest.raises(ParseError, match=message):
        monitored(tmp_path, "perf-stat-interval", intervals(row))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        # A raw code is each PMU's own, and a modifier is part of the name.
        (
            ["{},5,,cpu_core/r3c/,9,100.00,,\n", "{},7,,cpu_atom/r3c/,9,100.00,,\n"],
            {"cpu_core/r3c/": 5, "cpu_atom/r3c/": 7},
        ),
        (
            ["{},5,,cpu_core/cycles/u,9,100.00,,\n", "{},7,,cpu_core/cycles/k,9,100.00,,\n"],
            {"cycles:u": 5, "cycles:k": 7},
        ),
        (
            [
                "{},5,,uncore_imc_0/event=0x4,umask=0x3/,9,100.00,,\n",
                "{},7,,uncore_imc_0/event=0x4,umask=0xc/,9,100.00,,\n",
            ],
            {"event=0x4,umask=0x3": 5, "event=0x4,umask=0xc": 7},
        ),
        (
            [
                f'{{{{"interval" : {{}}, "socket" : "S{n}", "counter-value" : "{n}.0", "unit" : "",'
                ' "event" : "cycles"}}\n'
                for n in (1, 2)
            ],
            {"cycles": 3, "S1.cycles": 1, "S2.cycles": 2},
        ),
    ],
)
def test_intervals_add_up_only_what_is_the_same(
    tmp_path: Path, rows: list[str], found: dict[str, float]
) -> None:
    read = monitored(tmp_path, "perf-stat-interval", intervals(*rows))
    assert {name[2:]: value for name, value in read.items() if name[:2] == "i."} == found


def test_intervals_keep_the_running_share_and_no_sum_over_a_gap(tmp_path: Path) -> None:
    text = intervals("{},100,,cycles,9,100.00,,\n", "{},7,,faults,9,100.00,,\n")
    text = text.replace("2.000000000,100,,cycles,9,100.00", "2.000000000,50,,cycles,9,12.50")
    read = monitored(tmp_path, "perf-stat-interval", text)
    assert (read["running_pct.i.cycles"], read["i.cycles"]) == (12.5, 75)
    gap = text.replace("50,,cycles,9,12.50", "<not counted>,,cycles,0,0.00")
    assert not {"ps.cycles"} & monitored(tmp_path, "perf-stat-interval", gap).keys()
