from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from swingbot.app.cli import main
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import NominalTestbox, expand, path_params
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.job_files import read_job, read_suite
from swingbot_jobs.testbox.file import load_all
from tests.programs import PROGRAMS

JOBS = Path(__file__).resolve().parents[2] / "jobs"


@dataclass(frozen=True)
class Testbox:
    name: str = "box"
    nr_cpu: int = 8
    nr_node: int | None = None
    memory_mb: int = 1000
    cluster: str = "cs-localhost"
    virtual: bool = True


SIX_HUNDRED, SIX_HUNDRED_MORE = [*range(1001, 1601)], [*range(2001, 2601)]
ONE, TWO, WIRED = Testbox("one", 1), Testbox("two", 2), Testbox("wired", 2, cluster="cs-vm")


def jobs(
    text: str, testbox: Testbox | None = None, overrides: Mapping[str, str] | None = None
) -> list[UnitJob]:
    return expand(text, "jobs/j.yaml", testbox or Testbox(), PROGRAMS, overrides)


def names(
    text: str, testbox: Testbox | None = None, overrides: Mapping[str, str] | None = None
) -> list[str]:
    return [job.name for job in jobs(text, testbox, overrides)]


def refused(
    text: str, testbox: Testbox | None = None, overrides: Mapping[str, str] | None = None
) -> str:
    with pytest.raises(JobError) as error:
        jobs(text, testbox, overrides)
    return str(error.value)


def test_events_are_no_axis_and_no_part_of_a_name() -> None:
    (job,) = jobs("hackbench:\nevents: [cycles, stalled-cycles-frontend, cycles]\n")
    assert (job.name, job.events) == ("j-defaults", ("cycles", "stalled-cycles-frontend"))
    assert codec.typed(UnitJob, codec.plain(job)) == job
    (overridden,) = jobs("hackbench:\n", overrides={"events": "branches"})
    assert overridden.events == ("branches",)
    assert "jobs/j.yaml" in refused("hackbench:\nevents: [cycles, 'a b']\n")


def test_lists_are_axes_and_earlier_keys_vary_slowest() -> None:
    assert names("hackbench:\n  mode: [process, threads]\n  ipc: [pipe, socket]\n") == [
        "j-pipe-process",
        "j-socket-process",
        "j-pipe-threads",
        "j-socket-threads",
    ]


def test_an_option_is_an_axis_wherever_it_is_set() -> None:
    assert names("nr_threads: [1, 2]\nhackbench:\n  ipc: [pipe, socket]\n") == [
        "j-pipe-1",
        "j-socket-1",
        "j-pipe-2",
        "j-socket-2",
    ]


def test_a_name_holds_the_values_as_written_sorted_by_option() -> None:
    text = (
        "cluster: cs-localhost\nnetperf:\n  test: TCP_RR\n  runtime: 300s\n  nr_threads: "
        "50%\n  ip: ipv4\n"
    )
    assert names(text) == ["j-cs-localhost-ipv4-50%-300s-TCP_RR"]


def test_a_job_that_sets_nothing_is_called_defaults() -> None:
    assert names("hackbench:\n") == ["j-defaults"]


def test_values_in_a_name_are_cut_and_cleaned() -> None:
    assert path_params({"b": "x" * 40, "a": "u/v w"}) == "u_v_w-" + "x" * 31


def test_an_empty_value_leaves_the_default_and_no_trace_in_the_name() -> None:
    [job] = jobs("hackbench:\n  ipc:\n  mode: threads\n")
    assert (job.name, job.params["ipc"]) == ("j-threads", "socket")


@pytest.mark.parametrize(
    ("share", "cpus", "threads"),
    [
        ("50%", 7, "3"),
        ("50%", 2, "1"),
        ("1600%", 2, "32"),
        ("12.5%", 8, "1"),
        ("100%", 1, "1"),
        ("3", 2, "3"),
        ("1t", 2, "1"),
    ],
)
def test_a_percentage_is_of_the_boxs_cpus_rounded_down(share: str, cpus: int, threads: str) -> None:
    [job] = jobs(f"hackbench:\n  nr_threads: {share}\n", Testbox(nr_cpu=cpus))
    assert job.params["nr_threads"] == threads


