from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.language.job import JobError, load_job, read_job
from tests.programs import PROGRAMS

JOBS = Path(__file__).resolve().parents[2] / "jobs"


def settings(text: str) -> list[dict[str, list[str | None]]]:
    """The settings of every document, as plain text."""
    return [
        {key: [item.text for item in value.items] for key, value in job.settings.items()}
        for job in load_job(text, "j.yaml", PROGRAMS)
    ]


def refused(text: str) -> str:
    with pytest.raises(JobError) as error:
        load_job(text, "jobs/j.yaml", PROGRAMS)
    return str(error.value)


def test_each_later_document_is_the_base_under_its_own_keys_and_the_base_is_a_job_too() -> None:
    text = "nr_threads: 1\nhackbench:\n  ipc: pipe\n---\nnr_threads: 2\n---\nloops: 10\n"
    assert settings(text) == [
        {"nr_threads": ["1"], "ipc": ["pipe"]},
        {"nr_threads": ["2"], "ipc": ["pipe"]},
        {"nr_threads": ["1"], "ipc": ["pipe"], "loops": ["10"]},
    ]


def test_a_later_documents_program_block_replaces_the_base_one_as_a_whole() -> None:
    assert settings("hackbench:\n  ipc: pipe\n  mode: threads\n---\nhackbench:\n  ipc: socket\n")[
        1
    ] == {"ipc": ["socket"]}


def test_a_dotted_key_sets_one_key_inside_a_block_and_leaves_the_rest() -> None:
    assert settings("hackbench:\n  ipc: pipe\n  mode: threads\n---\nhackbench.ipc: socket\n")[
        1
    ] == {"ipc": ["socket"], "mode": ["threads"]}


def test_a_dotted_key_of_one_document_does_not_reach_the_next() -> None:
    assert settings("hackbench:\n  ipc: pipe\n---\nhackbench.ipc: socket\n---\nloops: 3\n")[2] == {
        "ipc": ["pipe"],
        "loops": ["3"],
    }


def test_a_later_role_block_replaces_the_same_block_as_a_whole() -> None:
    base = "runtime: 1s\nif role client:\n  ip: ipv4\n  netperf:\n    test: TCP_RR\n"
    assert settings(base + "---\nif role client:\n  netperf:\n    test: UDP_RR\n")[1] == {
        "runtime": ["1s"],
        "test": ["UDP_RR"],
    }


def test_a_dotted_key_of_the_base_gives_way_to_a_later_block() -> None:
    assert settings("hackbench.ipc: pipe\n---\nhackbench:\n  mode: threads\n") == [
        {"ipc": ["pipe"]},
        {"mode": ["threads"]},
    ]


def test_a_base_without_a_benchmark_is_no_job_by_itself() -> None:
    assert settings("runs: 2\nnr_threads: 1\n---\nhackbench:\n---\nnetperf:\n  test: TCP_RR\n") == [
        {"nr_threads": ["1"]},
        {"nr_threads": ["1"], "test": ["TCP_RR"]},
    ]


def test_a_plus_appends_to_a_list_and_a_minus_takes_away() -> None:
    base = "nr_threads: [1, 2]\nhackbench:\n  ipc: pipe\n  mode: threads\n"
    assert settings(
        base
        + (
            "---\nnr_threads+: [2, 3]\n---\nnr_threads-: 1\n---\nnr_threads-:\n---\n"
            "hackbench.ipc-:\n---\nhackbench.ipc+: socket\n"
        )
    ) == [
        {"nr_threads": ["1", "2"], "ipc": ["pipe"], "mode": ["threads"]},
        {"nr_threads": ["1", "2", "3"], "ipc": ["pipe"], "mode": ["threads"]},
        {"nr_threads": ["2"], "ipc": ["pipe"], "mode": ["threads"]},
        {"ipc": ["pipe"], "mode": ["threads"]},
        {"nr_threads": ["1", "2"], "mode": ["threads"]},
        {"nr_threads": ["1", "2"], "ipc": ["pipe", "socket"], "mode": ["threads"]},
    ]


