"""The generated runner: its text, and what it does when a plain shell runs it here."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from swingbot_jobs.contract.deadline import UNSAID_SECONDS, run_limit, run_seconds
from swingbot_jobs.contract.fact_sheet import facts_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import NominalTestbox, expand
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.reading.perf_stat import read_perf_stat
from swingbot_jobs.reading.result import Results
from swingbot_worker import runner
from swingbot_worker.runner import memory_script
from swingbot_worker.runner.prologue import PROLOGUE
from tests.programs import PROGRAMS

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "testbox" / "run.sh"


def a_job(name: str = "a-job", program: str = "prints", runs: int = 1, **params: str) -> UnitJob:
    return UnitJob(name=name, program=program, params=params, runs=runs)


def test_the_script_is_the_golden_one() -> None:
    made = runner.script(
        [
            a_job(runs=2, test="TCP_STREAM", runtime="3", odd="it's $HOME"),
            a_job("other", "hackbench"),
        ],
        alone=True,
    )
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text()


@pytest.mark.parametrize("alone", [True, False])
def test_the_script_has_nothing_that_shellcheck_knows_to_be_wrong(
    tmp_path: Path, alone: bool
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(runner.script([a_job(a="b c")], alone=alone))
    checked = subprocess.run(
        [str(Path(sys.executable).with_name("shellcheck")), "-s", "dash", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "")


def test_only_a_guest_of_its_own_is_swept() -> None:
    assert "kill -KILL" not in runner.script([a_job()], alone=False)
    assert "kill -KILL -1" in runner.script([a_job()], alone=True)


def run_here(
    tmp_path: Path, unit_jobs: list[UnitJob], programs: dict[str, str], path: str = ""
) -> Results:
    """Run the script on this machine, as a command driver would, and read what it sent; `path`
    is searched for programs first."""
    for name, text in programs.items():
        run = tmp_path / "programs" / name / "run"
        run.parent.mkdir(parents=True)
        run.write_text("#!/bin/sh\n" + text)
        run.chmod(0o755)
    script, stream = tmp_path / "run.sh", tmp_path / "results.tar"
    script.write_text(runner.script(unit_jobs, alone=False))
    env = os.environ | {
        "SWINGBOT_PROGRAMS": str(tmp_path / "programs"),
        "SWINGBOT_WORK": str(tmp_path / "work"),
        "PATH": f"{path}:{os.environ['PATH']}",
    }
    subprocess.run(
        ["sh", "-c", f'exec sh "{script}" 3>"{stream}"'], env=env, check=True, timeout=60
    )
    return read_results(stream)


def test_each_run_comes_back_with_its_files(tmp_path: Path) -> None:
    results = run_here(
        tmp_path,
        [a_job(runs=2, word="it's $HOME; no")],
        {"prints": 'echo "<$word>"; echo oops >&2; exit 3'},
    )
    assert sorted(results.runs) == [("a-job", 0), ("a-job", 1)]
    for files in results.runs.values():
        assert files["stdout"] == "<it's $HOME; no>\n"
        assert files["stderr"] == "oops\n"
        assert files["rc"] == "3\n"
        assert float(files["seconds"]) >= 0


def test_snapshots_come_without_the_padding_of_their_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = "".join(f"{1:10} " for _ in range(256))
    table = f"{'':12}{'CPU0':<11}\n" + f"  1: {counts} PCI-MSI 1-edge nic\n" * 640
    (tmp_path / "interrupts").write_text(table)
    script = PROLOGUE.replace("/proc/interrupts", str(tmp_path / "interrupts"))
    monkeypatch.setattr(runner, "PROLOGUE", script)
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"})
    sent = results.runs["a-job", 0]["interrupts"]
    lines = [line.split() for line in sent.splitlines() if not line.startswith("time:")]
    assert lines == [line.split() for line in table.splitlines()] * 2
    assert len(sent) < len(table) < 2_000_000


def test_facts_come_first_and_the_end_marker_last(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"})
    assert {
        "kernel_release",
        "nr_cpu",
        "memory_kb",
        "cmdline",
        "perf_events",
        "ready_seconds",
        "ended",
    } <= set(facts_of(results.facts))
    assert not results.notes
    stream = (tmp_path / "results.tar").read_bytes()
    assert (
        stream.index(b"facts/sheet\0")
        < stream.index(b"a-job/0/stdout\0")
        < stream.index(f"{runner.END}\0".encode())
    )


def test_a_program_that_is_not_there_is_a_failed_run_and_the_next_one_runs(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job("first", "absent"), a_job("second")], {"prints": "echo 1"})
    assert results.runs["first", 0]["rc"] == "127\n"
    assert results.runs["second", 0]["rc"] == "0\n"


def test_a_run_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1; kill -KILL $$"})
    assert results.runs["a-job", 0]["rc"] == "137\n"


def test_a_run_over_its_limit_is_ended_and_keeps_what_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run_limit", lambda job, monitor=None: 1)
    results = run_here(tmp_path, [a_job(runs=2)], {"prints": "echo 1; exec sleep 4"})
    assert [results.runs["a-job", number]["rc"] for number in (0, 1)] == ["124\n", "124\n"]
    assert results.runs["a-job", 1]["stdout"] == "1\n"


def test_a_run_that_never_started_is_not_over_its_limit(tmp_path: Path) -> None:
    """perf refuses an event, or the shell is killed: nobody writes a status."""
    (tmp_path / "bin").mkdir()
    timeout = tmp_path / "bin" / "timeout"
    timeout.write_text("#!/bin/sh\necho 'event syntax error' >&2; exit 1\n")
    timeout.chmod(0o755)
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"}, str(timeout.parent))
    assert results.runs["a-job", 0]["rc"] == "137\n"
    assert "event syntax error" in results.runs["a-job", 0]["stderr"]


def test_counting_never_touches_the_program_s_own_output(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"})
    assert results.runs["a-job", 0]["stdout"] == "1\n"
    assert results.runs["a-job", 0]["stderr"] == ""


LIGHT = {"proc-vmstat", "meminfo", "buddyinfo", "softirqs", "interrupts"}


def test_light_monitors_read_before_and_after_each_run_and_never_within(tmp_path: Path) -> None:
    files = run_here(tmp_path, [a_job()], {"prints": "echo 1; sleep 0.3"}).runs["a-job", 0]
    assert set(files) >= LIGHT
    stamps = [
        [float(line.split()[1]) for line in files[name].splitlines() if line.startswith("time: ")]
        for name in sorted(LIGHT)
    ]
    assert {len(one) for one in stamps} == {2}
    assert all(after - before >= 0.3 for before, after in stamps)
    assert float(files["seconds"]) < stamps[0][1] - stamps[0][0] + 0.02
    assert files["proc-vmstat"].count("pgfault ") == 2


def test_a_run_of_a_monitor_goes_through_it_and_not_through_the_counting(tmp_path: Path) -> None:
    job = UnitJob(
        name="a-job", program="prints", params={"word": "x"}, runs=1, monitors=("watches",)
    )
    results = run_here(
        tmp_path,
        [job],
        {
            "prints": 'echo "$word"',
            "watches": (
                'echo "$word $#" >"$sb_out"; "$@"; status=$?; echo over >>"$sb_out"; exit $status'
            ),
        },
    )
    plain, watched = results.runs["a-job", 0], results.runs["a-job", 1]
    assert (plain["stdout"], watched["stdout"], watched["rc"]) == ("x\n", "x\n", "0\n")
    assert watched["watches"].split() == ["x", "5", "over"]
    assert "watches" not in plain
    assert "perf-stat" not in watched


def test_only_the_run_that_counts_calls_knows_which_functions(tmp_path: Path) -> None:
    job = UnitJob(
        name="a-job",
        program="prints",
        params={},
        runs=1,
        monitors=("watches", "function-profile"),
        functions=("alloc", "free"),
    )
    script = 'echo "${sb_functions-none}" >"$sb_out"; "$@"'
    results = run_here(
        tmp_path, [job], {"prints": "echo 1", "watches": script, "function-profile": script}
    )
    assert (results.runs["a-job", 1]["watches"], results.runs["a-job", 2]["function-profile"]) == (
        "none\n",
        "alloc free\n",
    )
    assert results.runs["a-job", 0]["stdout"] == "1\n"


def test_a_monitor_is_found_beside_a_program_with_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, mounts = tmp_path / "groups", tmp_path / "mounts"
    groups.mkdir()
    mounts.write_text(f"cgroup2 {groups} cgroup2 rw 0 0\n")
    text = memory_script.FUNCTIONS.replace("/proc/mounts", str(mounts))
    monkeypatch.setattr(memory_script, "FUNCTIONS", text)
    job = UnitJob(
        name="a-job", program="prints", params={"cpus": "0"}, runs=1, monitors=("watches",)
    )
    programs = {"prints": "echo 1", "watches": 'echo seen >"$sb_out"; "$@"'}
    results = run_here(tmp_path, [job], programs)
    assert results.runs["a-job", 1]["watches"] == "seen\n"
    assert results.runs["a-job", 1]["stdout"] == "1\n"
    assert (groups / "swingbot-run" / "cpuset.cpus").read_text() == "0\n"
    assert (groups / "swingbot-run" / "cgroup.procs").read_text()


@pytest.mark.parametrize("name", ["a b", "a;b", "$(a)", "", "-a", "a" * 200])
def test_a_unit_job_takes_no_function_that_is_no_symbol(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid kernel function name"):
        UnitJob(name="a-job", program="prints", params={}, runs=1, functions=(name,))


# A perf whose PMU has four counters and no cache events: perf stat -x, -o FILE -e EVENTS COMMAND...
# The path of Python may be too long for a #! line, or have a space.
SMALL_PMU = f"""#!/bin/sh
'''exec' "{sys.executable}" "$0" "$@"
' '''
import os, re, sys
out, events, command = sys.argv[4], sys.argv[6], sys.argv[7:]
with open(out, "w") as file:
    for group, event in re.findall(r"{{([^}}]*)}}|([^,{{}}]+)", events):
        for name in (group or event).split(","):
            fits = len(group.split(",")) <= 4
            print("<not supported>" if name.startswith("cache") else 7 if fits else "<not counted>", "", name, 1000, "100.00", "", "", sep=",", file=file)