def test_a_share_that_leaves_no_thread_is_refused_and_names_the_testbox() -> None:
    message = refused("hackbench:\n  nr_threads:\n    - 100%\n    - 25%\n", TWO)
    assert message.startswith("jobs/j.yaml:4: nr_threads '25%': ")
    assert "testbox two" in message
    assert "2 CPUs" in message


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("300", "300"), ("300s", "300"), ("5m", "300"), ("1.5h", "5400"), ("1d", "86400")],
)
def test_durations_become_seconds(written: str, seconds: str) -> None:
    [job] = jobs(f"netperf:\n  test: TCP_RR\n  runtime: {written}\n")
    assert job.params["runtime"] == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4096", "4096"),
        ("64K", "65536"),
        ("128M", "134217728"),
        ("1GiB", "1073741824"),
        ("10%", "209715200"),
    ],
)
def test_sizes_become_bytes(written: str, size: str) -> None:
    [job] = jobs(f"page-fault:\n  size: {written}\n", testbox=Testbox(memory_mb=2000))
    assert job.params["size"] == size


def test_iterations_lose_their_x() -> None:
    assert jobs("hackbench:\n  iterations: 100x\n")[0].params["iterations"] == "100"


def test_netperfs_send_size_goes_to_netperf_as_it_is() -> None:
    assert jobs("netperf:\n  test: UDP_STREAM\n  send_size: 10K\n")[0].params["send_size"] == "10K"


def test_defaults_are_passed_on_and_options_without_one_are_not() -> None:
    assert jobs("netperf:\n  test: TCP_RR\n")[0].params == {
        "test": "TCP_RR",
        "nr_threads": "1",
        "runtime": "300",
        "ip": "ipv4",
    }


def test_hackbench_runs_for_a_time_where_the_job_says_so_and_counts_iterations_otherwise() -> None:
    assert jobs("hackbench:\n")[0].params["iterations"] == "8"
    [job] = jobs("runtime: 20s\nhackbench:\n")
    assert ("iterations" in job.params, job.params["runtime"]) == (False, "20")
    assert jobs("runtime: 20s\nhackbench:\n  iterations: 3\n")[0].params["iterations"] == "3"


def test_a_default_can_be_worked_out_from_testbox_and_job() -> None:
    assert jobs("hackbench:\n  nr_threads: 4\n", TWO)[0].params["loops"] == "15000"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("{{ nr_cpu / 2 }}", "4"),
        ("{{ (nr_cpu + 1) * 2 - 3 }}", "15"),
        ("{{ 7 / 2 }}", "3"),
        ("{{ fds }}", "20"),
        ("{{ memory_mb }}", "1000"),
    ],
)
def test_arithmetic_is_whole_numbers_of_testbox_and_job(written: str, value: str) -> None:
    assert jobs(f"hackbench:\n  loops: '{written}'\n")[0].params["loops"] == value


def test_arithmetic_may_stand_within_a_value_and_its_result_is_in_the_name() -> None:
    [job] = jobs("page-fault:\n  size: '{{ nr_cpu * 16 }}M'\n  cycles: '{{ 7 % 4 - -1 }}'\n")
    assert (job.name, job.params["size"], job.params["cycles"]) == ("j-4-128M", str(128 << 20), "4")


def test_a_list_item_that_is_empty_is_the_default_and_not_in_the_name() -> None:
    assert [
        (job.name, job.params["ipc"]) for job in jobs("hackbench:\n  ipc:\n    - pipe\n    -\n")
    ] == [("j-pipe", "pipe"), ("j-defaults", "socket")]


def test_what_is_demanded_of_the_testbox_is_an_axis_with_lkps_name_where_lkp_has_one() -> None:
    text = (
        "cluster: cs-localhost\ncpufreq_governor: performance\ndemand:\n  thp_enabled: "
        "[always, never]\nnetperf:\n  test: TCP_RR\n  ip: ipv4\n"
    )
    assert [(job.name, dict(job.demand)) for job in jobs(text)] == [
        (
            "j-cs-localhost-performance-ipv4-TCP_RR-always",
            {"governor": "performance", "thp_enabled": "always"},
        ),
        (
            "j-cs-localhost-performance-ipv4-TCP_RR-never",
            {"governor": "performance", "thp_enabled": "never"},
        ),
    ]


def test_lkps_way_to_demand_is_the_same_demand() -> None:
    [lkp] = jobs("hackbench:\ntransparent_hugepage:\n  thp_enabled: never\n")
    assert [lkp] == jobs("hackbench:\ndemand:\n  thp_enabled: never\n")


