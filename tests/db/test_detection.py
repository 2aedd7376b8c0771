"""From a suspicion to a proof: pairs of fresh boots, testboxes that move, creeping branches,
noise records, anchors."""

from __future__ import annotations

import dataclasses
import json
import math
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
from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot.core.model.records import JobFile
from swingbot.core.plan.costs import FULL_SECONDS
from swingbot.core.plan.noise import noise_prior
from swingbot.service.detect.measure_noise import measure_noise
from swingbot.service.lab.set_testboxes import quarantine, resume
from swingbot.service.ports import RequestError, Tools
from swingbot.service.table.plan import plan_table, request_table
from swingbot.service.tick import tick
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_jobs.contract.unit_job import UnitJob
from tests import builders as make
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB, METRIC
from tests.fakes.mail import brain_environment, running_smtpd
from tests.table_requests import compare, comparing


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    make_fakelinux(tmp_path / "linux", [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, tmp_path / "linux")


def commits(brain: Brain, *made: FakeCommit) -> list[str]:
    return add_commits(brain.repo, made)


def rows(brain: Brain, sql: str, **values: Any) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(sql), values).mappings()]


def swing(brain: Brain, number: int = 1) -> dict[str, Any]:
    return rows(brain, "SELECT * FROM swing WHERE id = :n", n=number)[0]


def watch_and_move(brain: Brain, *made: FakeCommit, **more: Any) -> list[str]:
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"), **more)
    brain.run()
    hashes = commits(brain, *made)
    brain.poll()
    brain.run()
    return hashes


def test_a_swing_is_proven_by_fresh_pairs_which_the_bisection_begins_with(brain: Brain) -> None:
    watch_and_move(brain, *[FakeCommit()] * 3, FakeCommit(speed=90), *[FakeCommit()] * 3)
    found = swing(brain)
    assert (found["state"], found["source"], found["evidence"]["answer"]) == (
        "explained",
        "base",
        "accept",
    )
    (proof,) = rows(brain, "SELECT * FROM comparison WHERE kind = 'prove'")
    assert proof["id"] == found["proof"]
    assert proof["first_k"] == brain.lab.settings.watch_boots  # not the boots that raised the alarm
    assert proof["boots"] <= 4
    history = rows(brain, "SELECT DISTINCT k FROM bisection_want WHERE phase = 'history'")
    assert {row["k"] for row in history} == set(
        range(proof["first_k"], proof["first_k"] + proof["boots"])
    )
    learnt = rows(
        brain,
        (
            "SELECT count(*) AS n FROM observation JOIN bisection_want w USING (bisection, "
            "idx, k) WHERE w.phase = 'history'"
        ),
    )
    assert learnt[0]["n"] == 2 * proof["boots"]
    shown = next(row for row in brain.facts("c", found["comparison"])["rows"] if row["proof"])
    assert shown["proof"] == f"c{proof['id']}"


def test_of_several_jobs_only_the_one_that_swung_is_booted_for_proof(brain: Brain) -> None:
    other = JobFile(name="other.yaml", text=JOB.text.replace("128M", "256M"))
    made = watch_and_move(
        brain,
        *[FakeCommit()] * 2,
        FakeCommit(speed=88),
        *[FakeCommit()] * 4,
        job_files=[JOB, other],
    )
    assert len([row for row in brain.facts("c", 2)["rows"] if row["headline"]]) == 2
    of_proof = (
        "JOIN comparison_part p ON p.comparison = c.id JOIN boot_spec s ON s.sha256 = p.spec "
        "WHERE kind = 'prove'"
    )
    (proof,) = rows(brain, f"SELECT c.*, s.unit_jobs FROM comparison c {of_proof}")
    assert len(proof["unit_jobs"]) == 1
    assert (proof["first_k"], proof["boots"] <= 4) == (0, True)
    assert brain.facts("b")["culprit"]["commit"] == made[2]
    # The bisection begins with the pairs, and asks for no boot of an end that they were.
    asked = rows(brain, "SELECT DISTINCT phase FROM bisection_want WHERE idx = 0")
    assert "history" in {row["phase"] for row in asked}
    assert {row["state"] for row in rows(brain, "SELECT state FROM swing")} == {"explained"}


def test_a_testbox_that_moved_is_no_swing(brain: Brain) -> None:
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
    brain.run()
    brain.fake.level = 0.9
    commits(brain, FakeCommit(), FakeCommit())
    brain.poll()
    brain.run()
    comparison = brain.facts("c", 2)
    # the base's shared boots are older than the move
    assert [row["verdict"] for row in comparison["rows"] if row["headline"]] == ["worse"]
    assert (swing(brain)["state"], swing(brain)["evidence"]["answer"]) == ("refuted", "reject")
    assert brain.count("bisection") == 0
    assert brain.mails == []