def test_taking_away_what_is_not_there_changes_nothing() -> None:
    assert settings("hackbench:\nvmstat-:\nhackbench.loops-: 3\nloops-: [3]\n") == [{}]


def test_taking_away_everything_leaves_an_empty_value() -> None:
    assert settings("hackbench:\nloops: [3]\nloops-: 3\n") == [{"loops": []}]


def test_a_plus_on_a_key_that_is_not_there_sets_it() -> None:
    assert settings("hackbench:\nloops+: [3]\nhackbench.fds+: 4\n") == [
        {"fds": ["4"], "loops": ["3"]}
    ]


def test_a_table_is_taken_from_by_key_and_added_to_by_key() -> None:
    base = "hackbench:\n  ipc: pipe\n  mode: threads\n"
    assert settings(base + "---\nhackbench-: [ipc]\n---\nhackbench+:\n  loops: 3\n  ipc: socket\n")[
        1:
    ] == [
        {"mode": ["threads"]},
        {"ipc": ["socket"], "mode": ["threads"], "loops": ["3"]},
    ]


def test_a_dotted_key_finds_a_program_inside_its_role_block() -> None:
    base = "cluster: cs-localhost\nif role client:\n  netperf:\n    test: TCP_RR\n"
    assert settings(base + "---\nnetperf.test: UDP_RR\n")[1] == {
        "cluster": ["cs-localhost"],
        "test": ["UDP_RR"],
    }


def test_a_block_that_is_replaced_keeps_its_place_among_the_axes() -> None:
    text = (
        "if role client:\n  netperf:\n    test: TCP_RR\nnr_threads: 1\n---\nif role client:\n"
        "  netperf:\n    test: UDP_RR\n"
    )
    assert [list(job.settings) for job in load_job(text, "j.yaml", PROGRAMS)] == [
        ["test", "nr_threads"]
    ] * 2


def test_braces_without_quotes_are_read_as_lkp_reads_them() -> None:
    text = (
        "nr_threads:\n  - {{ nr_cpu }}\n  - 2\nhackbench:\n  loops: {{\n    fds +\n      1\n "
        " }}\n  fds: '{{ 7 }}' # remark\n"
    )
    assert settings(text) == [
        {"nr_threads": ["{{ nr_cpu }}", "2"], "loops": ["{{ fds + 1 }}"], "fds": ["{{ 7 }}"]}
    ]


def test_what_follows_braces_without_quotes_keeps_its_line() -> None:
    assert "j.yaml:5: unknown key 'loop'" in refused(
        "hackbench:\n  loops: {{\n  1\n  }}\nloop: 3\n"
    )


@pytest.mark.parametrize(
    "value",
    [
        "010",
        "1_000",
        "0x10",
        "1.50",
        "+5",
        "12:30",
        "yes",
        "False",
        ":name",
        "2001-01-01",
        ".5",
        "1e5",
        "1,000",
        "1.0e3",
    ],
)
def test_a_value_that_yaml_takes_for_another_is_refused_unless_it_is_in_quotes(value: str) -> None:
    assert refused(f"hackbench:\n  loops: {value}\n").startswith(
        f"jobs/j.yaml:2: loops: YAML reads {value} as another value"
    )
    assert settings(f"hackbench:\n  loops: [1, '{value}']\n") == [{"loops": ["1", value]}]


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "10",
        "-3",
        "1.5",
        "10.25",
        "300s",
        "50%",
        "1t",
        "10K",
        "TCP_RR",
        "1.5.1",
        "e5",
        "true",
        "no_affinity",
        "0.1",
    ],
)
def test_a_value_that_yaml_writes_as_it_is_written_is_taken(value: str) -> None:
    assert settings(f"hackbench:\n  loops: {value}\n") == [{"loops": [value]}]


