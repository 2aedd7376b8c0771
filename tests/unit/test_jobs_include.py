from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.app.commands.context import read_jobs
from swingbot_jobs import limits
from swingbot_jobs.language.expand import NominalTestbox, expand
from swingbot_jobs.language.include import include
from swingbot_jobs.language.job import JobError, load_job
from swingbot_jobs.language.job_files import read_job
from tests.programs import PROGRAMS

JOBS = Path(__file__).resolve().parents[2] / "jobs"
HACKBENCH = (
    "suite: hackbench\nnr_threads:\n  - 1\n  - 2\n\nhackbench:\n  mode: [process, threads]\n "
    " ipc: pipe\n"
)


def combined(text: str, files: dict[str, str]) -> str:
    return include(
        text, "j.yaml", lambda wanted, _by: (wanted, files[wanted]) if wanted in files else None
    )


def names(text: str, files: dict[str, str]) -> list[str]:
    return [job.name for job in expand(combined(text, files), "j.yaml", NominalTestbox(), PROGRAMS)]


def refused(text: str, files: dict[str, str]) -> str:
    with pytest.raises(JobError) as error:
        load_job(combined(text, files), "j.yaml", PROGRAMS)
    return str(error.value)


def test_an_included_file_stands_in_the_place_of_its_line() -> None:
    assert names("<<: base.yaml\n", {"base.yaml": HACKBENCH}) == [
        "j-pipe-process-1",
        "j-pipe-threads-1",
        "j-pipe-process-2",
        "j-pipe-threads-2",
    ]


def test_a_key_below_an_include_replaces_the_included_one_and_keeps_its_place_among_the_axes() -> (
    None
):
    assert names("<<: base.yaml\nnr_threads: [3, 4]\n", {"base.yaml": HACKBENCH}) == [
        "j-pipe-process-3",
        "j-pipe-threads-3",
        "j-pipe-process-4",
        "j-pipe-threads-4",
    ]


def test_the_later_of_two_includes_counts() -> None:
    assert names(
        "<<: a.yaml\n<<: b.yaml\n",
        {"a.yaml": "nr_threads: 7\n", "b.yaml": "nr_threads: 8\nhackbench:\n"},
    ) == ["j-8"]


def test_all_documents_of_an_included_file_come_along_and_what_follows_belongs_to_the_last() -> (
    None
):
    assert names("<<: a.yaml\nfds: 3\n", {"a.yaml": "hackbench:\n---\nloops: 5\n"}) == [
        "j-defaults",
        "j-3-5",
    ]


def test_the_flow_form_sets_keys_in_every_document_and_leaves_keys_out() -> None:
    files = {
        "a.yaml": (
            "nr_threads:\n- 1\n- 2\nhackbench:\n---\nhackbench:\n  ipc: pipe\nnr_threads: 3\n"
            "---\nloops: 5\ncluster: cs-localhost\n"
        )
    }
    text = "<<: {file: a.yaml, nr_threads: [8, 9], ignore: cluster}\n"
    assert names(text, files) == ["j-8", "j-9", "j-pipe-8", "j-pipe-9", "j-5-8", "j-5-9"]


def test_an_override_of_the_flow_form_replaces_a_list_over_several_lines() -> None:
    assert names("<<: {file: base.yaml, nr_threads: 50%}\n", {"base.yaml": HACKBENCH}) == [
        "j-pipe-process-50%",
        "j-pipe-threads-50%",
    ]


def test_ignored_keys_are_left_out_with_all_that_is_below_them() -> None:
    assert names(
        "<<: {file: base.yaml, ignore: [hackbench, suite]}\nhackbench:\n", {"base.yaml": HACKBENCH}
    ) == ["j-1", "j-2"]


def test_an_include_inside_a_block_is_indented_with_it() -> None:
    text = (
        "cluster: cs-localhost\nif role client:\n  netperf:\n    <<: streams.yaml\n    ip: ipv4\n"
    )
    assert names(text, {"streams.yaml": "test:\n  - TCP_STREAM\n  - UDP_STREAM\n"}) == [
        "j-cs-localhost-ipv4-TCP_STREAM",
        "j-cs-localhost-ipv4-UDP_STREAM",
    ]


