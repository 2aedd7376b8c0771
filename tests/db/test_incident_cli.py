"""`swingbot incident` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from swingbot.app.cli import main
from tests import scenario


@pytest.fixture
def lab(
    tmp_path: Path, db_url: str, conn: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> scenario.Lab:
    for key, value in {
        "SWINGBOT_PATHS_STATE": str(tmp_path / "state"),
        "SWINGBOT_DB_URL": db_url,
        "SWINGBOT_USER": "otto",
    }.items():
        monkeypatch.setenv(key, value)
    return scenario.a_lab(conn)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["incident", *words])


def test_an_incident_is_listed_shown_and_decided_about_with_who_and_why(lab: scenario.Lab) -> None:
    assert scenario.SUBJECTS[scenario.CULPRIT] in run("list", "--status", "open").output
    said = run("expected", "i1", "--reason", "traded for latency", "--json")
    assert said.exit_code == 0, said.output
    facts = json.loads(said.output)
    assert facts["status"] == "expected"
    (event,) = facts["history"]
    assert event["who"].startswith("otto@") and event["reason"] == "traded for latency"
    assert json.loads(run("expected", "i1", "--json").output)["history"] == facts["history"], (
        "twice is once"
    )
    shown = run("show", "i1").output
    assert (
        "i1 is expected" in shown and "expected by otto@" in shown and "traded for latency" in shown
    )
    assert run("list", "--status", "open").output.strip() == "(none)"


def test_incidents_are_merged_and_split(lab: scenario.Lab, conn: sa.Connection) -> None:
    other = conn.execute(
        sa.text("SELECT id, commit FROM variant WHERE tree = :t ORDER BY id DESC LIMIT 1"),
        {"t": lab.tree},
    ).one()
    two = conn.execute(
        sa.text("INSERT INTO incident (tree, culprit) VALUES (:t, :v) RETURNING id"),
        {"t": lab.tree, "v": other.id},
    ).scalar_one()
    conn.execute(
        sa.text("INSERT INTO sighting (incident, bisection, culprit) VALUES (:i, :b, :v)"),
        {"i": two, "b": lab.running_bisection, "v": other.id},
    )
    assert "i1 is open and includes i2" in run("merge", "i2", "--into", "i1").output
    assert "i2 is duplicate of i1" in run("duplicate", "i2", "i1").output
    assert run("split", "i2").output.startswith("i2 is open and is a separate incident\n")
    assert run("split", "i1", "--bisection", "b1").exit_code == 2
    run("merge", "i2", "--into", "i1")
    split = run("split", "i1", "--bisection", f"b{lab.running_bisection}").output
    assert split.startswith("i2 is open and is a separate incident\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "i99"), "incident i99 does not exist"),
        (("close", "i99"), "incident i99 does not exist"),
        (("close", "c1"), "an incident has an id such as i5"),
        (("merge", "i1", "--into", "i1"), "into itself"),
        (("fixed-by", "i1", "nothing"), "no commit, tag or branch 'nothing'"),
        (("invalid", "i1", "--reason", "x" * 501), "501 characters"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_status_2(
    lab: scenario.Lab, words: tuple[str, ...], sentence: str
) -> None:
    answer = run(*words)
    assert answer.exit_code == 2
    assert sentence in answer.output
    assert answer.output.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "UPDATE incident SET merged_into = id",
        "UPDATE incident SET status = 'perhaps'",
        "UPDATE incident SET fixed_by = 'HEAD'",
        "UPDATE report SET withdrawn = 'why'",
        "UPDATE sighting SET patch_id = 'x'",
        "UPDATE swing SET source = 'base', anchor = 1",
    ],
)
def test_what_makes_no_sense_is_refused(lab: scenario.Lab, conn: sa.Connection, wrong: str) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        conn.execute(sa.text(wrong))