def test_everything_that_is_wrong_is_found_at_once() -> None:
    documents, problems = read_job(
        "hackbench:\n  loop: 1\nthread: 2\n---\nkconfig: x\n", "jobs/j.yaml", PROGRAMS
    )
    assert documents == []
    assert [str(problem).split(": ")[0] for problem in problems] == [
        "jobs/j.yaml:2",
        "jobs/j.yaml:3",
        "jobs/j.yaml:5",
    ]


def test_server_and_client_blocks_are_one_testbox() -> None:
    text = (
        "cluster: cs-localhost\nif role server:\n  netserver:\nif role client:\n  netperf:\n "
        "   test: TCP_RR\n"
    )
    assert settings(text) == [{"cluster": ["cs-localhost"], "test": ["TCP_RR"]}]


def test_comments_remarks_and_switched_off_keys_change_nothing() -> None:
    remarks = (
        "# a comment\nsuite: x\ntestcase: y\ncategory: benchmark\nneed_memory: 1G\n"
        "need_kconfig:\n- A: y\nset_nic_irq_affinity: 1\nsetup-net-buffer:\n"
    )
    text = f"{remarks}'#perf-profile':\n':vmstat': 3\nperf-stat:\nhackbench:\n"
    [job] = load_job(text, "j.yaml", PROGRAMS)
    assert (job.settings, job.monitors) == ({}, ("perf-stat",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hackbench:\nnr_thread: 1\n",
            "jobs/j.yaml:2: unknown key 'nr_thread'; did you mean 'nr_threads'?",
        ),
        (
            "hackbenc:\n  loops: 1\n",
            "jobs/j.yaml:1: no program is called 'hackbenc'; did you mean 'hackbench'?",
        ),
        (
            "hackbench:\n  loop: 1\n",
            "jobs/j.yaml:2: hackbench has no parameter 'loop'; did you mean 'loops'?",
        ),
        ("hackbench:\n---\n\ntest: TCP_RR\n", "jobs/j.yaml:4: unknown key 'test'"),
        (
            "runs: 1\n",
            (
                "jobs/j.yaml:1: the job names no benchmark; known are anon-touch, dbench, fio, "
                "hackbench, huge-pages, iperf, kbuild, memcg, memory-idle, netperf, "
                "page-cache, page-fault, perf-bench-epoll, perf-bench-futex, "
                "perf-bench-sched-messaging, perf-bench-sched-pipe, "
                "perf-bench-syscall, pgbench, redis, stress-ng, tbench, vma-storm, "
                "will-it-scale"
            ),
        ),
        ("", "jobs/j.yaml:1: the job names no benchmark"),
        (
            "hackbench:\nnetperf:\n  test: TCP_RR\n",
            "jobs/j.yaml:2: one job runs one benchmark, but this one has hackbench and netperf",
        ),
        ("hackbench:\n\nx: <%= 3 %>\n", "jobs/j.yaml:3: ERB (<% %>) is not supported"),
        ("hackbench:\n% for x\n", "jobs/j.yaml:2: ERB (<% %>) is not supported"),
        (
            "hackbench:\n<<: [a, b]\n",
            "jobs/j.yaml:2: '<<' includes the text of a job file and must name one",
        ),
        ("hackbench:\nif role other:\n  x: 1\n", "jobs/j.yaml:2: 'if role other' is not supported"),
        ("hackbench:\nwhile true:\n  x: 1\n", "jobs/j.yaml:2: 'while true' is not supported"),
        (
            "hackbench:\ncgroup2:\n  cg_count: 2\n",
            "jobs/j.yaml:3: cg_count needs LKP's cgroup2; swingbot sets only memory.high,",
        ),
        (
            "hackbench:\nturbostat:\n",
            "jobs/j.yaml:2: turbostat needs LKP's monitor of that name, which swingbot lacks",
        ),
        (
            "hackbench:\n  nr_instances: 2\n",
            "jobs/j.yaml:2: nr_instances needs LKP's program run-test",
        ),
        (
            "netperf:\n  test: TCP_RR\nnetserver:\n  ip: ipv4\n",
            (
                "jobs/j.yaml:3: netserver is started by the benchmark itself and takes no "
                "settings here"
            ),
        ),
        ("hackbench:\nif role client: x\n", "jobs/j.yaml:2: 'if role client' must hold"),
        ("hackbench:\nperf-stat:\n  x: 1\n", "jobs/j.yaml:3: perf-stat has no parameter 'x'"),
        ("hackbench:\nkconfig: [a, b]\n", "jobs/j.yaml:2: kconfig would have no effect here"),
        (
            "hackbench:\n  loops: 1\nloops: 2\n",
            "jobs/j.yaml:3: loops is set twice, first in line 2",
        ),
        ("hackbench:\nruns: 2\nruns: 3\n", "jobs/j.yaml:3: 'runs' appears twice, first in line 2"),
        (
            "netserver:\nif role server:\n  netserver:\n",
            "jobs/j.yaml:3: 'netserver' appears twice, first in line 1",
        ),
        ("hackbench:\n.ipc: pipe\n", "jobs/j.yaml:2: a dotted key has an empty part"),
        (
            "hackbench: x\nhackbench.ipc: pipe\n",
            (
                "jobs/j.yaml:2: 'hackbench.ipc' sets a key inside 'hackbench', which is a "
                "plain value in line 1"
            ),
        ),
        ("hackbench: 3\n", "jobs/j.yaml:1: hackbench must be empty or a table of its parameters"),
        (
            "hackbench:\n  loops: {a: 1}\n",
            "jobs/j.yaml:2: loops must be a value or a list of values",
        ),
        (
            "netperf:\n  test: TCP_RR\ncluster: two boxes\n",
            "jobs/j.yaml:3: cluster 'two boxes' must be cs-localhost",
        ),
        ("hackbench: [\n", "jobs/j.yaml:2: not valid YAML"),
        ("- a\n", "jobs/j.yaml:1: a job must be a table"),
        (
            "hackbench:\n  loops: [{{ nr_cpu }}]\n",
            "jobs/j.yaml:2: a key must be plain text; put quotes around values with {{ }}",
        ),
        ("hackbench:\n  \x00\n", "jobs/j.yaml:2: has a character that YAML does not allow"),
    ],
)
def test_what_is_not_understood_is_refused_with_file_and_line(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_file_name_that_can_not_be_part_of_a_results_name_is_refused() -> None:
    with pytest.raises(
        JobError, match=r"my job\.yaml:1: a job file's name becomes part of every result's"
    ):
        load_job("hackbench:\n", "jobs/my job.yaml", PROGRAMS)


def test_aliases_that_stand_for_billions_of_values_are_refused() -> None:
    levels = "".join(f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert "too many values" in refused(f"k0: &a0 [1]\n{levels}")


def test_a_huge_file_and_deep_nesting_are_refused() -> None:
    assert "characters" in refused("#" * 300_000)
    assert "nested" in refused("[" * 5000)


def message_of(text: str) -> str | None:
    """What is wrong with a job; None for a good one. Any other exception is a failure of the
    test."""
    try:
        load_job(text, "j.yaml", PROGRAMS)
    except JobError as error:
        return str(error)
    return None


@given(st.text(max_size=400))
def test_arbitrary_text_is_a_job_or_a_job_error(text: str) -> None:
    message = message_of(text)
    assert message is None or message.startswith("j.yaml:")


KEYS = st.sampled_from(
    [
        "hackbench",
        "netperf",
        "loops",
        "test",
        "cluster",
        "runs",
        "if role client",
        "hackbench.ipc",
        "a.b",
        ".",
        "nr_threads",
        "suite",
    ]
)
SCALARS = st.none() | st.sampled_from(["1", "50%", "TCP_RR", "cs-localhost"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=3))
def test_any_tree_of_known_words_is_a_job_or_a_job_error(
    documents: list[dict[str, object]],
) -> None:
    message = message_of("\n---\n".join(json.dumps(document) for document in documents))
    assert message is None or message.startswith("j.yaml:")