def test_included_files_may_include_others() -> None:
    assert names(
        "<<: a.yaml\n", {"a.yaml": "<<: b.yaml\nloops: 2\n", "b.yaml": "hackbench:\nloops: 1\n"}
    ) == ["j-2"]


@pytest.mark.parametrize(
    ("text", "files", "message"),
    [
        (
            "x: 1\n<<: none.yaml\n",
            {},
            "j.yaml:2: the file 'none.yaml' that is included here does not exist",
        ),
        (
            "<<: a.yaml\n",
            {"a.yaml": "\n<<: a.yaml\n"},
            "a.yaml:2: a.yaml includes itself (a.yaml in a.yaml in j.yaml)",
        ),
        ("<<: j.yaml\n", {"j.yaml": "x: 1\n"}, "j.yaml:1: j.yaml includes itself"),
        (
            "hackbench:\n<<: a.yaml\n",
            {"a.yaml": "\nloop: 3\n"},
            "a.yaml:2: unknown key 'loop'; did you mean 'loops'?",
        ),
        ("<<: a.yaml\n\nloop: 3\n", {"a.yaml": "hackbench:\n"}, "j.yaml:3: unknown key 'loop'"),
        (
            "<<: a.yaml\n",
            {"a.yaml": "hackbench:\n  x: <%= 3 %>\n"},
            "a.yaml:2: ERB (<% %>) is not supported",
        ),
        ("<<: a.yaml\n", {"a.yaml": "hackbench:\n  x: ]\nruns: 2\n"}, "a.yaml:2: not valid YAML"),
        (
            "<<: {file: a.yaml, loop: 3}\n",
            {"a.yaml": "hackbench:\n"},
            "j.yaml:1: unknown key 'loop'",
        ),
        ("<<: {ignore: a}\n", {}, "j.yaml:1: '<<' takes a file name, or {file: NAME"),
        ("<<: {file: a.yaml\n", {}, "j.yaml:1: '<<' takes a file name, or {file: NAME"),
        ("<<: *alias\n", {}, "j.yaml:1: not valid YAML"),
        (
            "hackbench:\n  <<: a.yaml\n",
            {"a.yaml": "loops: 1\n---\nloops: 2\n"},
            "j.yaml:2: a file of several documents can only be included at the top level",
        ),
        (
            "<<: a.yaml\n",
            {"a.yaml": "x" * (limits.YAML_CHARACTERS + 1)},
            "a.yaml:1: the file has 65537 characters",
        ),
        (
            "<<: a.yaml\n" * 30,
            {"a.yaml": "#" * 10_000},
            "j.yaml:7: with what it includes, the job has more than 65536 characters",
        ),
        (
            "hackbench:\nloops: 1\n<<: a.yaml\nloops: 2\nloops: 3\n",
            {"a.yaml": "fds: 1\n"},
            "j.yaml:4: 'loops' appears twice, first in line 2",
        ),
    ],
)
def test_an_include_that_can_not_be_is_refused_with_the_file_and_line_where_it_stands(
    text: str, files: dict[str, str], message: str
) -> None:
    assert message in refused(text, files)


def test_files_that_include_each_other_without_an_end_are_refused() -> None:
    with pytest.raises(JobError, match="files include each other more than 8 deep"):
        include(
            "<<: 0.yaml\n",
            "j.yaml",
            lambda wanted, _by: (wanted, f"<<: {int(wanted.partition('.')[0]) + 1}.yaml\n"),
        )


def test_files_that_double_with_each_level_are_refused_before_they_fill_the_memory() -> None:
    with pytest.raises(JobError, match="characters|deep"):
        include(
            "<<: 0.yaml\n",
            "j.yaml",
            lambda wanted, _by: (
                wanted,
                f"<<: {int(wanted.partition('.')[0]) + 1}.yaml\n{'#' * 999}\n" * 100,
            ),
        )