def test_an_alarm_that_was_none_makes_the_testbox_boot_its_anchor(brain: Brain) -> None:
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
    for _ in range(3):
        brain.run()
        idle(brain)
    assert {
        row["status"] for row in rows(brain, "SELECT status FROM comparison WHERE kind = 'anchor'")
    } == {"done"}
    brain.fake.level = 0.9
    commits(brain, FakeCommit(), FakeCommit())
    brain.poll()
    brain.run()
    assert swing(brain)["state"] == "refuted"
    assert rows(brain, "SELECT state, reason FROM testbox WHERE name = 'vm-icount'")[0][
        "reason"
    ].startswith("moved: ")


def test_shared_boots_of_an_older_testbox_are_made_afresh(brain: Brain) -> None:
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
    brain.run()
    brain.fake.level, brain.fake.facts = 0.9, {"qemu_version": "9.2"}
    commits(brain, FakeCommit())
    brain.poll()
    brain.run()
    (row,) = [row for row in brain.facts("c", 2)["rows"] if row["headline"]][:1]
    assert row["verdict"] == "same"
    assert brain.facts("c", 2)["first_k"] == brain.lab.settings.watch_boots
    assert brain.count("swing") == 0


def test_an_unclear_row_of_a_tip_is_booted_more_within_the_budget(brain: Brain) -> None:
    brain.fake.wobble = 0.02
    watch_and_move(brain, FakeCommit(speed=93), testboxes=["vm-tcg"])
    boots = rows(brain, "SELECT boots FROM comparison WHERE kind = 'watch'")
    assert max(row["boots"] for row in boots) > brain.lab.settings.watch_boots
    assert max(row["boots"] for row in boots) <= 12


def test_on_a_noisy_testbox_the_pairs_are_the_bisections_own(brain: Brain) -> None:
    brain.fake.wobble = 0.004
    made = watch_and_move(
        brain, *[FakeCommit()] * 2, FakeCommit(speed=80), *[FakeCommit()] * 2, testboxes=["vm-tcg"]
    )
    (bisection,) = rows(brain, "SELECT series FROM bisection")
    assert bisection["series"] == f"c{swing(brain)['proof']}"
    assert brain.facts("b")["culprit"]["commit"] == made[2]


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
        measure_noise(brain.lab, tx)
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
        measure_noise(brain.lab, tx)
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
    app = make_app(settings, brain.engine, read, lambda sha256: (tmp_path / sha256).open("rb"))
    with TestClient(app) as client:
        for path in (f"/testbox/{testbox.name}", "/metrics"):
            text = client.get(path).text
            assert text.count("hackbench.throughput_avg") == 1, path
            assert '<span class="n">= hackbench.throughput_avg</span>' in text
            assert text.count(">hackbench.throughput_worst</") == 1, path


def test_the_page_of_a_testbox_shows_its_noise_and_its_anchors(
    brain: Brain, conn: sa.Connection, tmp_path: Path
) -> None:
    testbox = a_past(conn)
    with brain.lab.transaction("measure") as tx:
        measure_noise(brain.lab, tx)
    tree = conn.execute(sa.text("SELECT max(id) FROM tree")).scalar_one()
    kernel = make.a_kernel(conn, tree, 90)
    anchor = make.a_comparison(
        conn, tree, kernel, kernel, [testbox], kind="anchor", reason="moved: <b>everything</b>"
    )
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        lambda sha256: tmp_path / sha256,
    )
    with TestClient(app) as client:
        page = client.get(f"/testbox/{testbox.name}").text
        facts = client.get(f"/testbox/{testbox.name}.json").json()
        assert client.get(f"/comparison/c{anchor}").status_code == 200
    assert "Noise record" in page
    assert "moved: &lt;b&gt;everything" in page
    assert facts["noise"][0]["run"]["df"] == 80
    assert facts["anchors"][0]["id"] == f"c{anchor}"


def test_a_bisection_keeps_the_noise_it_began_with(brain: Brain) -> None:
    watch_and_move(brain, *[FakeCommit()] * 3, FakeCommit(speed=90), *[FakeCommit()] * 3)
    (row,) = rows(brain, "SELECT terms FROM bisection")
    assert set(row["terms"]["noise"]) >= {"sd_run", "sd_boot", "sd_layout", "certainty"}


