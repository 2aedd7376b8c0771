"""Benchmark programs built from a source that the operator names: real make, real walls, hostile
Makefiles."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import InfraError, limits, rootfs, walls
from swingbot_worker.cli import main
from swingbot_worker.program import build
from swingbot_worker.program.build import ProgramBuildFailed
from swingbot_worker.program.listing import job_needs
from swingbot_worker.rootfs import installed, programs
from swingbot_worker.site import Site

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = """\
all: page_fault1_processes page_fault1_threads
%_processes: main.c tests/%.c
	$(CC) -O2 main.c tests/$*.c -o $@
%_threads: main.c tests/%.c
	$(CC) -O2 -DTHREADS main.c tests/$*.c -pthread -o $@
"""
SOURCE = {
    "Makefile": MAKEFILE,
    "main.c": (
        '#include <stdio.h>\nint touch(void);\nint main(void) { printf("average:%d\\n", '
        "touch()); }\n"
    ),
    "tests/page_fault1.c": "int touch(void) { return 7; }\n",
}
JOBS = [
    UnitJob(
        name=mode, program="will-it-scale", params={"test": "page_fault1", "mode": mode}, runs=1
    )
    for mode in ("process", "thread")
]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        cache=tmp_path / "cache",
        workers=ROOT / "workers",
        jobs=ROOT / "jobs",
        benchmarks=None,
        make_jobs=2,
    )


def packed(path: Path, files: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            info = tarfile.TarInfo(f"will-it-scale-1/{name}")
            info.size = len(text)
            made.addfile(info, io.BytesIO(text.encode()))
    return path


def built(site: Site, tmp_path: Path, recipe: str = "", **files: str) -> build.InstalledProgram:
    """The small source, with `recipe` as the Makefile's only rule if it is given."""
    more = {"Makefile": f"all:\n\t{recipe}\n"} if recipe else {}
    archive = packed(tmp_path / "source.tar.gz", SOURCE | more | files)
    return build.build("will-it-scale", archive, site, lambda line: None)


def refused(site: Site, tmp_path: Path, recipe: str) -> ProgramBuildFailed:
    with pytest.raises(ProgramBuildFailed) as failed:
        built(site, tmp_path, recipe)
    return failed.value


def note(site: Site) -> dict[str, Any]:
    found = json.loads((installed.place(site.cache, "will-it-scale") / "program.json").read_text())
    assert isinstance(found, dict)
    return found


def test_what_was_built_is_found_by_jobs_and_named_in_the_facts_of_a_boot(
    site: Site, tmp_path: Path
) -> None:
    with pytest.raises(InfraError, match="program build will-it-scale ARCHIVE"):
        programs.needed(JOBS, site)
    made = built(site, tmp_path)
    assert made.binaries == ("page_fault1_processes", "page_fault1_threads")
    facts = rootfs.prepare(JOBS, site).facts
    assert facts["version.page_fault1_threads"] == made.version
    digest = note(site)["binaries"]["page_fault1_threads"]["sha256"]
    assert facts["sha256.page_fault1_threads"] == digest
    done = subprocess.run(
        [made.directory / "page_fault1_processes"], capture_output=True, check=True, timeout=20
    )
    assert done.stdout == b"average:7\n"


def test_equal_sources_give_equal_binaries_from_an_archive_and_a_directory(
    site: Site, tmp_path: Path
) -> None:
    first = built(site, tmp_path)
    before = note(site)
    for name, text in SOURCE.items():
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / name).write_text(text)
    again = build.build("will-it-scale", tmp_path / "checkout", site, lambda line: None)
    after = note(site)
    assert again.version == first.version
    assert after["binaries"] == before["binaries"]
    assert after["source"]["sha256"] == before["source"]["sha256"]


def test_what_the_operator_put_into_benchmarks_dir_wins(site: Site, tmp_path: Path) -> None:
    built(site, tmp_path)
    own = tmp_path / "bench" / "will-it-scale" / "page_fault1_processes"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    with_own = Site(
        cache=site.cache,
        workers=site.workers,
        jobs=site.jobs,
        benchmarks=tmp_path / "bench",
        make_jobs=1,
    )
    sources = {binary.source for binary in programs.needed(JOBS, with_own)}
    assert own in sources
    assert installed.place(site.cache, "will-it-scale") / "page_fault1_threads" in sources


def test_a_test_that_the_source_lacks_is_named(site: Site, tmp_path: Path) -> None:
    built(site, tmp_path)
    job = UnitJob(name="j", program="will-it-scale", params={"test": "nonsense1"}, runs=1)
    with pytest.raises(InfraError, match="no nonsense1_processes in the will-it-scale"):
        programs.needed([job], site)


@pytest.mark.parametrize("damage", ["binary", "note", "gone"])
def test_a_binary_that_is_not_what_was_built_is_not_booted(
    site: Site, tmp_path: Path, damage: str
) -> None:
    directory = built(site, tmp_path).directory
    if damage == "binary":
        (directory / "page_fault1_processes").write_bytes(b"\x7fELF another")
    elif damage == "gone":
        (directory / "page_fault1_processes").unlink()
    else:
        (directory / "program.json").write_text("[]")
    with pytest.raises(InfraError, match="build will-it-scale again"):
        programs.needed(JOBS, site)