def test_a_demand_may_be_set_from_outside() -> None:
    [job] = jobs(
        "hackbench:\n",
        None,
        {"demand.governor": "performance", "warmup": "2", "compare_fact": "[governor, turbo]"},
    )
    assert (job.name, job.demand, job.warmup, job.compare_fact) == (
        "j-performance",
        {"governor": "performance"},
        2,
        ("governor", "turbo"),
    )


def test_a_word_that_yaml_takes_for_a_truth_can_be_demanded() -> None:
    assert jobs("hackbench:\ndemand:\n  turbo: off\n")[0].demand == {"turbo": "off"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "demand:\n  governer: x",
            "jobs/j.yaml:3: there is no fact 'governer'; did you mean 'governor'?",
        ),
        ("demand: performance", "jobs/j.yaml:2: demand must be a table of facts"),
        ("demand:\n  turbo: maybe", "jobs/j.yaml:3: turbo is "),
        ("demand:\n  governor: {a: b}", "jobs/j.yaml:3: cpufreq_governor must be a value"),
        (
            "demand:\n  governor: powersave\ncpufreq_governor: performance",
            "jobs/j.yaml:4: cpufreq_governor is set twice, first in line 3",
        ),
        (
            "transparent_hugepage:\n  thp: x",
            "jobs/j.yaml:3: there is no fact 'transparent_hugepage.thp'",
        ),
        ("compare_fact: thp", "jobs/j.yaml:2: there is no fact 'thp'"),
        ("warmup: -1", "jobs/j.yaml:2: warmup must be a number from 0 to 1000"),
    ],
)
def test_a_demand_that_can_not_be_is_refused(lines: str, message: str) -> None:
    assert message in refused(f"hackbench:\n{lines}\n")


def test_a_testbox_that_has_less_than_the_job_needs_is_refused() -> None:
    assert "jobs/j.yaml:2: need_cpu '16': testbox box has 8 CPUs only" in refused(
        "hackbench:\nneed_cpu: 16\n"
    )
    assert "jobs/j.yaml:2: need_memory '2G': testbox box has 1000 MiB of memory only" in refused(
        "hackbench:\nneed_memory: 2G\n"
    )
    assert names("hackbench:\nneed_memory: 500M\nneed_cpu: 8\n") == ["j-defaults"]


def test_a_hundred_thousand_unit_jobs_are_counted_and_not_made() -> None:
    hundred = list(range(1, 101))
    text = (
        f"hackbench:\n  loops: {hundred}\n  fds: {hundred}\n  datasize: [1, 2, 3, 4, 5]\n---\n"
        f"hackbench.datasize: [6, 7, 8, 9, 10]\n"
    )
    assert "jobs/j.yaml:1: the job expands to 100000 unit jobs, must be 1 to 1000" in refused(text)


def test_the_count_of_an_absurd_product_is_no_work() -> None:
    axis = list(range(1, 1000))
    text = (
        f"hackbench:\n  loops: {axis}\n  fds: {axis}\n  datasize: {axis}\n  iterations: "
        f"{axis}\n  nr_threads: {axis}\n"
    )
    assert f"expands to {999**5} unit jobs" in refused(text)