def test_compare_says_what_it_can_resolve_once_there_is_a_record(brain: Brain) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    made = commits(brain, FakeCommit(), FakeCommit())
    brain.watch(base)
    request = comparing(base, made[0], boots=6)
    request_table(brain.lab, request)
    (before,) = plan_table(brain.lab, request).cost.resolves
    assert before.sentence.endswith(": its noise on this testbox is unknown")
    brain.run()
    measured = sa.text("UPDATE boot SET origin = 'measured'")
    with brain.engine.begin() as conn:
        conn.execute(measured)
    tick(brain.lab)
    (after,) = plan_table(brain.lab, request).cost.resolves
    assert "6 boots a side resolve" in after.sentence
    assert after.resolves_pct is not None
    assert after.wanted_pct is not None
    assert (after.needs is not None and after.needs <= 6) == (
        after.resolves_pct <= after.wanted_pct
    )


def test_a_comparison_foresees_a_full_build_where_no_work_tree_stands_and_a_small_one_after(
    brain: Brain,
) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    first, second = commits(brain, FakeCommit(), FakeCommit())
    brain.watch(base)

    def asked(old: str, new: str) -> list[float]:
        number = compare(brain.lab, old, new)
        sides = [brain.facts("c", number)[f"{side}_variant"] for side in ("base", "head")]
        assert (brain.facts("c", number)["eta_seconds"] is None) == (brain.count("boot") == 0)
        with brain.lab.transaction("read") as tx:
            found = tx.builds.forecasts([side["build_key"] for side in sides])
        return [found[side["build_key"]] for side in sides if side["build"] is None]

    full, step = asked(base, first)
    assert full == FULL_SECONDS
    assert step < 0.1 * FULL_SECONDS
    brain.run()
    with brain.engine.begin() as conn:
        conn.execute(sa.text("UPDATE boot SET origin = 'measured'"))
    (third,) = commits(brain, FakeCommit())
    brain.poll()
    (after,) = asked(second, third)
    assert after < 0.1 * FULL_SECONDS


def test_builds_that_the_loop_orders_are_foreseen(brain: Brain) -> None:
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
    tick(brain.lab)
    with brain.lab.transaction("read") as tx:
        keys = {order.build_key for order in tx.orders.open() if order.kind == "build"}
        assert keys
        assert tx.builds.forecasts(keys).keys() == keys
        assert FULL_SECONDS in tx.builds.forecasts(keys).values()


def idle(brain: Brain) -> None:
    """Let the testboxes have had nothing to do for an hour."""
    with brain.engine.begin() as conn:
        conn.execute(
            sa.text(
                "UPDATE orders SET ended_at = ended_at - interval '1 hour' WHERE "
                "ended_at IS NOT NULL"
            )
        )


def test_an_idle_testbox_boots_its_anchor_and_one_that_moved_is_quarantined_until_it_is_well(
    brain: Brain,
) -> None:
    watch_and_move(brain, FakeCommit())

    def anchor() -> dict[str, Any]:
        idle(brain)
        brain.run()
        return rows(brain, "SELECT * FROM comparison WHERE kind = 'anchor' ORDER BY id DESC")[0]

    def state() -> tuple[str, str | None]:
        row = rows(brain, "SELECT state, reason FROM testbox WHERE name = 'vm-icount'")[0]
        return row["state"], row["reason"]

    for _ in range(3):
        assert anchor()["status"] == "done"
    assert state() == ("active", None)
    brain.fake.level = 0.9
    sick = anchor()
    assert sick["reason"].startswith("moved: ")
    assert state()[0] == "quarantined"
    assert f"c{sick['id']}" in (state()[1] or "")
    made = commits(brain, FakeCommit())
    brain.poll()
    for _ in range(4):
        tick(brain.lab)
        brain.fake.work()
    # they wait
    assert (
        rows(brain, "SELECT count(*) AS n FROM orders WHERE kind = 'boot' AND state = 'ready'")[0][
            "n"
        ]
        > 0
    )
    brain.fake.level = 1.0
    idle(brain)
    brain.run()
    assert state() == ("active", None)
    assert made


def test_an_operator_takes_a_testbox_out_and_lets_it_work_again(brain: Brain) -> None:
    quarantine(brain.lab.transaction, "vm-icount", "smells of smoke")
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    commits(brain, FakeCommit())
    brain.watch(base)
    for _ in range(4):
        tick(brain.lab)
        brain.fake.work()
    assert not [done for done in brain.fake.done if done[0] == "boot"]
    resume(brain.lab.transaction, "vm-icount")
    brain.run()
    assert [done for done in brain.fake.done if done[0] == "boot"]
    with pytest.raises(RequestError, match="testbox 'toaster' does not exist; choose from"):
        resume(brain.lab.transaction, "toaster")


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


