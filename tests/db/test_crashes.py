"""Kill the brain before and after every database commit and every call to the outside: the same
culprit, nothing twice.

The points are numbered by `swingbot.service.checkpoint`; a sample of them is tried on each run.
Which sample is picked depends on the number of points alone. With SWINGBOT_TEST_ALL=1 a brain is
also killed after each of its commits, one life after the other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.adapters.maildir import letters
from swingbot.app.settings import load
from swingbot_db.engine import make_engine
from tests.amount import ALL
from tests.db.crash_points import tried, unhurried
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.mail import brain_environment, running_smtpd

SAMPLE = 6
CULPRIT = 4
COMMITS = [*[FakeCommit()] * (CULPRIT - 1), FakeCommit(speed=88), *[FakeCommit()] * 3]


# Which boots a search asks for may depend on what came back first; that none counts twice or half
# may not.
_TWICE = (
    "SELECT count(*) - count(DISTINCT (image_sha256, testbox, spec, series, purpose, k)) + "
    "count(*) - count(DISTINCT order_id) FROM boot"
)
_HALF = """SELECT count(*) FROM boot b JOIN boot_spec s ON s.sha256 = b.spec
  WHERE (SELECT count(*) FROM run WHERE boot = b.id)
    <> (SELECT sum((j ->> 'runs')::int) FROM jsonb_array_elements(s.unit_jobs) j)"""


def run(repo: Path, base: str, environment: dict[str, str], **more: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "tests.fakes.brain", str(repo), base],
        env={**os.environ, **environment, **more},
    ).returncode


def what_happened(db_url: str) -> dict[str, object]:
    """Everything that must be the same wherever the brain died."""
    engine = make_engine(db_url)
    try:
        with engine.connect() as conn:
            return {
                "culprits": conn.execute(
                    sa.text("SELECT v.commit FROM incident i JOIN variant v ON v.id = i.culprit")
                )
                .scalars()
                .all(),
                "bisections": [
                    tuple(row)
                    for row in conn.execute(sa.text("SELECT status, metric FROM bisection"))
                ],
                "boots counted twice": conn.execute(sa.text(_TWICE)).scalar(),
                "boots without all their runs": conn.execute(sa.text(_HALF)).scalar(),
                "reports": conn.execute(sa.text("SELECT state FROM report")).scalars().all(),
                "leases": conn.execute(sa.text("SELECT count(*) FROM lease")).scalar(),
                "open orders": conn.execute(
                    sa.text(
                        "SELECT count(*) FROM orders WHERE state IN ('waiting', 'ready', 'running')"
                    )
                ).scalar(),
            }
    finally:
        engine.dispose()


def sample(length: int) -> list[int]:
    """An even sample of the points to die at, with a different remainder for each length."""
    step = max(1, length // SAMPLE)
    return list(range(1 + length % step, length + 1, step))


def test_a_brain_killed_at_any_point_comes_to_the_same_end(
    tmp_path: Path, fresh_databases: Callable[[], str]
) -> None:
    repo = tmp_path / "linux"
    base, *made = make_fakelinux(repo, COMMITS)
    log = tmp_path / "points"
    url = fresh_databases()
    environment = brain_environment(tmp_path / "undisturbed", url)
    with running_smtpd(load(environ=environment)):
        assert run(repo, base, environment, SWINGBOT_CRASH_LOG=str(log)) == 0
    expected = what_happened(url)
    assert expected["culprits"] == [made[CULPRIT - 1]]
    assert expected["reports"] == ["sent"]
    length = len(log.read_text().splitlines())
    assert length > 50
    for point in tried(range(1, length + 1), sample(length)):
        url = fresh_databases()
        environment = brain_environment(tmp_path / f"killed-{point}", url)
        settings = load(environ=environment)
        with running_smtpd(settings):
            assert run(repo, base, environment, SWINGBOT_CRASH_AT=str(point)) == -signal.SIGKILL, (
                f"point {point} was not reached"
            )
            assert run(repo, base, environment) == 0
        name = log.read_text().splitlines()[point - 1]
        assert what_happened(url) == expected, f"killed at {name}"
        assert len(letters(settings.maildir)) == 1, f"killed at {name}"


@unhurried
@pytest.mark.skipif(not ALL, reason="takes an hour or more; SWINGBOT_TEST_ALL=1 runs it")
def test_a_brain_killed_after_each_commit_comes_to_the_same_end(
    tmp_path: Path, fresh_databases: Callable[[], str]
) -> None:
    """Each life makes one step. A death before a commit leaves what the death before it left."""
    repo = tmp_path / "linux"
    base, *made = make_fakelinux(repo, COMMITS)
    url = fresh_databases()
    environment = brain_environment(tmp_path / "state", url)
    with running_smtpd(load(environ=environment)):
        lives = subprocess.run(
            [sys.executable, "-m", "tests.fakes.brain", str(repo), base],
            env={**os.environ, **environment, "BRAIN_DIES": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    assert int(lives.split()[-1]) > 100
    happened = what_happened(url)
    assert happened["culprits"] == [made[CULPRIT - 1]]
    assert happened["reports"] == ["sent"]
    assert [happened[f"boots {what}"] for what in ("counted twice", "without all their runs")] == [
        0,
        0,
    ]
    assert (happened["leases"], happened["open orders"]) == (0, 0)
    assert len(letters(load(environ=environment).maildir)) == 1
