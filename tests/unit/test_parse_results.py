from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs import limits
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.parse import parse_file, parse_results, read_results
from swingbot_jobs.reading.result import ParseError, Results
from tests.programs import PROGRAMS

JOB = UnitJob(name="j-1", program="page-fault", params={"nr_task": "1", "mode": "process"}, runs=2)
LINE = (
    "page-fault: mode=process tasks=1 cycles=2 bytes=8192 faults=4 seconds=2.0 "
    "faults_per_second=2.00\n"
)
GOOD = {
    "stdout": LINE,
    "stderr": "",
    "rc": "0\n",
    "seconds": "3.07\n",
    "perf-stat": "7,,page-faults,1,100.00,,\n",
}


def tar(files: dict[str, str | bytes]) -> bytes:
    """One tar, as the guest writes one for each run."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def a_run(number: int, changes: Mapping[str, str | None] | None = None, job: str = "j-1") -> bytes:
    files: dict[str, str | None] = {**GOOD, **(changes or {})}
    return tar(
        {
            f"{job}/{number}/{name}": content
            for name, content in files.items()
            if content is not None
        }
    )


def results_of(content: bytes) -> Results:
    return read_results(io.BytesIO(content))


def test_every_run_of_concatenated_tars_is_read() -> None:
    results = results_of(a_run(0) + a_run(1) + tar({"facts/nr_cpu": "1\n"}))
    assert set(results.runs) == {("j-1", 0), ("j-1", 1)}
    assert results.runs["j-1", 1] == GOOD
    assert results.facts == {"nr_cpu": "1\n"}
    assert results.notes == ()


def test_samples_hold_the_programs_metrics_and_perfs_counters_by_full_name() -> None:
    first, second = parse_results(io.BytesIO(a_run(0) + a_run(1)), [JOB], PROGRAMS)
    assert first.samples == {"page-fault.per_process_ops": [2.0], "perf-stat.page-faults": [7.0]}
    assert (first.number, first.status, first.reason, first.seconds, second.number) == (
        0,
        "ok",
        None,
        3.07,
        1,
    )


def test_every_expected_run_is_listed_and_what_did_not_come_is_missing() -> None:
    other = UnitJob(name="j-2", program="page-fault", params={}, runs=1)
    runs = parse_results(io.BytesIO(a_run(0)), [JOB, other], PROGRAMS)
    assert [(run.unit_job, run.number, run.status) for run in runs] == [
        ("j-1", 0, "ok"),
        ("j-1", 1, "missing"),
        ("j-2", 0, "missing"),
    ]
    assert runs[1].reason == "this run has no results: the boot ended before it"
    assert runs[1].samples == {}


def test_runs_that_nobody_asked_for_are_not_listed() -> None:
    assert (
        len(parse_results(io.BytesIO(a_run(0) + a_run(7) + a_run(0, job="x")), [JOB], PROGRAMS))
        == 2
    )


def test_an_empty_file_is_a_boot_that_sent_nothing() -> None:
    assert [run.status for run in parse_results(io.BytesIO(b""), [JOB], PROGRAMS)] == [
        "missing",
        "missing",
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"rc": "1\n", "stderr": "netserver: \x1bbad\n\n"},
            "page-fault ended with exit status 1; its last words: netserver: ?bad",
        ),
        ({"rc": "1\n"}, "page-fault ended with exit status 1"),
        (
            {"rc": "124\n", "stdout": "", "seconds": "90.10\n"},
            "page-fault hung and was stopped by its time limit: page-fault printed 0 result lines",
        ),
        ({"rc": None}, "the run did not complete: the boot ended before its exit status arrived"),
        ({"rc": "zero"}, "the run did not complete"),
        ({"stdout": "rubbish"}, "page-fault printed 0 result lines"),
        ({"stdout": None}, "page-fault printed 0 result lines"),
    ],
)
def test_a_run_without_a_whole_result_has_failed_with_a_reason_and_without_samples(
    changes: dict[str, str | None], reason: str
) -> None:
    run = parse_results(io.BytesIO(a_run(0, changes)), [JOB], PROGRAMS)[0]
    assert (run.status, run.samples) == ("failed", {})
    assert run.reason is not None
    assert run.reason.startswith(reason)


def test_unreadable_counters_do_not_cost_the_result_but_are_reported() -> None:
    run = parse_results(io.BytesIO(a_run(0, {"perf-stat": "rubbish"})), [JOB], PROGRAMS)[0]
    assert (run.status, list(run.samples)) == ("ok", ["page-fault.per_process_ops"])
    assert (
        run.reason
        == "counters left out: no perf stat counters found: neither aligned text, -x nor -j output"
    )


def test_a_limit_below_what_a_healthy_run_takes_says_nothing_about_the_kernel() -> None:
    job = replace(JOB, params={**JOB.params, "runtime": "300"})
    ended = {"rc": "124\n", "stdout": "", "seconds": "90.10\n"}
    run = parse_results(io.BytesIO(a_run(0, ended)), [job], PROGRAMS)[0]
    assert (run.status, run.samples, run.limited) == ("invalid", {}, True)
    assert run.reason == "its limit is too short: it ended after 90 s of about 310 s"


def test_will_it_scale_may_hang_after_its_average() -> None:
    job = UnitJob(
        name="w", program="will-it-scale", params={"nr_task": "1", "mode": "thread"}, runs=2
    )
    hung = a_run(0, {"stdout": "measurement\naverage:500\n", "rc": "137"}, job="w") + a_run(
        1, {"stdout": "measurement\n", "rc": "137"}, job="w"
    )
    first, second = parse_results(io.BytesIO(hung), [job], PROGRAMS)
    assert (first.status, first.samples["will-it-scale.per_thread_ops"]) == ("ok", [500.0])
    assert first.reason == "will-it-scale printed its result and was then stopped by its time limit"
    assert (second.status, second.reason) == (
        "failed",
        "will-it-scale was stopped by its time limit: will-it-scale printed no average",
    )


def test_seconds_that_are_no_time_are_missing() -> None:
    runs = [
        parse_results(io.BytesIO(a_run(0, {"seconds": text})), [JOB], PROGRAMS)[0].seconds
        for text in ("nan", "-1", "x", "", "1e99", "inf")
    ]
    assert runs == [None] * 6


def test_a_last_tar_cut_anywhere_costs_only_what_was_cut() -> None:
    whole, last = a_run(0), a_run(1)
    for length in range(0, len(last), 100):
        results = results_of(whole + last[:length])
        assert results.runs["j-1", 0] == GOOD
        assert all(GOOD[name] == text for name, text in results.runs.get(("j-1", 1), {}).items())
    assert "the results end early" in results_of(last[:600]).notes[0]


def test_a_tar_after_garbage_is_found_again() -> None:
    assert results_of(a_run(0) + b"\xff" * 1024 + a_run(1)).runs.keys() == {("j-1", 0), ("j-1", 1)}


MISPLACED = [
    "/j-1/0/rc",
    "../j-1/0/rc",
    "j-1/../0/rc",
    "j-1/0/../rc",
    "rc",
    "j-1/rc",
    "j-1/0/a/rc",
    "j-1/-1/rc",
    "j-1/00/rc",
    "facts/a/b",
    ".x/0/rc",
    "j-1/0/.rc",
]


@pytest.mark.parametrize("name", MISPLACED)
def test_a_member_that_is_not_where_results_go_is_left_out_and_noted(name: str) -> None:
    results = results_of(tar({name: "x", "facts/ok": "1"}))
    assert (results.runs, results.facts) == ({}, {"ok": "1"})
    assert "not a path of a result" in results.notes[0]


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_links_devices_and_holes_are_left_out(kind: bytes) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("j-1/0/rc")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    assert results_of(out.getvalue() + a_run(1)).runs.keys() == {("j-1", 1)}


def test_directories_are_no_cause_for_a_note() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("j-1/0")
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    assert results_of(out.getvalue()).notes == ()


def test_the_first_of_two_equal_members_counts() -> None:
    results = results_of(tar({"j-1/0/rc": "0"}) + tar({"j-1/0/rc": "1"}))
    assert results.runs["j-1", 0]["rc"] == "0"
    assert "came twice" in results.notes[0]


def test_size_and_number_of_members_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESULT_FILE_BYTES", 100)
    monkeypatch.setattr(limits, "RESULT_BYTES", 250)
    results = results_of(
        tar(
            {
                "facts/big": "x" * 101,
                "facts/a": "x" * 100,
                "facts/b": "x" * 100,
                "facts/c": "x" * 100,
            }
        )
    )
    assert set(results.facts) == {"a", "b"}
    assert "more than 100" in results.notes[0]
    assert "more than 250 bytes" in results.notes[1]
    monkeypatch.setattr(limits, "RESULT_FILES", 1)
    assert set(results_of(tar({"facts/a": "", "facts/b": ""})).facts) == {"a"}


def test_an_archive_that_is_too_large_is_not_read_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESULT_ARCHIVE_BYTES", 1000)
    results = results_of(a_run(0))
    assert (results.runs, results.notes) == (
        {},
        ("the results have more than 1000 bytes: nothing was read",),
    )


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert results_of(tar({"facts/x": b"\xff\xfe"})).facts == {"x": "\ufffd\ufffd"}


def test_results_are_read_from_a_path_too(tmp_path: Path) -> None:
    path = tmp_path / "results.tar"
    path.write_bytes(a_run(0))
    assert read_results(path).runs.keys() == {("j-1", 0)}


@st.composite
def scratched(draw: st.DrawFn) -> bytes:
    """A good tar with a few bytes of its first header overwritten."""
    content, at, scratch = (
        a_run(0),
        draw(st.integers(0, 511)),
        draw(st.binary(min_size=1, max_size=12)),
    )
    return content[:at] + scratch + content[at + len(scratch) :]


VMSTAT = "time: 1.00\npgfault 5\nnr_free_pages 10\n"


def test_output_of_light_monitors_accompanies_the_result_and_unreadable_output_is_reported() -> (
    None
):
    files = {
        "proc-vmstat": VMSTAT + VMSTAT.replace("5", "9").replace("1.00", "2.00"),
        "buddyinfo": "rubbish",
        "time": "",
    }
    run = parse_results(io.BytesIO(a_run(0, files)), [JOB], PROGRAMS)[0]
    assert run.samples == {
        "page-fault.per_process_ops": [2.0],
        "perf-stat.page-faults": [7.0],
        "proc-vmstat.pgfault": [4.0],
        "proc-vmstat.nr_free_pages": [10.0],
    }
    assert (run.status, run.reason) == (
        "ok",
        "buddyinfo left out: has no snapshot: no line has this monitor's format",
    )


@given(st.binary(max_size=2000) | scratched())
def test_arbitrary_bytes_are_results(content: bytes) -> None:
    runs = parse_results(io.BytesIO(content + a_run(1)), [JOB], PROGRAMS)
    assert [run.number for run in runs] == [0, 1]


def test_parse_prints_what_a_file_or_a_runs_directory_holds(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text(LINE)
    assert parse_file("page-fault", tmp_path / "stdout", PROGRAMS) == {
        "program": "page-fault",
        "samples": {"page-fault.per_process_ops": [2.0]},
    }
    (tmp_path / "perf-stat").write_text(GOOD["perf-stat"])
    assert parse_file("page-fault", tmp_path, PROGRAMS)["samples"] == {
        "page-fault.per_process_ops": [2.0],
        "perf-stat.page-faults": [7.0],
    }
    assert parse_file("perf-stat", tmp_path / "perf-stat", PROGRAMS)["samples"] == {
        "perf-stat.page-faults": [7.0]
    }


@pytest.mark.parametrize(
    ("program", "name", "message"),
    [
        ("page-falt", "stdout", "there is no program 'page-falt'; did you mean 'page-fault'?"),
        ("page-fault", "nowhere", "nowhere: No such file or directory"),
        ("perf-stat", "stdout", "no perf stat counters found"),
        ("perf-stat", "empty", "no perf stat counters found"),
        ("perf-stat", "uncounted", "has no counter of perf stat"),
        ("buddyinfo", "stdout", "stdout: has no snapshot"),
        ("page-fault", "huge", "larger than"),
    ],
)
def test_what_can_not_be_parsed_is_reported_in_one_sentence(
    tmp_path: Path, program: str, name: str, message: str
) -> None:
    (tmp_path / "stdout").write_text(LINE)
    (tmp_path / "empty").write_text("")
    (tmp_path / "uncounted").write_text("<not supported>,,cycles,0,100.00,,\n")
    (tmp_path / "huge").write_text("x" * (limits.RESULT_FILE_BYTES + 1))
    with pytest.raises(ParseError) as error:
        parse_file(program, tmp_path / name, PROGRAMS)
    assert message in str(error.value)