def test_small_steps_that_add_up_are_suspected_against_an_older_tip(
    brain: Brain, conn: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    levels = [1000.0 * math.exp(-0.0025 * n + rng.normal(0.0, 0.002)) for n in range(40)]
    number, testbox = a_branch(conn, brain, levels)
    _watch_headlines(conn)
    _judged(brain, number, (testbox.name, make.UNIT_JOB, make.METRIC), levels[-1])
    (found,) = rows(
        brain,
        (
            "SELECT s.source, s.state, s.change_pct, s.anchor, v.subject FROM swing s JOIN "
            "variant v ON v.id = s.anchor"
        ),
    )
    assert (found["source"], found["state"]) == ("creep", "suspected")
    assert found["change_pct"] < -4


def test_the_history_of_a_branch_shows_its_steps(
    brain: Brain, conn: sa.Connection, tmp_path: Path, db_url: str
) -> None:
    rng = np.random.default_rng(3)
    levels = [
        1000.0 * (0.95 if n >= 25 else 1.0) * math.exp(rng.normal(0.0, 0.004)) for n in range(40)
    ]
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
    found = rows(brain, "SELECT kind, commit, comparison, change_pct FROM v_tree_findings")
    assert [(row["kind"], row["commit"], row["comparison"]) for row in found] == [
        ("step", tip["commit"], tip["comparison"])
    ]
    assert found[0]["change_pct"] == pytest.approx(-5.0, abs=0.5)
    assert f"step at {tip['commit'][:12]}" in _page(brain, tmp_path, name)
    with brain.engine.begin() as other:
        other.execute(sa.text('UPDATE tree_history SET findings = \'{"points": 3, "tips": []}\''))
    assert "stored by a different version of swingbot" in _page(brain, tmp_path, name)


def _watch_headlines(conn: sa.Connection) -> None:
    detail = json.dumps({"headline": True, "min_effect_pct": 4.0})
    conn.execute(
        sa.text("UPDATE comparison_row SET detail = detail || CAST(:detail AS jsonb)"),
        {"detail": detail},
    )


def _judged(brain: Brain, number: int, key: tuple[str, str, str], level: float) -> None:
    """As a round does with a watch comparison that has been judged."""
    from swingbot.service.detect.screen_tips import screen_tip

    tools = Tools(git=_Line(), artifacts=None)  # type: ignore[arg-type]  # only asked for ancestry
    lab = dataclasses.replace(brain.lab, tools=tools)
    with lab.transaction("screen") as tx:
        comparison = tx.comparisons.get(number)
        assert comparison is not None
        screen_tip(lab, tx, comparison, {key: [level] * 3})


def _page(brain: Brain, tmp_path: Path, tree: str) -> str:
    app = make_app(
        load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}),
        brain.engine,
        read,
        lambda sha256: tmp_path / sha256,
    )
    with TestClient(app) as client:
        answer = client.get(f"/tree/{tree}")
        assert answer.status_code == 200
        return str(answer.text)


class _Line:
    """A history without branches."""

    def is_ancestor(self, old: str, new: str) -> bool:
        return True


@pytest.mark.parametrize(
    ("spread", "verdict", "words"),
    [(None, "unclear", "in 3.1 %"), (0.01, "worse", ""), (0.12, "unclear", "noise record")],
)
def test_the_noise_record_says_what_three_boots_on_a_noisy_testbox_prove(
    brain: Brain, spread: float | None, verdict: str, words: str
) -> None:
    """-20 %: two modes that spread boots by 12 % explain it, those of 1 % do not."""
    brain.fake.wobble = 0.003
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    same, head = commits(brain, FakeCommit(), FakeCommit(speed=80))
    brain.watch(base, testboxes=["vm-tcg"])
    request = comparing(base, head, boots=3)
    before = compare(brain.lab, base, same, boots=3)
    brain.run()
    (row,) = [row for row in brain.facts("c", before)["rows"] if row["headline"]]
    with brain.engine.connect() as conn:  # a record is made of boots
        through = conn.execute(sa.text("SELECT max(id) FROM boot")).scalar_one()
    if spread is not None:
        record = NoiseRecord(boot_mean=Spread(sd=spread, df=30.0), boots=45)
        with brain.lab.transaction("note") as tx:
            tx.noise.put("vm-tcg", row["unit_job"], METRIC, record, through=through)
        (planned,) = plan_table(brain.lab, request).cost.resolves
        assert planned.resolves_pct is not None
        assert planned.resolves_pct > 200 * spread  # 2.7 spreads and more
    number = request_table(brain.lab, request).number
    brain.run()
    found = {row["verdict"] for row in brain.facts("c", number)["rows"] if row["headline"]}
    assert found == {verdict}
    reasons = [row["reason"] for row in brain.facts("c", number)["rows"] if row["headline"]]
    assert all(words in (reason or "") for reason in reasons)
