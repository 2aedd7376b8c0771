"""What a job demands of its boots, from the job file to the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.model.records import JobFile
from swingbot_db import read
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd
from tests.table_requests import compare

JOB = "runs: 2\npage-fault:\n  mode: process\n  nr_task: 1\n  cycles: 1\n  size: 128M\n"
GUEST = {"qemu_version": "7.2", "rootfs": "00ff", "thp_enabled": "madvise"}


class Settling(Mapping[str, Any]):
    """Facts of a host whose load is too high `times` times, and then is not."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __getitem__(self, name: str) -> Any:
        if name != "host_load1":
            return GUEST[name]
        self.times -= 1
        return 5.0 if self.times >= 0 else 0.05

    def __iter__(self) -> Iterator[str]:
        return iter((*GUEST, "host_load1"))

    def __len__(self) -> int:
        return len(GUEST) + 1


@pytest.fixture
def brain(
    tmp_path: Path, db_url: str, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Brain]:
    monkeypatch.setattr("swingbot.service.order.dispatch.patience", lambda made: 0.0)
    repo = tmp_path / "linux"
    make_fakelinux(repo, [])
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    with running_smtpd(settings):
        yield make_brain(settings, engine, repo)


def compared(brain: Brain, job: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison of a kernel that is 10 % faster with its parent, 5 boots a side; the watched
    branch has one of its own beside it."""
    brain.fake.facts = facts  # type: ignore[assignment]
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base)
    (fast,) = add_commits(brain.repo, [FakeCommit(speed=110)])
    brain.poll()
    files = [JobFile(name="pf.yaml", text=JOB + job)]
    number = compare(brain.lab, base, fast, job_files=files)
    brain.run()
    return brain.facts("c", number)


def headline(comparison: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = [row for row in comparison["rows"] if row["metric"] == METRIC]
    return dict(row)


def attempts(brain: Brain, comparison: Mapping[str, Any]) -> list[tuple[int, str | None]]:
    """Number and reason of every attempt at the boots of a comparison."""
    asked = (
        "JOIN orders o ON o.id = a.order_id JOIN want w ON w.order_id = o.id WHERE o.kind = "
        "'boot' AND w.comparison = :c"
    )
    with brain.engine.connect() as conn:
        found = conn.execute(
            sa.text(f"SELECT a.number, a.reason FROM attempt a {asked} ORDER BY o.id, a.number"),
            {"c": int(comparison["id"][1:])},
        )
        return [(row.number, row.reason) for row in found]


def test_a_machine_that_cannot_be_as_demanded_is_tried_twice_and_compared_never(
    brain: Brain,
) -> None:
    comparison = compared(brain, "demand: {governor: performance}\n", GUEST)
    why = "demand not met: governor is unknown in this boot; performance is required"
    row = headline(comparison)
    assert row["verdict"] == "invalid"
    assert row["base"]["mean"] is None and row["head"]["mean"] is None
    assert why in row["reason"]
    assert attempts(brain, comparison) == [(1, f"{why}; repeated"), (2, None)] * 10
    with brain.engine.connect() as conn:
        asked = (
            "FROM run r JOIN boot x ON x.id = r.boot JOIN want w ON w.order_id = x.order_id "
            "LEFT JOIN sample s ON s.run = r.id WHERE w.comparison = :c"
        )
        found = conn.execute(
            sa.text(f"SELECT DISTINCT r.status, r.reason, s.value {asked}"),
            {"c": int(comparison["id"][1:])},
        )
        assert [tuple(row) for row in found] == [("invalid", why, None)]
        (problem,) = [
            problem["text"]
            for problem in read.status(conn)["problems"]
            if "testbox" in problem["text"]
        ]
        assert problem == (
            f"testbox vm-icount: 10 boots of the last day do not count; reason of the last: {why}"
        )


def test_a_fault_of_the_moment_is_gone_at_the_second_attempt(brain: Brain) -> None:
    comparison = compared(brain, 'demand: {host_load1: "<0.5"}\n', Settling(times=1))
    assert headline(comparison)["verdict"] == "better"
    assert headline(comparison)["base"]["boots"] == 5
    assert [number for number, reason in attempts(brain, comparison) if reason] == [1]
