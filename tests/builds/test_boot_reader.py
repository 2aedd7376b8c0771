"""A worker reads the results of a boot in a child: the same report, and limits that hold."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import InfraError, LimitReached, walls
from swingbot_worker.readers import limited_reader
from swingbot_worker.readers.boot_reader import read_boot
from tests.attack.hostile_results import long_name
from tests.unit.test_parse_results import tar

JOB = UnitJob(name="j-1", program="page-fault", params={}, runs=3, sysctl={"vm.swappiness": "10"})
SWAPPINESS = "/proc/sys/vm/swappiness:10\n"
GOOD = {
    "rc": "0\n",
    "stdout": "it works\n",
    "seconds": "1.5\n",
    "facts-before": SWAPPINESS,
    "facts-after": SWAPPINESS,
}


def written(place: Path, *runs: dict[str, str], facts: dict[str, str] | None = None) -> Path:
    members: dict[str, str | bytes] = {
        f"j-1/{number}/{name}": text
        for number, files in enumerate(runs)
        for name, text in files.items()
    }
    members |= {f"facts/{name}": text for name, text in (facts or {}).items()}
    path = place / "results.tar"
    path.write_bytes(tar(members))
    return path


def test_facts_runs_and_marks_of_a_boot_come_from_the_child(tmp_path: Path) -> None:
    bad = {**GOOD, "rc": "3\n", "stderr": "first\nout of luck\n"}
    results = written(
        tmp_path, GOOD, bad, facts={"cpus": "4", "host_load1": "99", "trouble": " no wire\n"}
    )
    report = read_boot(
        results,
        unit_jobs=[JOB],
        facts={"host_load1": 0.5, "host_stolen_ticks": None},
        marks=["trouble", "absent"],
    )
    assert report.facts == {
        "cpus": 4,
        "host_load1": 0.5,
        "trouble": "no wire",
        "set.vm.swappiness": 10,
    }
    assert report.marks == {"trouble": " no wire\n", "absent": ""}
    assert [dict(run) for run in report.runs] == [
        {"unit_job": "j-1", "number": 0, "status": "ok", "seconds": 1.5},
        {
            "unit_job": "j-1",
            "number": 1,
            "status": "failed",
            "reason": "page-fault exited with status 3: out of luck",
            "seconds": 1.5,
        },
        {
            "unit_job": "j-1",
            "number": 2,
            "status": "missing",
            "reason": "nothing came back from this run",
        },
    ]


def test_an_archive_that_needs_gigabytes_takes_none_of_them_here(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = read_boot(
        long_name(tmp_path / "results.tar"),
        unit_jobs=[JOB],
        facts={"cpus": 4, "unknown": None},
        memory_bytes=256 << 20,
    )
    assert {run["status"] for run in report.runs} == {"missing"}
    assert report.facts == {"cpus": 4}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_reader_that_takes_too_long_says_nothing_about_the_boot(tmp_path: Path) -> None:
    with pytest.raises(LimitReached, match="could not be read: reading it took too long"):
        read_boot(written(tmp_path, GOOD), unit_jobs=[JOB], facts={"cpus": 4}, seconds=0.01)


@pytest.mark.parametrize(
    "answer",
    ['{"facts": {}, "marks": {}}', '{"facts": {"a": [1]}, "runs": [], "marks": {}}', "[]", "{"],
)
def test_an_answer_of_another_form_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    program = f"import json, os, sys; os.write(json.load(sys.stdin)['answer'], {answer!r}.encode())"
    start = program.replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr(limited_reader, "_START", start)
    with pytest.raises(InfraError, match="invalid answer|failed with status 0"):
        read_boot(written(tmp_path, GOOD))


LOOK = """
import json, os, sys
answer = json.load(sys.stdin)["answer"]
seen = [path for path in ("/etc/shadow", *PATHS) if os.path.exists(path)]
os.write(answer, json.dumps(dict(refused=f"user {os.getuid()} sees {seen}")).encode())
"""


@pytest.mark.skipif(not walls.untested(), reason="no walls on this host")
def test_the_reader_of_a_boot_sees_nothing_of_the_host(
    tmp_path: Path, host_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = written(tmp_path, GOOD)
    paths = tuple(map(str, (results, *host_files)))
    start = LOOK.replace("{", "{{").replace("}", "}}").replace("PATHS", repr(paths))
    monkeypatch.setattr(limited_reader, "_START", start)
    report = read_boot(results, unit_jobs=[JOB])
    assert report.runs[0]["reason"] == "the results could not be read: user 65532 sees []"
    # a wall that cannot be set up is left out, and the reader still has no capability to write
    monkeypatch.setattr(walls.Sandbox, "run", no_walls)
    seen = read_boot(results, unit_jobs=[JOB]).runs[0]["reason"]
    assert [path in seen for path in ("/etc/shadow", *paths)] == [True] * 4


def no_walls(*_: object, **__: object) -> None:
    raise walls.NoWalls("no namespaces")


def test_a_boot_without_results_starts_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_reader, "_START", "raise SystemExit(1)")
    report = read_boot(tmp_path / "results.tar", unit_jobs=[JOB])
    assert [run["status"] for run in report.runs] == ["missing"] * 3
