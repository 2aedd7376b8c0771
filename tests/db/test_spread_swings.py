"""A commit of a watched branch that changes how far boots spread: what its page, its feed and the
command line show. The way from the alarm to the commit is in tests/brain/test_detection.py."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.service.detect.screen_tips import screen_tip
from swingbot.service.ports import Tools
from swingbot.web.app import make_app
from swingbot_db import read
from tests import builders as make
from tests.fakes.brain import Brain
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment

QUIET, NOISY = 40, 12  # tips before the change, and from it on
WORDS = "times the spread between boots"


def rows(brain: Brain, sql: str) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(sql)).mappings()]


def page(brain: Brain, tmp_path: Path, path: str) -> str:
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with TestClient(app) as client:
        answer = client.get(path)
        assert answer.status_code == 200
        return str(answer.text)


class _Line:
    """A history without branches."""

    def is_ancestor(self, old: str, new: str) -> bool:
        return True


def a_branch(conn: sa.Connection) -> tuple[int, make.Testbox, list[list[float]]]:
    """Tips with three boots each, the last of them with four times the spread; gives the
    comparison of the last one."""
    rng = np.random.default_rng(8)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn, "vm-tcg")
    sds = [0.01] * QUIET + [0.04] * NOISY
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
    tools = Tools(git=_Line(), artifacts=None, kernels=None)  # type: ignore[arg-type]  # only asked for ancestry
    lab = dataclasses.replace(brain.lab, tools=tools)
    with lab.transaction("screen") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        screen_tip(
            lab.tools.git,
            lab.catalogue,
            lab.settings,
            tx,
            comparison,
            {(testbox.name, make.UNIT_JOB, make.METRIC): tip},
        )


def test_tips_whose_boots_spread_further_are_suspected_and_named(
    brain: Brain, conn: sa.Connection, tmp_path: Path, db_url: str
) -> None:
    number, testbox, boots = a_branch(conn)
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
    with brain.engine.begin() as other:  # as the pairs of its proof leave it
        other.execute(sa.text("UPDATE swing SET evidence = evidence || '{\"spread_ratio\": 3.1}'"))
    for path in ("/", f"/feed/tree/{name}.atom"):
        assert f"3.1 {WORDS}" in page(brain, tmp_path, path)
    row = next(row for row in brain.facts("c", number)["rows"] if row["swing"] == swing["id"])
    assert WORDS in row["evidence"]["alarm"]