@given(
    st.lists(
        st.sampled_from(
            [
                "<<: a.yaml",
                "<<: {file: a.yaml, x: [",
                "}",
                "---",
                "  <<: a.yaml",
                "x: 1",
                '#line 3 "q"',
                "{{",
                "}}",
                "- {{ 1 }}",
                "hackbench:",
            ]
        )
    )
)
def test_any_mixture_of_lines_is_a_job_or_a_job_error(lines: list[str]) -> None:
    message = message_of(
        "\n".join(lines), {"a.yaml": "\n".join(reversed(lines)).replace("<<", "y")}
    )
    assert message is None or ".yaml:" in message or "q:" in message


@given(st.text(max_size=300), st.text(max_size=300))
def test_arbitrary_texts_that_include_each_other_are_jobs_or_a_job_error(
    one: str, other: str
) -> None:
    message = message_of(f"{one}\n<<: a.yaml\n{other}", {"a.yaml": f"{other}\nhackbench:\n{one}"})
    assert message is None or ":" in message


@pytest.mark.parametrize(
    "line",
    ["a: {{\n", "{{ }}", "- - ", "a: ", "- 'x' {{ ", "<<: {file: a\n", '#line 1 "x"\n', "&a [*a, "],
)
def test_a_file_full_of_one_thing_takes_no_time(line: str) -> None:
    # What is quadratic in the length of a file takes minutes here, and the test runner's patience
    # is shorter.
    message_of(line * (limits.YAML_CHARACTERS // len(line) - 5), {})
    message_of(line * (limits.YAML_CHARACTERS // len(line) - 5) + "{{ 1 }}\n", {})


def message_of(text: str, files: dict[str, str]) -> str | None:
    """What is wrong with a job; None for a good one. Any other exception is a failure of the
    test."""
    try:
        load_job(combined(text, files), "j.yaml", PROGRAMS)
    except JobError as error:
        return str(error)
    return None


def written(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        path = directory / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def test_an_include_is_looked_for_beside_the_file_then_above_jobs_then_below(
    tmp_path: Path,
) -> None:
    tree = written(
        tmp_path,
        jobs__a__j="<<: base.yaml\n<<: far.yaml\n<<: jobs/top.yaml\n",
        jobs__a__base="loops: 1\n",
        jobs__base="loops: 9\n",
    )
    written(tree, jobs__b__far="hackbench:\n", jobs__top="fds: 4\n")
    text = read_job(tree / "jobs" / "a" / "j.yaml")
    assert [job.name for job in expand(text, "j.yaml", NominalTestbox(), PROGRAMS)] == ["j-4-1"]


def test_an_include_is_looked_for_among_the_shipped_jobs_too(tmp_path: Path) -> None:
    mine = written(tmp_path / "mine", j="<<: shipped.yaml\n") / "j.yaml"
    assert "loops: 6" in read_job(
        mine, [written(tmp_path / "shipped", sub__shipped="hackbench:\n  loops: 6\n")]
    )


def test_a_job_that_is_asked_for_by_name_is_kept_with_what_it_includes() -> None:
    [job] = read_jobs(["vm-will-it-scale-brk1"], str(JOBS))
    assert {
        one.params["test"] for one in expand(job.text, job.name, NominalTestbox(), PROGRAMS)
    } == {"brk1"}


def test_an_include_with_dots_is_beside_the_file_or_nowhere(tmp_path: Path) -> None:
    tree = written(tmp_path, a__j="<<: ../b/base.yaml\n", b__base="hackbench:\n")
    assert "hackbench:" in read_job(tree / "a" / "j.yaml")
    (tree / "a" / "j.yaml").write_text("<<: ./base.yaml\n")
    with pytest.raises(JobError, match=r"j\.yaml:1: the file './base\.yaml'"):
        read_job(tree / "a" / "j.yaml", [tree / "b"])


def test_a_job_file_that_is_no_text_or_has_no_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j.yaml").write_bytes(random.Random(1).randbytes(1000))
    with pytest.raises(JobError, match=r"j\.yaml:1: not valid UTF-8 text"):
        read_job(tmp_path / "j.yaml")
    with pytest.raises(JobError, match="zero:1: the file has more than"):
        read_job(Path("/dev/zero"))
