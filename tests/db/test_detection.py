"""Noise records, anchors and the steps of a branch in the database, on pages and on the command
line. What is decided on them is in tests/brain."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from starlette.testclient import TestClient

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.core.plan.noise import noise_prior
from swingbot.service.detect.measure_noise import measure_noise
from swingbot.service.ports import Tools
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_jobs.contract.unit_job import UnitJob
from tests import builders as make
from tests.fakes.brain import Brain
from tests.fakes.kernels import kept_by
from tests.fakes.mail import brain_environment


def rows(brain: Brain, sql: str, **values: Any) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(sql), values).mappings()]


def a_past(conn: sa.Connection, level: float = 1000.0, kernels: int = 8) -> make.Testbox:
    """Eight kernels with five boots each that have k's in common: shifts of 1 %, boots 0.2 %,
    runs 0.3 %."""
    rng = np.random.default_rng(1)
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    shifts = rng.normal(0.0, 0.01, 5)
    for number in range(kernels):
        kernel = make.a_kernel(conn, tree, number)
        for k in range(5):
            at = level * (1 + 0.05 * number) * math.exp(shifts[k] + rng.normal(0.0, 0.002))
            make.a_boot(
                conn,
                testbox,
                kernel,
                k=k,
                values={
                    make.METRIC: [at * math.exp(rng.normal(0.0, 0.003)) for _ in range(3)],
                    "perf-stat.x": [1.0],
                },
            )
    return testbox


def test_boots_become_noise_records_that_say_where_they_come_from(
    brain: Brain, conn: sa.Connection
) -> None:
    testbox = a_past(conn)
    with brain.lab.transaction("measure") as tx:
        measure_noise(brain.lab.catalogue, tx.noise)
        found = tx.noise.get(testbox.name, make.UNIT_JOB, make.METRIC)
        assert tx.noise.get(testbox.name, make.UNIT_JOB, "perf-stat.x") is None
        assert tx.noise.with_fresh_boots([testbox.name], 1, 0.0) == {}
    assert found is not None
    assert (found.boots, found.runs, found.images) == (40, 120, 8)
    assert found.run.sd == pytest.approx(0.003, rel=0.25)
    assert found.pair.sd == pytest.approx(math.sqrt(0.002**2 + 0.003**2 / 3), rel=0.4)
    assert found.since is not None
    assert noise_prior(found, True).certainty > 10
    (metric,) = [row for row in read.list_metrics(conn) if row["metric"] == make.METRIC]
    assert metric["noise"]["boots"] == 40
    assert metric["noise_pct"] == pytest.approx(1.0, rel=0.6)
    shown = read.testbox(conn, testbox.name)
    assert [row["metric"] for row in shown["noise"]] == [make.METRIC]
    assert shown["noise"][0]["day"]["sd"] is None


def test_metrics_of_bisections_alone_are_folded_by_their_noise_records(
    brain: Brain, conn: sa.Connection, tmp_path: Path
) -> None:
    tree, known = make.a_tree(conn), make.a_testbox(conn)
    job = UnitJob(name="hackbench-1", program="hackbench", params={"iterations": "1"}, runs=2)
    with brain.lab.transaction("spec") as tx:
        spec = tx.specs.add([job])
    testbox = make.Testbox(name=known.name, spec=spec, unit_job=job.name)
    names = ("throughput", "throughput_avg", "throughput_worst")
    for number in range(2):
        kernel = make.a_kernel(conn, tree, number)
        for k in range(3):
            level = [100.0 + k, 101.0 + k]
            values = dict.fromkeys([f"hackbench.{name}" for name in names], level)
            if (number, k) == (1, 2):
                values["hackbench.throughput_worst"] = [50.0, 51.0]
            make.a_boot(conn, testbox, kernel, k=k, values=values)
    with brain.lab.transaction("measure") as tx:
        measure_noise(brain.lab.catalogue, tx.noise)
    assert brain.count("comparison") == 0
    expected = {
        "hackbench.throughput": None,
        "hackbench.throughput_avg": "hackbench.throughput",
        "hackbench.throughput_worst": None,  # one boot contradicts the declaration
    }
    shown = read.testbox(conn, testbox.name)["noise"]
    assert {row["metric"]: row["alias_of"] for row in shown} == expected
    listed = read.list_metrics(conn, {"unit_job": job.name})
    assert {row["metric"]: row["alias_of"] for row in listed} == expected
    view = conn.execute(sa.text("SELECT metric, alias_of FROM v_noise"))
    assert {row.metric: row.alias_of for row in view} == expected
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)})
    app = make_app(
        settings, brain.engine, read, kept_by(lambda sha256: (tmp_path / sha256).open("rb"))
    )
    with TestClient(app) as client:
        for path in (f"/testbox/{testbox.name}", "/metrics"):
            text = client.get(path).text
            assert text.count("hackbench.throughput_avg") == 1, path
            assert '<span class="n">= hackbench.throughput_avg</span>' in text
            assert ">hackbench.throughput_worst</" in text, path


def test_the_page_of_a_testbox_shows_its_noise_and_its_anchors(
    brain: Brain, conn: sa.Connection, tmp_path: Path
) -> None:
    testbox = a_past(conn)
    with brain.lab.transaction("measure") as tx:
        measure_noise(brain.lab.catalogue, tx.noise)
    tree = conn.execute(sa.text("SELECT max(id) FROM tree")).scalar_one()
    kernel = make.a_kernel(conn, tree, 90)
    anchor = make.a_comparison(
        conn, tree, kernel, kernel, [testbox], kind="anchor", reason="moved: <b>everything</b>"
    )
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with TestClient(app) as client:
        page = client.get(f"/testbox/{testbox.name}").text
        facts = client.get(f"/testbox/{testbox.name}.json").json()
        assert client.get(f"/comparison/c{anchor}").status_code == 200
    assert "Noise record" in page
    assert "moved: &lt;b&gt;everything" in page
    assert facts["noise"][0]["run"]["df"] == 80
    assert facts["anchors"][0]["id"] == f"c{anchor}"


def test_the_command_line_shows_and_moves_testboxes(
    brain: Brain, tmp_path: Path, db_url: str
) -> None:
    def swingbot(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(
            main, ["testbox", *words], env=brain_environment(tmp_path / "state", db_url)
        )
        return result.exit_code, result.output

    assert swingbot("quarantine", "vm-tcg", "--reason", "fan is loud")[0] == 0
    assert "fan is loud" in swingbot("list")[1]
    assert swingbot("show", "vm-tcg")[1].startswith("vm-tcg  quarantined: fan is loud")
    assert '"state": "quarantined"' in swingbot("show", "vm-tcg", "--json")[1]
    assert swingbot("resume", "vm-tcg")[0] == 0
    code, output = swingbot("resume", "nowhere")
    assert (code, output.count("\n")) == (2, 1)


def a_branch(conn: sa.Connection, brain: Brain, levels: list[float]) -> tuple[int, make.Testbox]:
    """A tree whose tips measured `levels`, oldest first, as comparisons that are done; gives the
    last one."""
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, n) for n in range(len(levels) + 1)]
    number = 0
    for n, level in enumerate(levels):
        number = make.a_comparison(conn, tree, kernels[n], kernels[n + 1], [testbox], kind="watch")
        before = levels[max(0, n - 1)]
        make.a_row(
            conn, number, testbox, base=(before, before), head=(level, level), verdict="same"
        )
    return number, testbox


def _levels() -> list[float]:
    rng = np.random.default_rng(3)
    return [
        1000.0 * (0.95 if n >= 25 else 1.0) * math.exp(rng.normal(0.0, 0.004)) for n in range(40)
    ]


def test_the_history_of_a_branch_shows_its_steps(
    brain: Brain, conn: sa.Connection, tmp_path: Path, db_url: str
) -> None:
    levels = _levels()
    number, testbox = a_branch(conn, brain, levels)
    _watch_headlines(conn)
    name = rows(brain, "SELECT name FROM tree ORDER BY id DESC LIMIT 1")[0]["name"]
    (seen,) = read.levels(conn, name)
    assert [level["mean"] for level in seen["levels"]] == pytest.approx(levels)
    with pytest.raises(read.NotFound, match="tree 'nowhere' does not exist"):
        read.levels(conn, "nowhere")
    conn.commit()
    environment = brain_environment(tmp_path / "state", db_url)
    result = CliRunner().invoke(main, ["tree", "history", name, "--json"], env=environment)
    (metric,) = json.loads(result.output)
    assert [change["at"] for change in metric["findings"]["changes"]] == [25]
    result = CliRunner().invoke(main, ["tree", "history", name], env=environment)
    tip = seen["levels"][25]
    assert f"step at {tip['commit'][:12]}" in result.output
    _judged(brain, number, (testbox.name, make.UNIT_JOB, make.METRIC), levels[-1])
    (stored,) = read.tree(conn, name)["histories"]
    assert stored["upto"] == f"c{number}"
    named = stored["findings"].pop("tips")
    assert named["25"] == {name: tip[name] for name in ("commit", "comparison")}
    assert stored["findings"] == metric["findings"]
    found = rows(brain, "SELECT * FROM v_tree_findings WHERE kind = 'step'")
    assert [(row["commit"], row["comparison"]) for row in found] == [
        (tip["commit"], tip["comparison"])
    ]
    assert (found[0]["first_commit"], found[0]["last_commit"]) == (tip["commit"], tip["commit"])
    assert found[0]["change_pct"] == pytest.approx(-5.0, abs=0.5)
    assert f"step at {tip['commit'][:12]}" in _page(brain, tmp_path, name)
    culprit = _bisected(brain, tip["commit"])
    result = CliRunner().invoke(main, ["tree", "history", name], env=environment)
    known = f"step at {culprit[:12]}: -4.00 %, 95 % interval -4.20 .. -3.80 % (b1)"
    assert known in result.output
    page = _page(brain, tmp_path, name)
    assert known in page
    assert f"step at {tip['commit'][:12]}" not in page
    (overruled,) = read.tree(conn, name)["histories"][0]["findings"]["changes"]
    assert [found["commits"] for found in overruled["searches"]] == [[culprit]]
    (step,) = rows(brain, "SELECT * FROM v_tree_findings WHERE kind = 'step'")
    assert (step["commit"], step["search"], step["p"]) == (culprit, "b1", None)
    assert (step["change_pct"], step["low_pct"], step["high_pct"]) == (-4.0, -4.2, -3.8)
    with brain.engine.begin() as other:
        other.execute(sa.text('UPDATE tree_history SET findings = \'{"points": 3, "tips": []}\''))
    assert "stored by a different version of swingbot" in _page(brain, tmp_path, name)


# (status of the bisection, its culprits with their places among the tips and sizes, members and
# size of the whole, findings as (kind, places of the first and last commit, size), words)
ENDINGS: Final[dict[str, tuple[str, dict[int, float], list[int], float | None, Any, str]]] = {
    "culprit": ("culprit", {26: -4.0}, [], None, [("step", 26, 26, -4.0)], "step at {26}: -4.00 %"),
    "several": (
        "several",
        {24: -1.0, 26: -4.0},
        [],
        None,
        [("step", 24, 24, -1.0), ("step", 26, 26, -4.0)],
        "step at {24}: -1.00 % (b1); step at {26}: -4.00 % (b1)",
    ),
    "set": (
        "credible_set",
        {},
        [24, 25, 26],
        -4.5,
        [("step", 24, 26, -4.5)],
        "step at one of 3 commits, {24} .. {26}: -4.50 % (b1)",
    ),
    "creep": (
        "creep",
        {},
        [],
        -6.0,
        [("creep", 25, 25, -6.0)],
        "no step at {25}: a gradual drift of -6.00 % (b1)",
    ),
    "not reproduced": (
        "not_reproduced",
        {},
        [],
        0.1,
        [("denied", 25, 25, None)],
        "no step at {25}: fresh boots do not differ (b1)",
    ),
    "refuted": (
        "refuted",
        {},
        [],
        None,
        [("denied", 25, 25, None)],
        "no step at {25}: fresh boots do not differ (c",
    ),
    "another direction": ("culprit", {26: 4.0}, [], None, [("step", 25, 25, -5.0)], "step at {25}"),
    "no answer": ("inconclusive", {}, [25], -4.0, [("step", 25, 25, -5.0)], "step at {25}"),
}


def _searched_branch(
    conn: sa.Connection, brain: Brain
) -> tuple[int, make.Testbox, int, list[make.Kernel]]:
    """A branch with its last comparison and its kernels, the base first."""
    number, testbox = a_branch(conn, brain, _levels())
    _watch_headlines(conn)
    tree = conn.execute(sa.text("SELECT max(id) FROM tree")).scalar_one()
    kernels = [
        make.Kernel(variant=row.id, commit=row.commit, build_key=row.build_key, image="")
        for row in conn.execute(sa.text("SELECT id, commit, build_key FROM variant ORDER BY id"))
    ]
    for old, new in itertools.pairwise(kernels):
        make.a_change(conn, tree, old.commit, new.commit)
    return number, testbox, tree, kernels


def test_the_culprit_in_the_branch_of_a_merge_is_that_of_the_swing(
    brain: Brain, conn: sa.Connection, tmp_path: Path
) -> None:
    number, testbox, tree, kernels = _searched_branch(conn, brain)
    side = [make.a_kernel(conn, tree, f"side {n}") for n in range(3)]

    def found(commit: str, pct: float) -> dict[str, Any]:
        return {"culprits": [{"commit": commit, "change_pct": pct}], "change_pct": pct}

    merge = kernels[26].commit
    over: dict[str, Any] = {"status": "culprit"}
    root = make.a_bisection(
        conn, tree, testbox, kernels[23:31], conclusion=found(merge, -5.0), **over
    )
    inner = {"parent": root, "merged": merge, **over}
    branch = make.a_bisection(
        conn, tree, testbox, side, conclusion=found(side[1].commit, -4.5), **inner
    )
    incident = make.an_incident(conn, tree, side[1], bisections=[branch])
    make.a_swing(conn, number - 14, testbox, change_pct=-5.2, state="explained", bisection=root)
    conn.commit()
    _judged(brain, number, (testbox.name, make.UNIT_JOB, make.METRIC), _levels()[-1])
    name = rows(brain, "SELECT name FROM tree ORDER BY id DESC LIMIT 1")[0]["name"]
    page = _page(brain, tmp_path, name)
    assert f"step at {side[1].commit[:12]}: -4.50 % (b{branch})" in page
    assert f"step at {merge[:12]}" not in page
    with brain.engine.connect() as reading:
        entries = [*read.status(reading)["lately"], *read.tree_news(reading, name)]
    board = rows(brain, "SELECT change_pct, incident FROM v_swings")
    assert {(row["change_pct"], row["incident"]) for row in [*entries, *board]} == {
        (-4.5, f"i{incident}")
    }


@pytest.mark.parametrize("status", ["culprit", "credible_set"])
def test_a_swing_of_several_culprits_in_branches_of_merges_is_one_entry_of_its_own_size(
    brain: Brain, conn: sa.Connection, status: str
) -> None:
    number, testbox, tree, kernels = _searched_branch(conn, brain)
    place = (testbox.name, make.UNIT_JOB, make.METRIC)
    make.a_boot(conn, testbox, make.a_kernel(conn, tree, "x"), values={make.METRIC: [1.0]})
    (name,) = (row["name"] for row in rows(brain, "SELECT name FROM tree ORDER BY id DESC LIMIT 1"))
    merges = [kernels[at].commit for at in (25, 28)]
    root = make.a_bisection(
        conn,
        tree,
        testbox,
        kernels[23:31],
        status="several",
        conclusion={"culprits": [{"commit": merge, "change_pct": -2.5} for merge in merges]},
    )
    for merge in merges:
        side = [make.a_kernel(conn, tree, f"{merge} {n}") for n in range(3)]
        found = {"commit": side[1].commit, "change_pct": -2.5}
        more: dict[str, Any] = {"parent": root, "merged": merge, "status": status}
        conclusion: dict[str, Any] = (
            {"culprits": [found]}
            if status == "culprit"
            else {"members": [found], "change_pct": -2.5}
        )
        make.a_bisection(conn, tree, testbox, side, conclusion=conclusion, **more)
    make.a_swing(conn, number - 14, testbox, change_pct=-5.2, state="explained", bisection=root)
    conn.commit()
    assert len(rows(brain, "SELECT 1 FROM v_searches")) == 2
    with brain.engine.connect() as reading:
        whole = read.status(reading)
        entries = {
            "swings": whole["swings"],
            "lately": whole["lately"],
            "news": read.tree_news(reading, name),
            "history": read.metric_history(reading, name, *place)["swings"],
            "board": rows(brain, "SELECT change_pct FROM v_swings"),
        }
    sizes = {kind: [row["change_pct"] for row in found] for kind, found in entries.items()}
    assert sizes == {kind: [-5.2] for kind in entries}


@pytest.mark.parametrize("name", ENDINGS)
def test_each_ending_of_a_search_overrules_the_tips_everywhere(
    brain: Brain, conn: sa.Connection, tmp_path: Path, db_url: str, name: str
) -> None:
    status, culprits, members, size, expected, sentence = ENDINGS[name]
    number, testbox, tree, kernels = _searched_branch(conn, brain)
    tips = [kernel.commit for kernel in kernels[1:]]  # of the levels
    conclusion = {
        "culprits": [{"commit": tips[at], "change_pct": pct} for at, pct in culprits.items()],
        "members": [{"commit": tips[at]} for at in members],
        "change_pct": size,
    }
    searched = kernels[23:31]  # good is the tip of level 22, bad that of 29
    more: dict[str, Any] = {"change_pct": -5.0, "state": "not_found"}
    if status == "refuted":
        proof = make.a_comparison(conn, tree, searched[0], searched[-1], [testbox], kind="prove")
        evidence = json.dumps({"answer": "reject"})
        more |= {"proof": proof, "state": "refuted", "evidence": evidence}
    else:
        more["bisection"] = make.a_bisection(
            conn, tree, testbox, searched, status=status, conclusion=conclusion
        )
        for at in culprits:
            make.an_incident(conn, tree, kernels[at + 1], bisections=[more["bisection"]])
    make.a_swing(conn, number - 14, testbox, **more)  # the comparison of level 25
    conn.commit()
    _judged(brain, number, (testbox.name, make.UNIT_JOB, make.METRIC), _levels()[-1])
    sentence = re.sub(r"{(\d+)}", lambda match: tips[int(match[1])][:12], sentence)
    tree_name = rows(brain, "SELECT name FROM tree ORDER BY id DESC LIMIT 1")[0]["name"]
    environment = brain_environment(tmp_path / "state", db_url)
    assert (
        sentence in CliRunner().invoke(main, ["tree", "history", tree_name], env=environment).output
    )
    assert sentence in _page(brain, tmp_path, tree_name)
    found = rows(
        brain, "SELECT * FROM v_tree_findings WHERE kind <> 'candidate' ORDER BY change_pct DESC"
    )
    seen = [(row["kind"], row["first_commit"], row["last_commit"]) for row in found]
    assert seen == [(kind, tips[first], tips[last]) for kind, first, last, _ in expected]
    for row, (*_, pct) in zip(found, expected, strict=True):
        assert row["change_pct"] == (None if pct is None else pytest.approx(pct, abs=0.2))
    sizes = [] if expected[0][0] == "denied" else sorted(culprits.values()) or [size or -5.0]
    sizes = [-5.0] if status == "inconclusive" else sizes
    with brain.engine.connect() as reading:
        lately = [row["change_pct"] for row in read.status(reading)["lately"]]
        news = [row["change_pct"] for row in read.tree_news(reading, tree_name)]
    assert sorted(lately) == sizes
    assert set(news) <= set(sizes) and bool(news) == bool(sizes)
    board = rows(brain, "SELECT change_pct FROM v_swings WHERE state <> 'refuted'")
    assert sorted(row["change_pct"] for row in board) == (sizes or [-5.0] * (status != "refuted"))


def _bisected(brain: Brain, tip: str) -> str:
    """A bisection that found a commit between this tip and the one before it; gives the commit."""
    with brain.engine.begin() as conn:
        tree = conn.execute(sa.text("SELECT max(id) FROM tree")).scalar_one()
        commits = conn.execute(sa.text("SELECT commit FROM variant ORDER BY id")).scalars().all()
        for old, new in itertools.pairwise(commits):
            make.a_change(conn, tree, old, new)
        culprit = make.a_kernel(conn, tree, "between")
        at = commits.index(tip)
        row = conn.execute(sa.text("SELECT testbox, unit_job, metric FROM comparison_row LIMIT 1"))
        testbox, unit_job, metric = row.one()
        conn.execute(
            sa.text(
                "INSERT INTO bisection (tree, origin, good, bad, testbox, spec, series, unit_job,"
                " metric, status, conclusion, ended_at)"
                " VALUES (:tree, 'watch', :good, :bad, :testbox,"
                " (SELECT min(sha256) FROM boot_spec), '', :unit_job, :metric, 'culprit',"
                " CAST(:conclusion AS jsonb), now())"
            ),
            {"tree": tree, "good": commits[at - 1], "bad": tip, "testbox": testbox}
            | {"unit_job": unit_job, "metric": metric}
            | {
                "conclusion": json.dumps(
                    {
                        "culprits": [
                            {
                                "commit": culprit.commit,
                                "change_pct": -4.0,
                                "interval_pct": [-4.2, -3.8],
                            }
                        ]
                    }
                )
            },
        )
    return culprit.commit


def _watch_headlines(conn: sa.Connection) -> None:
    detail = json.dumps({"headline": True, "min_effect_pct": 4.0})
    conn.execute(
        sa.text("UPDATE comparison_row SET detail = detail || CAST(:detail AS jsonb)"),
        {"detail": detail},
    )


def _judged(brain: Brain, number: int, key: tuple[str, str, str], level: float) -> None:
    """As a round does with a watch comparison that has been judged."""
    from swingbot.service.detect.screen_tips import screen_tip

    tools = Tools(git=_Line(), artifacts=None, kernels=None)  # type: ignore[arg-type]  # only asked for ancestry
    lab = dataclasses.replace(brain.lab, tools=tools)
    with lab.transaction("screen") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        screen_tip(lab.tools.git, lab.catalogue, lab.settings, tx, comparison, {key: [level] * 3})


def _page(brain: Brain, tmp_path: Path, tree: str) -> str:
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with TestClient(app) as client:
        answer = client.get(f"/tree/{tree}")
        assert answer.status_code == 200
        return str(answer.text)


class _Line:
    """A history without branches."""

    def is_ancestor(self, old: str, new: str) -> bool:
        return True