os.execvp(command[0], command)
"""


def test_events_are_asked_for_in_groups_that_the_pmu_can_count_at_once(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "perf"
    fake.parent.mkdir()
    fake.write_text(SMALL_PMU)
    fake.chmod(0o755)
    facts = run_here(tmp_path, [a_job()], {"prints": "echo 1"}, path=str(fake.parent)).facts
    software = "task-clock,context-switches,cpu-migrations,page-faults,duration_time"
    assert (
        facts["perf_events"].strip() == f"{software},{{cycles,instructions,branches,branch-misses}}"
    )
    fake.write_text(SMALL_PMU.replace("<= 4", "<= 3"))
    (tmp_path / "programs").rename(tmp_path / "before")
    facts = run_here(tmp_path, [a_job()], {"prints": "echo 1"}, path=str(fake.parent)).facts
    assert (
        facts["perf_events"].strip()
        == f"{software},{{cycles,instructions}},{{branches,branch-misses}}"
    )


HYBRID_PMU = SMALL_PMU.replace(
    "            fits",
    """            if name in ("cycles", "instructions"):
                print(9, "", f"cpu_core/{name}/", 600, "60.00", "", "", sep=",", file=file)
                print(5, "", f"cpu_atom/{name}/", 400, "40.00", "", "", sep=",", file=file)
                continue
            if name.startswith("branch"):
                print(9, "", f"cpu_core/{name}/", 1000, "100.00", "", "", sep=",", file=file)
                print("<not counted>", "", f"cpu_atom/{name}/", 0, "0.00", "", "", sep=",", file=file)
                continue
            fits""",
)


def test_an_event_of_a_hybrid_cpu_is_asked_for_on_all_its_cores(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "perf"
    fake.parent.mkdir()
    fake.write_text(HYBRID_PMU)
    fake.chmod(0o755)
    done = run_here(tmp_path, [a_job()], {"prints": "echo 1"}, path=str(fake.parent))
    software = "task-clock,context-switches,cpu-migrations,page-faults,duration_time"
    assert (
        done.facts["perf_events"].strip()
        == f"{software},{{cycles,instructions,branches,branch-misses}}"
    )
    counts = read_perf_stat(done.runs["a-job", 0]["perf-stat"])
    assert (counts["cycles"].value, counts["branches"].value) == (round(9 * 0.6 + 5 * 0.4), 9)


def test_a_job_counts_the_events_it_names_and_the_next_one_the_usual_ones(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "perf"
    fake.parent.mkdir()
    fake.write_text(SMALL_PMU)
    fake.chmod(0o755)
    chosen = UnitJob(
        name="chosen",
        program="prints",
        params={},
        runs=1,
        events=("task-clock", "stalled-cycles-frontend", "cache-misses"),
    )
    path = str(fake.parent)
    runs = run_here(tmp_path, [chosen, a_job("usual")], {"prints": "echo 1"}, path=path).runs
    counted = {
        name: [line.split(",")[2] for line in runs[name, 0]["perf-stat"].splitlines()]
        for name in ("chosen", "usual")
    }
    assert counted["chosen"] == ["task-clock", "stalled-cycles-frontend"]
    assert {"cycles", "page-faults"} <= set(counted["usual"])


@pytest.mark.parametrize("name", ["a b", "a,b", "{a}", "$(a)", "", "-a", "cpu/x/"])
def test_a_unit_job_takes_no_event_that_is_more_than_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an event"):
        UnitJob(name="a-job", program="prints", params={}, runs=1, events=(name,))


def test_the_seconds_in_a_job_make_its_limit() -> None:
    assert run_seconds(a_job(runtime="300")) > 300
    assert run_limit(a_job(runtime="300")) > 2 * 300
    assert run_limit(a_job(runtime="soon")) == run_limit(a_job())


@pytest.mark.parametrize(
    ("program", "params", "measured"),
    [
        ("hackbench", {"iterations": "2", "nr_threads": "1", "fds": "20", "loops": "100"}, 1.55),
        ("page-fault", {"nr_task": "1", "cycles": "2", "size": "134217728"}, 3.07),
    ],
)
def test_fixed_work_is_estimated_from_the_work(
    program: str, params: dict[str, str], measured: float
) -> None:
    def seconds(**changed: str) -> float:
        given = "".join(f"{name}: {value}\n" for name, value in {**params, **changed}.items())
        text = f"{program}:\n{textwrap.indent(given, '  ')}"
        [job] = expand(text, "j.yaml", NominalTestbox(virtual=True), PROGRAMS)
        return run_seconds(job)

    assert measured < seconds() < measured + 15
    assert seconds(**{list(params)[1]: "90"}) > 5 * seconds()
    assert run_seconds(a_job(program=program)) == UNSAID_SECONDS
