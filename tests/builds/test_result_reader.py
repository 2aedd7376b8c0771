"""Results of boots are parsed in a child: the same runs, and what exceeds a limit is an outcome."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.result_reader import ChildResultReader
from swingbot.service.ports.lab import Lab
from swingbot.service.ports.results import Unreadable
from swingbot.service.result.ingest import read_runs
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.attack.hostile_results import long_name, many_values
from tests.unit.test_parse_results import GOOD, LINE, tar

PROGRAMS = Path(__file__).resolve().parents[2] / "jobs" / "programs"
JOB = UnitJob(
    name="j-1",
    program="page-fault",
    params={"nr_task": "1", "mode": "process"},
    runs=3,
    monitors=("perf-profile",),
)
FACTS: Mapping[str, str | int | float | bool | None] = {
    "cpus": 4,
    "uptime_seconds": 1.5,
    "kernel": "6.1",
}


@pytest.fixture
def reader() -> Iterator[ChildResultReader]:
    reader = ChildResultReader(PROGRAMS)
    yield reader
    reader.close()


def archive(*runs: Mapping[str, str | bytes], job: str = JOB.name) -> io.BytesIO:
    members = {
        f"{job}/{number}/{name}": content
        for number, files in enumerate(runs)
        for name, content in files.items()
    }
    return io.BytesIO(tar(members))


def test_the_child_returns_what_the_parsers_say(reader: ChildResultReader) -> None:
    sent = archive(GOOD, {**GOOD, "stdout": LINE.replace("2.00", "0.3")}, {**GOOD, "rc": "1"})
    expected = parse_results(sent, [JOB], load_programs(PROGRAMS), FACTS)
    assert {run.status for run in expected} >= {"ok", "failed"}
    for _ in range(2):  # one child answers both
        sent.seek(0)
        assert reader.parse(sent, [JOB], FACTS) == expected


MEASURED_HERE = """
import json, resource, sys
from pathlib import Path
from swingbot.adapters.reader_child import peak_bytes
from swingbot.adapters.result_reader import ChildResultReader
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
reader = ChildResultReader(Path(sys.argv[1]))
job, before = codec.typed(UnitJob, json.loads(sys.argv[2])), peak_bytes()
with open(sys.argv[3], "rb") as results:
    runs = reader.parse(results, [job], None)
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps([peak_bytes() - before, child, [[run.status, run.reason] for run in runs]]))
"""


def test_an_archive_that_needs_gigabytes_takes_none_of_them_here(
    reader: ChildResultReader, tmp_path: Path
) -> None:
    """In a process of its own, because a child's peak includes that of the process before exec."""
    file = long_name(tmp_path / "results.tar")
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED_HERE, PROGRAMS, json.dumps(codec.plain(JOB)), file],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    grown, child, runs = json.loads(ran.stdout)
    assert {status for status, _ in runs} == {"missing"}
    assert "it takes too much memory" in runs[0][1]
    assert grown < 64 << 20 and 256 << 20 < child < 1 << 30
    with file.open("rb") as results:
        assert reader.parse(results, [JOB], FACTS)[0].status == "missing"
    assert reader.parse(archive(GOOD), [JOB], FACTS)[0].status == "ok"


def test_a_child_of_a_large_process_is_not_replaced_for_the_size_of_its_parent(
    reader: ChildResultReader,
) -> None:
    large = bytearray(b"x") * (400 << 20)
    assert reader.parse(archive(GOOD), [JOB], FACTS)[0].status == "ok"
    first = reader._child
    assert reader.parse(archive(GOOD), [JOB], FACTS)[0].status == "ok"
    assert first is not None and reader._child is first and len(large) == 400 << 20


def test_an_answer_that_is_too_long_is_refused_and_the_next_one_is_read(
    reader: ChildResultReader,
) -> None:
    job = UnitJob(name=JOB.name, program="many", params={}, runs=12)
    with many_values() as programs:
        greedy = ChildResultReader(programs)
        with pytest.raises(Unreadable, match="more than 16 MiB was read"):
            greedy.parse(archive(*[{"rc": "0"}] * 12), [job], None)
        few = greedy.parse(archive({"rc": "0"}), [job], None)
        greedy.close()
    assert [run.status for run in few[:2]] == ["ok", "missing"]


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("while True: pass", "took longer than 1 s|takes more than 1 s"),
        ("x = [0]\n    while True: x = x + x", "too much memory"),
        ("import os; os.kill(os.getpid(), 9)", "took longer|ended with status"),
        ("import os; os._exit(3)", "ended with status 3"),
        ("import os; os.write(0, b'x' * 100); os._exit(0)", "more than 16 MiB|ended with"),
    ],
)
def test_a_reader_that_does_not_answer_is_replaced(
    tmp_path: Path, program: str, problem: str
) -> None:
    """The parser stands for a mistake that a hostile result makes use of."""
    with many_values(program) as programs:
        reader = ChildResultReader(programs, seconds=1.0 if "True: pass" in program else 60.0)
        job = UnitJob(name=JOB.name, program="many", params={}, runs=1)
        with pytest.raises(Unreadable, match=problem):
            reader.parse(archive({"rc": "0"}), [job], None)
        reader._seconds = 60.0  # a busy host may need more than a second to start the next
        assert reader.parse(archive(), [job], None)[0].status == "missing"
        reader.close()


def test_results_beyond_a_limit_make_every_run_of_the_boot_failed_and_say_why(
    tmp_path: Path,
) -> None:
    store = ArtifactDirectory(tmp_path / "artifacts")
    content = archive({"rc": "0"}).read()
    name = hashlib.sha256(content).hexdigest()
    sink = store.sink(name)
    sink.write(content)
    sink.commit()
    job = UnitJob(name=JOB.name, program="many", params={}, runs=2, monitors=("perf-profile",))
    with many_values("x = [0]\n    while True: x = x + x") as programs:
        reader = ChildResultReader(programs)
        tools = SimpleNamespace(artifacts=store, results=reader)
        lab = cast(Lab, SimpleNamespace(tools=tools, catalogue=SimpleNamespace(programs={})))
        runs = read_runs(lab.tools, lab.catalogue.programs, [job], name, "up", None)
        reader.close()
    why = "the results of the boot could not be read: reading them needs too much memory"
    assert [(run.number, run.status, run.reason, run.samples) for run in runs] == [
        (number, "failed", why, {}) for number in range(3)
    ]
    assert [run.monitor for run in runs] == [None, None, "perf-profile"]


def test_one_child_serves_many_boots_fast(reader: ChildResultReader) -> None:
    sent = archive(GOOD)
    reader.parse(sent, [JOB], FACTS)
    began = time.process_time()
    for _ in range(50):
        sent.seek(0)
        reader.parse(sent, [JOB], FACTS)
    print(f"{(time.process_time() - began) / 50 * 1000:.2f} ms of this process for a boot")
