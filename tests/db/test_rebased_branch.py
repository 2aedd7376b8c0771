"""A branch that is rebased, through the whole brain on PostgreSQL: recognised, mended, and what
its page and `swingbot tree show` say of its patches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.web.app import make_app
from swingbot_db import read
from tests.fakes.brain import Brain, make_brain
from tests.fakes.kernels import kept_by
from tests.fakes.loop import METRIC
from tests.fakes.mail import brain_environment, running_smtpd
from tests.fakes.pages import writing_routes
from tests.rebased import FakePatch, RebasedTree


@dataclass(kw_only=True)
class World:
    brain: Brain
    repo: RebasedTree
    environment: dict[str, str]

    def rebuild(self, *patches: FakePatch) -> list[str]:
        self.repo.advance(2)
        commits = self.repo.rebuild(patches)
        self.brain.poll()
        self.brain.run()
        return commits

    def tree(self) -> dict[str, Any]:
        with self.brain.engine.connect() as conn:
            return read.tree(conn, "fake")

    def states(self) -> dict[str, str]:
        return {
            patch["subject"].split("/")[1].split(":")[0]: patch["state"]
            for patch in self.tree()["patches"]
            if patch["state"] != "below"
        }


# A gate's comparison of the same two commits as 64-byte-aligned kernels, with more boots.
_ALIGNED = """
WITH gate AS (
    INSERT INTO comparison (kind, tree, boots, status)
    SELECT 'gate', tree, 30, 'done' FROM comparison WHERE id = :comparison RETURNING id
), kernel AS (
    INSERT INTO variant (tree, commit, subject, tree_hash, kconfig, compiler, build_key, origin)
    SELECT v.tree, v.commit, v.subject, v.tree_hash, v.kconfig || '+align64', v.compiler,
           md5(v.build_key) || md5(v.commit), v.origin
    FROM comparison_arm a JOIN variant v ON v.id = a.variant WHERE a.comparison = :comparison
    RETURNING id, commit
), arm AS (
    INSERT INTO comparison_arm (comparison, arm, name, variant)
    SELECT gate.id, a.arm, a.name, kernel.id
    FROM gate, comparison_arm a JOIN variant v ON v.id = a.variant JOIN kernel USING (commit)
    WHERE a.comparison = :comparison
)
INSERT INTO comparison_row
    (comparison, testbox, spec, unit_job, metric, verdict, change_pct, detail)
SELECT gate.id, testbox, spec, unit_job, metric, 'worse', -99,
       jsonb_set(detail, '{head,boots}', '30')