def test_a_failed_build_leaves_what_was_there_and_shows_its_last_lines(
    site: Site, tmp_path: Path
) -> None:
    before = built(site, tmp_path).directory / "page_fault1_processes"
    content = before.read_bytes()
    failed = refused(
        site, tmp_path, "@for n in 1 2 3; do echo line $$n; done; printf 'a\\033[2Jb\\n'; false"
    )
    assert "`make -j2 all` exited with status 2" in str(failed)
    assert failed.lines[:4] == ("line 1", "line 2", "line 3", "a?[2Jb")
    assert before.read_bytes() == content


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ("@true", "produced none of its binaries"),
        ("@ln -s /etc/shadow page_fault1_processes", "produced none of its binaries"),
        ("@mkfifo page_fault1_processes", "produced none of its binaries"),
        ("@cp Makefile page_fault1_processes", "not an x86-64 executable"),
        ("@mkdir page_fault1_processes", "produced none of its binaries"),
        ("@truncate -s 70M page_fault1_processes", "not a regular file or is too large"),
        ("@yes", "printed more than 8 MB"),
        ("@dd if=/dev/zero of=x bs=1M count=300; sleep 60", "wrote .* the limit is 100 MB"),
    ],
)
def test_a_build_that_gives_no_program_or_takes_too_much_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, why: str
) -> None:
    monkeypatch.setattr(build, "DISK", 100 << 20)
    failed = refused(site, tmp_path, recipe)
    assert re.search(why, str(failed)), str(failed)
    assert installed.find(site.cache, "will-it-scale") is None


def test_a_build_that_does_not_end_is_stopped(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PROGRAM_SECONDS", 2.0)
    assert "took longer than 2 s" in str(refused(site, tmp_path, "@echo so far; sleep 600"))


def test_behind_walls_the_build_sees_neither_secrets_nor_the_network(
    site: Site, tmp_path: Path
) -> None:
    if walls.probe().sandbox is None:
        pytest.skip("the walls do not stand on this host")
    (tmp_path / "secret").write_text("s")
    recipe = (
        f"@ls {tmp_path}/secret /etc/shadow /root; cat /proc/net/dev | grep -c eth; id -u; false"
    )
    lines = "\n".join(refused(site, tmp_path, recipe).lines)
    assert lines.count("No such file or directory") == 3
    assert "\n0\n65532\n" in f"\n{lines}\n"


def test_without_walls_it_is_built_unprivileged_and_says_so(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWINGBOT_BUILD_WALLS", "off")
    made = built(site, tmp_path)
    assert made.walls.startswith("without walls, as ")
    assert note(site)["walls"] == made.walls
    lines = refused(site, tmp_path, "@id -u; grep NoNewPrivs /proc/self/status; false").lines
    assert "0" not in lines
    assert "NoNewPrivs:?1" in lines


def test_another_source_is_not_built(site: Site, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Makefile").write_text("all:\n\ttouch /tmp/swingbot-was-built\n")
    with pytest.raises(
        ProgramBuildFailed, match=r"is not the source of will-it-scale: it has no main\.c"
    ):
        build.build("will-it-scale", tmp_path / "other", site, lambda line: None)


# --- the list and the command --------------------------------------------------------------------


def test_every_shipped_job_is_listed_with_what_it_lacks(site: Site, tmp_path: Path) -> None:
    before = {job.job: job for job in job_needs(site)}
    assert set(before) == {path.name for path in (ROOT / "jobs").glob("*.yaml")}
    assert not before["vm-will-it-scale.yaml"].runs
    assert before["vm-page-fault-locks.yaml"].runs
    assert [need.state for need in before["netperf.yaml"].needs] == ["there", "fetchable"]
    assert "program build netperf" in before["netperf-sctp.yaml"].needs[1].detail
    built(site, tmp_path)
    after = {job.job: job for job in job_needs(site)}
    assert after["vm-will-it-scale.yaml"].runs
    assert not after["vm-will-it-scale-brk1.yaml"].runs
    assert [job.job for job in job_needs(site, [ROOT / "jobs" / "vm-swap.yaml"])] == [
        "vm-swap.yaml"
    ]


def run(site: Site, *words: str) -> tuple[int, str]:
    env = {"SWINGBOT_PATHS_CACHE": str(site.cache), "SWINGBOT_BENCHMARKS_DIR": None}
    done = CliRunner().invoke(main, ["program", *words], env=env)
    return done.exit_code, done.output


def test_the_command_builds_and_lists(site: Site, tmp_path: Path) -> None:
    archive = str(packed(tmp_path / "source.tar.gz", SOURCE))
    status, text = run(site, "list")
    assert status == 1
    assert "missing   vm-will-it-scale.yaml" in text
    status, text = run(site, "build", "will-it-scale", archive)
    assert (status, "2 binaries in" in text) == (0, True)
    status, text = run(site, "list", "--json")
    found = {job["job"]: job for job in json.loads(text)["jobs"]}
    assert (status, found["vm-will-it-scale.yaml"]["runs"]) == (1, True)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (
            ["build", "sysbench", "."],
            2,
            "no build recipe for 'sysbench'; it has recipes for netperf",
        ),
        (["build", "will-it-scale", "/nonexistent"], 2, "does not exist"),
        (["build", "will-it-scale", __file__], 1, "refused: .* not a tar archive"),
    ],
)
def test_the_command_says_what_is_wrong(
    site: Site, words: list[str], status: int, says: str
) -> None:
    ended, text = run(site, *words)
    assert ended == status
    assert re.search(says, text), text