@pytest.mark.parametrize(
    "expression",
    [
        "{{ 1 / 0 }}",
        "{{ 1 % 0 }}",
        "{{ nr_cpu > 2 }}",
        "{{ nr_cpu.bit_length() }}",
        "{{ [1][0] }}",
        "{{ 10 * 1.5 }}",
        "{{ " + "9" * 40 + " - " + "9" * 40 + " }}",
        "{{ nr_cpus }}",
        "{{ 2 ** 999 }}",
        "{{ __import__('os') }}",
        "{{ loops }}",
        "{{ 1 - 1 }}",
        "{{ }}",
        "{{ mode }}",
        "{{ 1 + True }}",
        "{{ 99999999999 * 99999999999 }}",
    ],
)
def test_other_arithmetic_is_refused(expression: str) -> None:
    assert refused(f'hackbench:\n  loops: "{expression}"\n').startswith("jobs/j.yaml:2: loops ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hackbench:\n  ipc: [pipe, sockets]\n",
            "jobs/j.yaml:2: ipc 'sockets': must be one of socket, pipe; did you mean 'socket'?",
        ),
        (
            "hackbench:\n  loops: many\n",
            "jobs/j.yaml:2: loops 'many': must be a count, such as 4 or 50%",
        ),
        (
            "hackbench:\n  loops: 0\n",
            "jobs/j.yaml:2: loops '0': must be a whole number of at least 1",
        ),
        ("hackbench:\n  loops: 1.5\n", "jobs/j.yaml:2: loops '1.5': must be a whole number"),
        (
            "netperf:\n  test: TCP_RR\n  runtime: 3x\n",
            "jobs/j.yaml:3: runtime '3x': must be a duration",
        ),
        (
            "netperf:\n  test: TCP_RR\n  send_size: 10 K\n",
            "jobs/j.yaml:3: send_size '10 K': must look like",
        ),
        ("netperf:\n", "jobs/j.yaml:1: netperf needs test: "),
        ("hackbench:\nruns: 0\n", "jobs/j.yaml:2: runs must be a number from 1 to 1000"),
        ("hackbench:\nruns: [1, 2]\n", "jobs/j.yaml:2: runs must be a number"),
        ("hackbench:\n  loops: []\n", "jobs/j.yaml:1: the job expands to 0 unit jobs"),
        ("hackbench:\n  ipc: [pipe, '']\n", "jobs/j.yaml:2: ipc '': must be one of"),
        (
            f"hackbench:\n  loops: [{', '.join(map(str, range(1, 1100)))}]\n",
            "the job expands to 1099 unit jobs",
        ),
        ("page-fault:\n  size: big\n", "jobs/j.yaml:2: size 'big': must be a size, such as"),
        (
            f"hackbench:\n  loops: {SIX_HUNDRED}\n---\nhackbench:\n  fds: {SIX_HUNDRED_MORE}\n",
            "jobs/j.yaml:1: the job expands to 1200 unit jobs, must be 1 to 1000",
        ),
        (
            "hackbench:\nruns: 1\n---\nruns: 2\n",
            "this job and the one of line 1 are both called j-defaults but differ",
        ),
    ],
)
def test_a_value_that_can_not_be_is_refused_with_file_and_line(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_formula_has_a_limit() -> None:
    assert "longer than 200 characters" in refused(
        f"hackbench:\n  loops: '{{{{ {'1+' * 100}1 }}}}'\n"
    )


def test_a_value_that_is_worked_out_from_itself_is_refused() -> None:
    assert "depends on itself (loops from fds from loops)" in refused(
        "hackbench:\n  loops: '{{ fds }}'\n  fds: '{{ loops }}'\n"
    )


def test_equal_unit_jobs_of_two_documents_are_one() -> None:
    assert names("hackbench:\n  ipc: pipe\n---\nhackbench:\n  ipc: [pipe, socket]\n") == [
        "j-pipe",
        "j-socket",
    ]


def test_an_override_replaces_a_value_in_every_document() -> None:
    text = "netperf:\n  test: [TCP_RR, UDP_RR]\n---\nruntime: 3s\n"
    assert names(text, None, {"netperf.test": "TCP_CRR", "runtime": "1s"}) == ["j-1s-TCP_CRR"]
    assert jobs(text, None, {"runs": "4"})[0].runs == 4


def test_an_override_can_be_an_axis() -> None:
    assert names("hackbench:\n", None, {"ipc": "[pipe, socket]"}) == ["j-pipe", "j-socket"]


def test_an_empty_override_brings_the_default_back() -> None:
    assert names("hackbench:\n  ipc: pipe\n", None, {"ipc": ""}) == ["j-defaults"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "nr_thread",
            "1",
            (
                "jobs/j.yaml:1: nr_thread=1: hackbench has no parameter 'nr_thread'; did you "
                "mean 'nr_threads'?"
            ),
        ),
        (
            "netperf.test",
            "TCP_RR",
            "jobs/j.yaml:1: netperf.test=TCP_RR: this job runs hackbench, not 'netperf'",
        ),
        ("ipc", "sockets", "jobs/j.yaml:1: ipc 'sockets': must be one of"),
        (
            "cluster",
            "cs-2",
            (
                "cluster 'cs-2': testbox box is one testbox, where only cs-localhost is; choose "
                "a testbox of the group cs-2"
            ),
        ),
        ("runs", "x", "runs must be a number"),
    ],
)
def test_an_override_that_can_not_be_is_refused(key: str, value: str, message: str) -> None:
    assert message in refused("hackbench:\n", None, {key: value})


@pytest.mark.parametrize(("suite", "testbox"), [("mm-quick", "vm-mm"), ("mm-full", "")])
def test_one_boot_has_all_jobs_of_a_suite(suite: str, testbox: str) -> None:
    chosen = load_all(JOBS.parent / "workers" / "testboxes")[testbox] if testbox else TWO
    names = [
        job.name
        for file in read_suite(suite, JOBS)
        for job in expand(read_job(JOBS / file, [JOBS]), file, chosen, PROGRAMS)
    ]
    assert len(set(names)) == len(names) > 5