FROM gate, comparison_row WHERE comparison = :comparison
"""

A, B, C, D, E = (FakePatch(name=name) for name in "abcde")
SLOW, MENDED = FakePatch(name="b", text="speed=0.88"), FakePatch(name="b", text="mended")


@pytest.fixture
def world(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[World]:
    environment = brain_environment(tmp_path / "state", db_url) | {
        "SWINGBOT_PROOF_GATES": "",
        "SWINGBOT_PROOF_REQUIRE": "",
    }
    settings = load(environ=environment)
    repo = RebasedTree(path=tmp_path / "linux")
    base = repo.upstream[-1]
    repo.rebuild([A, SLOW, C, D])
    brain = make_brain(settings, engine, repo.path)
    brain.fake.state = repo.state
    with running_smtpd(settings):
        brain.watch(base, branch="mm-unstable")
        brain.run()
        yield World(brain=brain, repo=repo, environment=environment)


def test_a_culprit_stays_through_rebases_and_is_mended_by_a_new_version(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = world.brain
    assert len(brain.mails) == 1
    first = len(brain.fake.done)
    changed = FakePatch(name="c", text="version 2")
    commits = world.rebuild(A, E, SLOW, changed)
    assert len([kind for kind, _, _ in brain.fake.done[first:] if kind == "boot"]) <= 8
    assert (brain.count("bisection"), brain.count("incident"), len(brain.mails)) == (1, 1, 1)
    assert world.states() == {"a": "same", "e": "new", "b": "same", "c": "changed", "d": "dropped"}
    (event,) = [event for event in brain.facts("i")["history"] if event["act"] == "still"]
    assert event["detail"]["commit"] == commits[2]
    patch = next(p for p in world.tree()["patches"] if p["commit"] == commits[2])
    assert [(one["id"], one["status"], one["part"]) for one in patch["incidents"]] == [
        ("i1", "open", "culprit")
    ]
    assert (patch["position"], patch["number"]) == (5, 3)
    (cost,) = [cost for cost in patch["costs"] if cost["metric"] == METRIC]
    with brain.engine.begin() as conn:
        conn.execute(sa.text(_ALIGNED), {"comparison": int(cost["comparison"][1:])})
    patch = next(p for p in world.tree()["patches"] if p["commit"] == commits[2])
    assert [one for one in patch["costs"] if one["metric"] == METRIC] == [cost]
    assert (cost["verdict"], cost["boots"]) == ("worse", 3)
    assert cost["interval_pct"][0] < cost["change_pct"] < cost["interval_pct"][1]
    assert cost["change_pct"] == pytest.approx(-12.0, abs=0.5)
    _looks_right(world, monkeypatch, commits[2])

    mended = world.rebuild(E, A, MENDED, changed)
    assert brain.facts("i")["status"] == "fixed"
    assert (brain.count("bisection"), len(brain.mails)) == (1, 2)
    assert brain.mails[1].startswith("Re: ")
    assert world.states()["b"] == "changed"
    patch = next(p for p in world.tree()["patches"] if p["commit"] == mended[2])
    assert [(one["id"], one["part"]) for one in patch["incidents"]] == [("i1", "version")]
    assert [cost["verdict"] for cost in patch["costs"]] == ["same"]

    before = len(brain.fake.done)
    world.rebuild(E, A, MENDED, changed)
    assert len([kind for kind, _, _ in brain.fake.done[before:] if kind == "boot"]) <= 6
    assert len(brain.mails) == 2


def _looks_right(world: World, monkeypatch: pytest.MonkeyPatch, culprit: str) -> None:
    """The page and the command say of each patch what became of it and what it costs."""
    settings, engine = world.brain.settings, world.brain.engine
    client = TestClient(
        make_app(
            settings,
            engine,
            read,
            kept_by(ArtifactDirectory(settings.artifacts).open),
            writing_routes(settings, engine),
        )
    )
    page = client.get("/tree/fake").text
    patches = "4 patches: 2 unchanged, 1 changed, 1 new; 1 dropped; the base moved by 2 commits"
    assert patches in page
    for word in ("mm/b: do something", culprit[:12], "/incident/i1", "\u221212.0"):
        assert word in page
    assert "kernel: change" not in page, "what came in below is counted, not listed"
    watched = next(c["comparison"] for c in world.tree()["changes"] if c["kind"] == "rebase")
    assert "still there, i1: " in client.get(f"/comparison/{watched}").text
    assert "still there in fake, branch mm-unstable" in client.get("/incident/i1").text
    for key, value in world.environment.items():
        monkeypatch.setenv(key, value)
    result = CliRunner().invoke(main, ["tree", "show", "fake"])
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.output.splitlines() if culprit[:12] in line]
    assert "i1 open" in line
    assert "12.0% worse (-12.2 .. -11.8 %), 3 boots per kernel" in line
    assert "mm/a:" not in result.output
    assert "mm/a:" in CliRunner().invoke(main, ["tree", "show", "fake", "--all"]).output
    facts = json.loads(CliRunner().invoke(main, ["tree", "show", "fake", "--json"]).output)
    assert [patch["state"] for patch in facts["patches"]] == ["below"] * 2 + [
        "same",
        "new",
        "same",
        "changed",
        "dropped",
    ]
