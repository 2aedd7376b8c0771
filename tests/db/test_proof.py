"""Gates of proof on PostgreSQL: a proof that ran out of time, its pages' rows and its commands."""

from __future__ import annotations

import json
from dataclasses import replace

import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot_db import read
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain


def test_gates_that_take_too_long_are_not_run_and_the_mail_is_written_without_them(
    brain: Brain,
) -> None:
    base = brain.base
    add_commits(brain.repo, [FakeCommit(), FakeCommit(speed=88), FakeCommit()])
    brain.lab = replace(
        brain.lab, settings=replace(brain.lab.settings, proof_deadline_seconds=-1.0)
    )
    brain.watch(base)
    brain.run()
    with brain.engine.connect() as conn:
        found = {gate["gate"]: gate for gate in read.gates(conn, "i1")}
    assert str(found["reproduced"]["reason"]).startswith("not completed after")
    assert found["revert"]["reason"] == "conflict in state.json"
    assert (
        found["series"]["reason"]
        == "no series known: the commit message has no Message-ID of a numbered patch"
    )
    report = brain.facts("r")
    assert report["state"] == "held"
    body = " ".join(str(report["body"]).split())
    assert "whether it is still there at the tip of the branch" in body
    with brain.engine.connect() as conn:
        assert set(
            conn.execute(sa.text("SELECT status FROM comparison WHERE kind = 'gate'")).scalars()
        ) == {"cancelled"}
    _on_the_command_line(brain)


def _on_the_command_line(brain: Brain) -> None:
    def ask(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(
            main,
            words,
            env={
                "SWINGBOT_DB_URL": brain.settings.db.url,
                "SWINGBOT_PATHS_STATE": str(brain.settings.state),
            },
        )
        return done.exit_code, done.output

    assert ask("proof", "show", "i9") == (
        2,
        "swingbot: incident i9 does not exist; `swingbot list incidents` lists all incidents\n",
    )
    assert ask("proof", "run", "i9")[0] == 2
    assert ask("proof", "run", "i1", "--gate", "tipp")[1].startswith(
        "swingbot: 'tipp' is not a valid gate; choose from reproduced, "
    )
    status, shown = ask("proof", "show", "i1")
    assert status == 0 and "conflict in state.json" in shown
    status, cost = ask("proof", "cost", "i1")
    assert status == 0 and "not run: conflict in state.json" in cost
    asked = {
        gate["gate"]: gate
        for gate in json.loads(ask("proof", "run", "i1", "--gate", "layout", "--json")[1])["gates"]
    }
    assert (asked["layout"]["status"], asked["layout"]["tries"], asked["tip"]["tries"]) == (
        "running",
        2,
        1,
    )