def test_a_suite_that_does_not_exist_is_refused_with_those_that_do() -> None:
    words = ["tree", "add", "t", "/nowhere", "--branch", "b", "--base", "b", "--suite", "../x"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "suite '../x' does not exist; known are mm-full, mm-quick" in done.output


@pytest.mark.parametrize("path", sorted(JOBS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_job_file_says_what_it_is_for_and_expands_on_two_cpus_and_on_the_nominal_testbox(
    path: Path,
) -> None:
    assert path.read_text().startswith("# ")
    assert expand(read_job(path), f"jobs/{path.name}", NominalTestbox(), PROGRAMS)
    wired = "cluster: cs-vm" in path.read_text()
    assert expand(read_job(path), f"jobs/{path.name}", WIRED if wired else TWO, PROGRAMS)


def test_the_example_of_the_documentation_expands() -> None:
    text = (JOBS.parent / "docs" / "jobs.md").read_text().split("```yaml\n")[1].split("```")[0]
    assert [job.name for job in expand(text, "jobs/netperf.yaml", TWO, PROGRAMS)] == [
        "netperf-cs-localhost-1-300s-UDP_STREAM",
        "netperf-cs-localhost-1-300s-TCP_STREAM",
        "netperf-cs-localhost-50%-300s-UDP_STREAM",
        "netperf-cs-localhost-50%-300s-TCP_STREAM",
        "netperf-cs-localhost-1-300s-10K-UDP_STREAM",
        "netperf-cs-localhost-1-300s-10K-TCP_STREAM",
        "netperf-cs-localhost-50%-300s-10K-UDP_STREAM",
        "netperf-cs-localhost-50%-300s-10K-TCP_STREAM",
    ]


@pytest.mark.parametrize("path", sorted(JOBS.glob("vm-*.yaml")), ids=lambda path: path.stem)
def test_the_jobs_for_virtual_machines_expand_on_one_cpu_to_equal_work(path: Path) -> None:
    assert expand(read_job(path), path.name, ONE, PROGRAMS) == expand(
        read_job(path), path.name, TWO, PROGRAMS
    )


TESTS = ["page_fault1", "page_fault2", "page_fault3", "malloc1", "brk1", "context_switch1"]
NETPERF = [
    "UDP_STREAM",
    "TCP_STREAM",
    "TCP_RR",
    "TCP_CRR",
    "UDP_RR",
    "TCP_SENDFILE",
    "SCTP_STREAM",
    "SCTP_STREAM_MANY",
]
HACKBENCH = [(mode, ipc) for mode in ("process", "threads") for ipc in ("pipe", "socket")]


@pytest.mark.parametrize("prefix", ["", "vm-"])
def test_the_usual_benchmarks_are_shipped_for_machines_and_for_virtual_ones(prefix: str) -> None:
    files = [
        path
        for path in JOBS.glob("*.yaml")
        if path.name.startswith("vm-") == bool(prefix) and not path.name.startswith("wire-")
    ]
    shipped = [job for path in files for job in expand(read_job(path), path.name, TWO, PROGRAMS)]
    params = [job.params for job in shipped]
    for test in TESTS:
        assert {given["mode"] for given in params if given.get("test") == test} == {
            "process",
            "thread",
        }
        assert {given["nr_task"] for given in params if given.get("test") == test} == (
            {"1"} if prefix else {"1", "2"}
        )
    assert {
        given["test"]
        for job, given in zip(shipped, params, strict=True)
        if job.program == "netperf"
    } == set(NETPERF)
    assert {
        (given["mode"], given["ipc"])
        for job, given in zip(shipped, params, strict=True)
        if job.program == "hackbench"
    } == set(HACKBENCH)


@given(
    st.text(max_size=60),
    st.sampled_from(["loops", "ipc", "nr_threads", "iterations", "runs", "cluster"]),
)
def test_arbitrary_override_values_are_unit_jobs_or_a_job_error(value: str, key: str) -> None:
    assert (message := message_of(key, value)) is None or message.startswith("jobs/j.yaml:")


def message_of(key: str, value: str) -> str | None:
    try:
        jobs("hackbench:\n", TWO, {key: value})
    except JobError as error:
        return str(error)
    return None
