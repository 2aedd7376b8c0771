"""A commit of a watched branch that changes how far boots spread: from the tips that show it to the
commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.app.settings import load
from swingbot.core.stats import tip_spreads
from swingbot.web.app import make_app
from swingbot_db import read
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import brain_environment, running_smtpd

QUIET, NOISE = 11, 16  # tips before the change; how many times their spread the boots have after it


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def rows(brain: Brain, sql: str) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(sql)).mappings()]


def push(brain: Brain, count: int = 1) -> list[str]:
    """Commits in one push, until all that follows has been done."""
    made = add_commits(brain.repo, [FakeCommit()] * count)
    brain.poll()
    brain.run()
    return made


def test_a_commit_that_multiplies_the_spread_between_boots_is_named(
    brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some tips fewer, and the same path.
    monkeypatch.setattr(tip_spreads, "SPREAD_TIPS_P", 0.01)
    brain.fake.wobble = 0.005
    brain.watch(brain.lab.git.fetch_branch("base", str(brain.repo), "main"), testboxes=["vm-tcg"])
    brain.run()
    quiet = [push(brain) for _ in range(QUIET)]
    assert not rows(brain, "SELECT * FROM swing WHERE source = 'spread'")
    (brain.repo / "later").write_text(json.dumps({"noise": NOISE}))  # part of the next commit
    noisy = [push(brain)]
    while not rows(brain, "SELECT 1 FROM swing WHERE source = 'spread'"):
        assert len(noisy) < 12, rows(
            brain, "SELECT comparison, direction, change_pct, state, source, evidence FROM swing"
        )
        noisy.append(push(brain))
    (swing,) = rows(
        brain,
        "SELECT s.*, v.commit AS from_commit FROM swing s JOIN variant v ON v.id = s.anchor"
        " WHERE source = 'spread'",
    )
    assert swing["from_commit"] in {commit for tip in quiet for commit in tip}
    assert "times the spread between boots in the last" in swing["evidence"]["alarm"]
    assert (swing["direction"], swing["state"]) == ("worse", "explained")
    assert swing["evidence"]["spread_ratio"] > 2
    facts = brain.facts("b", swing["bisection"])
    assert facts["culprit"]["commit"] == noisy[0][0]
    assert facts["spread_ratio"] > 2
    (mail,) = rows(brain, "SELECT subject, state FROM report WHERE kind = 'first'")
    assert "times the spread between boots" in mail["subject"]
    assert mail["state"] == "held"  # a person reads it: the gates measure levels
    words = "times the spread between boots"
    with TestClient(
        make_app(
            load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
            brain.engine,
            read,
            lambda sha256: tmp_path / sha256,
        )
    ) as client:
        pages = [client.get(path).text for path in ("/", f"/comparison/c{swing['comparison']}")]
        assert all(words in page for page in pages)
        feed = client.get("/feed/tree/fake.atom").text
        assert words in feed
