"""Gates of proof from a culprit to its mail, on a real database and a real repository; kernels
and testboxes are simulated."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.wiring import sync_testboxes
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.ports import RequestError
from swingbot.service.prove.request_gates import foresee_gates, prove_again
from swingbot.service.tick import tick
from swingbot_db import read
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.fakes.loop import METRIC

LINK = "Link: https://lore.kernel.org/r/20260101000000.7-{}-dev@example.org"
_DATE = "2026-01-02T00:00:00Z"
_WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", _DATE))
}


def commit(brain: Brain, subject: str, /, **later: Any) -> str:
    """A commit that says in a file of its own what is so from here on; reverting one does not
    conflict with others."""
    for name, value in later.items():
        (brain.repo / f"{name}.c").write_text(f"{value}\n")
    known = (
        json.loads((brain.repo / "later").read_text()) if (brain.repo / "later").exists() else {}
    )
    (brain.repo / "later").write_text(
        "{\n\n\n"
        + ",\n\n\n".join(f'"{k}": {json.dumps(v)}' for k, v in sorted((known | later).items()))
        + "\n\n\n}\n"
    )
    for words in (("add", "-A", "-f"), ("commit", "-q", "-m", subject)):
        subprocess.run(
            ["git", "-C", str(brain.repo), *words], check=True, env={**os.environ, **_WHO}
        )
    return subprocess.run(
        ["git", "-C", str(brain.repo), "rev-parse", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def watched(brain: Brain, *testboxes: str, **more: Any) -> None:
    brain.watch(
        brain.base,
        testboxes=list(testboxes) or ["vm-icount"],
        **more,
    )
    brain.run()


def gates(brain: Brain, number: int = 1) -> dict[str, dict[str, Any]]:
    with brain.engine.connect() as conn:
        return {gate["gate"]: dict(gate) for gate in read.gates(conn, f"i{number}")}


def statuses(brain: Brain) -> dict[str, str]:
    return {name: gate["status"] for name, gate in gates(brain).items()}


def body(brain: Brain) -> str:
    return " ".join(str(brain.facts("r")["body"]).split())


def test_a_culprit_that_passes_every_gate_is_mailed_with_them(brain: Brain) -> None:
    commit(brain, "mm: set the stage", note=0, speed=100)
    watched(brain, "vm-icount", "vm-tcg")
    culprit = commit(brain, f"mm: be slow\n\n{LINK.format(2)}", speed=88)
    end = commit(brain, f"mm: finish the series\n\n{LINK.format(3)}", note=1)
    commit(brain, "mm: something else", note=2)
    brain.poll()
    brain.run()
    assert brain.facts("i")["culprit"]["commit"] == culprit
    found = gates(brain)
    wanted = dict.fromkeys(
        ("reproduced", "tip", "series", "revert", "code", "layout", "facts", "elsewhere"), "pass"
    )
    assert {name: gate["status"] for name, gate in found.items() if name != "executed"} == wanted, (
        found
    )
    assert "12.0% worse" in found["tip"]["reason"]
    assert "13.6% better" in found["revert"]["reason"]
    assert found["code"]["reason"] == "1 function: do_fault 200 to 188 bytes"
    assert found["revert"]["foreseen"]["builds"] == 1
    assert len(found["tip"]["boots"]["head"]) == 3
    report = brain.facts("r")
    assert report["state"] == "sent"
    assert "Passed: reproduced (100% of it in another build layout), tip (100% of it)" in body(
        brain
    )
    assert "size do_fault: 200 to 188 bytes" in body(brain)
    assert "whether reverting the commit" not in body(brain)
    with brain.engine.connect() as conn:
        heads = {row.gate: row.commit for row in conn.execute(sa.text(_HEADS))}
        assert conn.execute(sa.text(_PRIORITIES)).scalars().all() == [32]
    assert heads["series"] == end
    assert brain.lab.tools.git.facts(heads["revert"]).subject == 'Revert "mm: be slow"'
    _asked_again(brain)


_HEADS = (
    "SELECT g.gate, v.commit FROM incident_gate g JOIN comparison_pair c ON c.id = "
    "g.comparison JOIN variant v ON v.id = c.head"
)
_PRIORITIES = """SELECT DISTINCT o.priority FROM orders o JOIN want w ON w.order_id = o.id
  JOIN comparison c ON c.id = w.comparison
  WHERE c.kind = 'gate' AND o.purpose = 'gate'"""


def _asked_again(brain: Brain) -> None:
    """The same incident: fresh boots for a gate, and facts that are not equal any more."""
    before = gates(brain)["tip"]
    prove_again(brain.lab, 1, ["tip"])
    with pytest.raises(RequestError, match="tip of i1 is in progress"):
        prove_again(brain.lab, 1, ["tip"])
    brain.run()
    again = gates(brain)["tip"]
    assert (again["status"], again["tries"]) == ("pass", 2)
    assert not set(again["boots"]["head"]) & set(before["boots"]["head"])
    with brain.engine.begin() as conn:
        of_culprit = (
            "SELECT kb.image_sha256 FROM incident i JOIN variant v ON v.id = i.culprit JOIN "
            "kernel_build kb USING (build_key)"
        )
        conn.execute(
            sa.text(
                f'UPDATE boot SET facts = facts || \'{{"qemu_version": "9.9"}}\' WHERE '
                f"image_sha256 = ({of_culprit})"
            )
        )
    prove_again(brain.lab, 1, ["facts"])
    facts = gates(brain)["facts"]
    assert facts["status"] == "fail"
    assert "qemu_version" in facts["reason"]
    assert [cost.answer for cost in foresee_gates(brain.lab, 1, ["facts"])] == [
        f"fail: {facts['reason']}"
    ]
    (cost,) = foresee_gates(brain.lab, 1, ["layout"])
    assert (cost.builds, cost.boots) == (0, 6)


def test_a_testbox_whose_file_goes_at_any_stage_fails_no_round(brain: Brain) -> None:
    commit(brain, "mm: set the stage", note=0)
    watched(brain, "vm-icount", "vm-tcg")
    culprit = commit(brain, "mm: be slow", speed=88)
    commit(brain, "mm: something else", note=2)
    brain.poll()
    for _ in range(100):
        for gone in ("vm-icount", "vm-tcg"):
            without = brain.without(gone)
            sync_testboxes(without)
            tick(without)
            sync_testboxes(brain.lab)
        tick(brain.lab)
        if brain.fake.work() == 0 and brain.idle():
            break
    assert brain.facts("i")["culprit"]["commit"] == culprit
    found = gates(brain)
    assert (found["tip"]["status"], found["tip"]["reason"]) == (
        "not run",
        "testbox vm-icount was removed",
    )
    assert (found["facts"]["status"], found["facts"]["reason"]) == (
        "not run",
        "testbox vm-icount was removed",
    )
    assert found["code"]["status"] == "pass"
    assert brain.facts("r")["state"] == "held"  # a person looks at what could not be proved


def test_a_change_that_another_link_order_takes_away_is_no_culprit(brain: Brain) -> None:
    commit(brain, "mm: set the stage", note=0)
    watched(brain)
    commit(brain, "mm: unlucky", bound=88)
    commit(brain, "mm: something else", note=1)
    brain.poll()
    brain.run()
    found = brain.facts("b")
    assert found["status"] not in ("culprit", "several", "credible_set"), found["reason"]
    with brain.engine.connect() as conn:
        assert conn.execute(sa.text("SELECT count(*) FROM incident")).scalar_one() == 0
    assert brain.mails == []


def test_a_change_that_hangs_on_the_layout_is_held_after_more_boots(brain: Brain) -> None:
    # no link order takes it away, the alignment of the functions does
    brain.fake.bound_to = frozenset({"kconfig"})
    brain.fake.same_code, brain.fake.blind = True, frozenset({"vm-tcg"})
    commit(brain, "mm: set the stage", note=0)
    watched(brain, "vm-icount", "vm-tcg")
    commit(brain, "mm: unlucky", bound=88)
    commit(brain, "mm: something else", note=1)
    brain.poll()
    brain.run()
    found = statuses(brain)
    assert {
        name: found[name] for name in ("reproduced", "code", "layout", "elsewhere", "series")
    } == {
        "reproduced": "pass",
        "code": "fail",
        "layout": "fail",
        "elsewhere": "fail",
        "series": "not run",
    }
    assert brain.facts("r")["state"] == "held"
    assert "Layout or noise suspected" in body(brain)
    with brain.engine.connect() as conn:
        boots = (
            conn.execute(
                sa.text("SELECT boots FROM comparison WHERE kind = 'attribute' ORDER BY id")
            )
            .scalars()
            .all()
        )
    assert boots == [3, 6]
    assert brain.mails == []
    _more_boots_are_lost(brain)


def _more_boots_are_lost(brain: Brain) -> None:
    """The mail is written from what there was before."""
    with brain.engine.begin() as conn:
        conn.execute(
            sa.text(
                "UPDATE comparison SET status = 'failed' WHERE id = (SELECT comparison "
                "FROM incident)"
            )
        )
        conn.execute(sa.text("UPDATE report SET state = 'dropped', withdrawn = 'for a test'"))
        conn.execute(sa.text("UPDATE sighting SET report = NULL"))
    brain.run()
    assert len(brain.facts("i")["reports"]) == 2
    with brain.engine.connect() as conn:
        comparison = conn.execute(
            sa.text(
                "SELECT c.boots, c.status FROM incident i JOIN comparison c ON c.id = i.comparison"
            )
        ).one()
    assert tuple(comparison) == (3, "done")


def test_a_change_that_is_gone_at_the_tip_or_stays_without_the_commit_is_held(brain: Brain) -> None:
    commit(brain, "mm: set the stage", note=0, speed=100)
    watched(brain)
    culprit = commit(brain, "mm: be slow", speed=88)
    for n in range(3):
        commit(brain, "mm: something else", note=n + 1)
    brain.poll()
    brain.lab = replace(
        brain.lab,
        settings=replace(
            brain.lab.settings, proof_gates=("tip", "revert", "elsewhere"), proof_budget_seconds=1.0
        ),
    )
    brain.run()
    found = gates(brain)
    assert brain.facts("i")["culprit"]["commit"] == culprit
    assert found["code"]["reason"] == "left out by the setting proof.gates"
    assert found["elsewhere"]["reason"] == "only vm-icount runs this job"
    assert found["tip"]["status"] == "not run"
    assert "proof.budget_minutes" in found["tip"]["reason"]
    assert brain.facts("r")["state"] == "held"
    commit(brain, "mm: be fast again", bound=100)
    brain.poll()
    prove_again(brain.lab, 1, ["tip", "revert"])
    brain.run()
    found = gates(brain)
    assert (found["tip"]["status"], found["revert"]["status"]) == ("fail", "not run")
    assert "nothing to revert" in found["revert"]["reason"]
    commit(brain, "mm: slow for another reason", bound=88)
    brain.poll()
    prove_again(brain.lab, 1, ["tip", "revert"])
    brain.run()
    found = gates(brain)
    assert (found["tip"]["status"], found["revert"]["status"]) == ("pass", "fail"), found


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
    found = gates(brain)
    assert found["reproduced"]["reason"].startswith("not completed after")
    assert found["revert"]["reason"] == "conflict in state.json"
    assert (
        found["series"]["reason"]
        == "no series known: the commit message has no Message-ID of a numbered patch"
    )
    assert brain.facts("r")["state"] == "held"
    assert "whether it is still there at the tip of the branch" in body(brain)
    with brain.engine.connect() as conn:
        assert set(
            conn.execute(sa.text("SELECT status FROM comparison WHERE kind = 'gate'")).scalars()
        ) == {"cancelled"}
    _on_the_command_line(brain)


def test_the_culprit_of_a_bisection_by_hand_is_measured_and_proved_when_somebody_asks_for_it(
    brain: Brain,
) -> None:
    base = commit(brain, "mm: set the stage", note=0, speed=100)
    culprit = commit(brain, "mm: be slow", speed=88)
    tip = commit(brain, "mm: something else", note=2)
    watched(brain, "vm-icount", "vm-tcg")
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=base,
            bad=tip,
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox="vm-icount",
        ),
    )
    brain.run()
    assert (
        brain.facts("b", number)["culprit"]["commit"],
        brain.facts("i")["culprit"]["commit"],
    ) == (culprit, culprit)
    assert gates(brain) == {} and brain.count("report") == 0
    with pytest.raises(RequestError, match="'tipp' is not a valid gate"):
        prove_again(brain.lab, 1, ["tipp"])
    assert prove_again(brain.lab, 1, []) == []
    with pytest.raises(RequestError, match="is being measured against its parent"):
        prove_again(brain.lab, 1, [])
    brain.run()
    found = statuses(brain)
    assert {found[name] for name in ("reproduced", "tip", "revert", "code", "elsewhere")} == {
        "pass"
    }, gates(brain)
    assert brain.facts("r")["incident"] == "i1"


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
