"""Groups of builds beside those of other workers, which may be in another pid namespace."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker.walls import cgroup, trials
from swingbot_worker.walls.limits import limits_of

NO_PID = 2**22 + 1  # beyond the largest pid of Linux: a worker that is not here


@pytest.fixture
def parents() -> cgroup.Parents:
    found: cgroup.Parents | cgroup.Inherited | None = None
    with contextlib.suppress(cgroup.NoGroup):
        found = cgroup.find()
    if not isinstance(found, cgroup.Parents):
        pytest.skip("no cgroup can be created on this host")
    return found


@pytest.fixture
def foreign(parents: cgroup.Parents) -> Iterator[list[Path]]:
    """A group of a worker whose pid is unknown here."""
    groups = [
        parent / f"{cgroup.PREFIX}{NO_PID}-test{os.getpid()}" for parent in parents.directories
    ]
    for directory in groups:
        directory.mkdir()
    yield groups
    for directory in groups:
        with contextlib.suppress(FileNotFoundError):
            directory.rmdir()


def enter(parents: cgroup.Parents) -> None:
    with cgroup.group(parents, limits_of({})):
        pass


def test_a_build_kills_no_process_of_a_worker_that_it_cannot_see(
    parents: cgroup.Parents, foreign: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_ABANDONED_SECONDS", -1.0)
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            for directory in foreign:
                (directory / "cgroup.procs").write_text(f"{other.pid}\n")
            enter(parents)
            assert other.poll() is None
            assert all(directory.exists() for directory in foreign)
        finally:
            other.kill()
    end = time.monotonic() + 20
    while any(directory.exists() for directory in foreign) and time.monotonic() < end:
        enter(parents)
    assert not any(directory.exists() for directory in foreign)


def test_a_group_that_was_just_created_is_not_taken_away(
    parents: cgroup.Parents, foreign: list[Path]
) -> None:
    enter(parents)
    assert all(directory.exists() for directory in foreign)


def test_the_page_shows_trials_that_exist() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "walls.md").read_text()
    shown = re.findall(r"^ +held .* a program (.*?): (?:it|no) ", page, re.MULTILINE)
    trials_of_limits = [what for _, what, _ in trials.OVER]
    assert set(shown) & set(trials_of_limits)
    assert {what for what in shown if "connects" not in what} <= set(trials_of_limits)
