"""A commit of a watched branch that changes how far boots spread: what the tips show, and the way
from an alarm to the commit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.core.model.records import NewSwing
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.ports import Tools
from swingbot.web.app import make_app
from swingbot_db import read
from tests import builders as make
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import brain_environment, running_smtpd

QUIET, NOISY = 40, 12  # tips before the change, and from it on
WORDS = "times the spread between boots"


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def rows(brain: Brain, sql: str) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(sql)).mappings()]


def page(brain: Brain, tmp_path: Path, path: str) -> str:
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        lambda sha256: tmp_path / sha256,
    )
    with TestClient(app) as client:
        answer = client.get(path)
        assert answer.status_code == 200
        return str(answer.text)


class _Line:
    """A history without branches."""

    def is_ancestor(self, old: str, new: str) -> bool:
        return True


def a_branch(conn: sa.Connection, noisy: int) -> tuple[int, make.Testbox, list[list[float]]]:
    """Tips with three boots each, the last `noisy` of them with four times the spread; gives the
    comparison of the last one."""
    rng = np.random.default_rng(8)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn, "vm-tcg")
    sds = [0.01] * QUIET + [0.04] * noisy
    boots = [(1000.0 * np.exp(rng.normal(0.0, sd, 3))).tolist() for sd in sds]
    kernels = [make.a_kernel(conn, tree, n) for n in range(len(boots) + 1)]
    number = 0
    for n, tip in enumerate(boots):
        number = make.a_comparison(conn, tree, kernels[n], kernels[n + 1], [testbox], kind="watch")
        make.a_row(
            conn,
            number,
            testbox,
            base=boots[max(0, n - 1)],
            head=tip,
            verdict="same",
            min_effect_pct=4.0,
        )
    return number, testbox, boots


def judged(brain: Brain, number: int, testbox: make.Testbox, tip: list[float]) -> None:
    """As a round does with a watch comparison that has been judged."""
    tools = Tools(git=_Line(), artifacts=None)  # type: ignore[arg-type]  # only asked for ancestry
    lab = dataclasses.replace(brain.lab, tools=tools)
    with lab.transaction("screen") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        screen_tip(lab, tx, comparison, {(testbox.name, make.UNIT_JOB, make.METRIC): tip})


def test_tips_whose_boots_spread_further_are_suspected_and_named(
    brain: Brain, conn: sa.Connection, tmp_path: Path, db_url: str
) -> None:
    number, testbox, boots = a_branch(conn, NOISY)
    conn.commit()
    judged(brain, number, testbox, boots[-1])
    (swing,) = rows(
        brain, "SELECT s.*, v.id AS variant FROM swing s JOIN variant v ON v.id = s.anchor"
    )
    assert (swing["source"], swing["state"], swing["direction"]) == ("spread", "suspected", "worse")
    assert f"{WORDS} in the last" in swing["evidence"]["alarm"]
    heads = [row["head"] for row in rows(brain, "SELECT head FROM comparison_pair ORDER BY id")]
    assert heads.index(swing["anchor"]) < QUIET  # its boots did not spread further yet
    (found,) = rows(brain, "SELECT * FROM v_tree_findings WHERE kind = 'boots_spread'")
    assert found["times"] > 2
    seen = rows(brain, "SELECT c.id FROM comparison_pair c ORDER BY c.id")
    place = [f"c{row['id']}" for row in seen].index(found["comparison"])
    assert abs(place - QUIET) <= 3
    line = f"times as large from {found['commit'][:12]} on, level unchanged"
    name = rows(brain, "SELECT name FROM tree ORDER BY id DESC LIMIT 1")[0]["name"]
    assert line in page(brain, tmp_path, f"/tree/{name}")
    environment = brain_environment(tmp_path / "state", db_url)
    result = CliRunner().invoke(main, ["tree", "history", name], env=environment)
    assert f"spread between boots: {found['times']:.2g} {line}" in result.output
    result = CliRunner().invoke(main, ["tree", "history", name, "--json"], env=environment)
    (metric,) = json.loads(result.output)
    assert metric["findings"]["boots_spread"]["at"] == place
    assert {"stddev", "boots"} <= metric["levels"][0].keys()
    assert "the spread between boots" in page(brain, tmp_path, "/")


def test_tips_that_spread_alike_are_not_suspected(brain: Brain, conn: sa.Connection) -> None:
    number, testbox, boots = a_branch(conn, 0)
    conn.commit()
    judged(brain, number, testbox, boots[-1])
    assert rows(brain, "SELECT * FROM swing") == []
    assert rows(brain, "SELECT * FROM v_tree_findings") == []


def suspected(brain: Brain, noise: int) -> tuple[str, int]:
    """A branch of three commits, the second of which multiplies the spread between boots by
    `noise`, and an alarm about it; gives that commit and the swing."""
    brain.fake.wobble, brain.fake.steady = 0.01, True
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base, testboxes=["vm-tcg"])
    brain.run()
    add_commits(brain.repo, [FakeCommit()])
    (brain.repo / "later").write_text(json.dumps({"noise": noise}))  # part of the next commit
    culprit, _ = add_commits(brain.repo, [FakeCommit()] * 2)
    brain.poll()
    brain.run()
    with brain.lab.transaction("suspect") as tx:
        (tip,) = [row for row in rows(brain, "SELECT * FROM comparison_pair") if row["id"] == 2]
        row = next(row for row in tx.comparisons.rows(2) if row.headline)
        assert not tx.swings.in_state("suspected", "open", "bisecting", "explained")
        tx.swings.add(
            NewSwing(
                comparison=2,
                testbox=row.testbox,
                unit_job=row.unit_job,
                metric=row.metric,
                direction="worse",
                change_pct=0.1,
                state="suspected",
                source="spread",
                anchor=tip["base"],
                reason="5 times the spread between boots in the last 8 tips",
            )
        )
        (swing,) = tx.swings.in_state("suspected")
    brain.run()
    return culprit, swing.id


def test_a_commit_that_multiplies_the_spread_between_boots_is_named(
    brain: Brain, tmp_path: Path
) -> None:
    culprit, number = suspected(brain, 8)
    (swing,) = [row for row in rows(brain, "SELECT * FROM swing") if row["id"] == number]
    assert swing["evidence"]["answer"] == "accept"
    assert swing["state"] == "explained", brain.facts("b", swing["bisection"])["reason"]
    assert swing["evidence"]["spread_ratio"] > 2
    facts = brain.facts("b", swing["bisection"])
    assert facts["culprit"]["commit"] == culprit
    assert facts["spread_ratio"] > 2
    (mail,) = rows(brain, "SELECT subject, state FROM report WHERE kind = 'first'")
    assert WORDS in mail["subject"]
    assert mail["state"] == "held"  # the gates measure levels, so a person reads it
    for path in ("/", "/feed/tree/fake.atom"):
        assert WORDS in page(brain, tmp_path, path)
    row = next(row for row in brain.facts("c", 2)["rows"] if row["swing"] == number)
    assert WORDS in row["evidence"]["reason"]


def test_pairs_refute_a_spread_that_was_only_the_testbox(brain: Brain) -> None:
    _, number = suspected(brain, 1)
    (swing,) = [row for row in rows(brain, "SELECT * FROM swing") if row["id"] == number]
    assert (swing["state"], swing["evidence"]["answer"]) == ("refuted", "reject")
    assert swing["evidence"]["pairs"] == 32
    assert "not those of the kernel" in swing["evidence"]["reason"]
    assert brain.count("bisection") == 0
