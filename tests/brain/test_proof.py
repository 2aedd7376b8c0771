"""Gates of proof from a culprit to its mail, on a real repository; kernels and testboxes are
simulated."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from swingbot.app.wiring import sync_testboxes
from swingbot.core.proof.gates import GateRow
from swingbot.service.ports import RequestError
from swingbot.service.prove.request_gates import foresee_gates, prove_again
from swingbot.service.tick import tick
from tests.fakes.memory_brain import MemoryBrain, letter_of
from tests.fakes.store.tables import ReportRow

LINK = "Link: https://lore.kernel.org/r/20260101000000.7-{}-dev@example.org"
_DATE = "2026-01-02T00:00:00Z"
_WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", _DATE))
}


def commit(brain: MemoryBrain, subject: str, /, **later: Any) -> str:
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


def watched(brain: MemoryBrain, *testboxes: str, **more: Any) -> None:
    brain.watch(
        brain.base,
        testboxes=list(testboxes) or ["vm-icount"],
        **more,
    )
    brain.run()


def gates(brain: MemoryBrain) -> dict[str, GateRow]:
    with brain.store.transaction() as tx:
        return {gate.gate: gate for gate in tx.gates.of_incident(1)}


def statuses(brain: MemoryBrain) -> dict[str, str]:
    return {name: gate.status for name, gate in gates(brain).items()}


def head_of(brain: MemoryBrain, gate: GateRow) -> str:
    assert gate.comparison is not None
    return brain.head_of(gate.comparison)


def boots_of_head(brain: MemoryBrain, gate: GateRow) -> set[int]:
    """The boots of the measured kernel that this try of a gate has asked for."""
    assert gate.comparison is not None
    db, head = brain.store.db, brain.comparison(gate.comparison).head
    return {
        boot.id
        for boot in db.boots.values()
        if boot.order.variant == head and (boot.order.id, gate.comparison, None) in db.wants
    }


def body(report: ReportRow) -> str:
    return " ".join(str(letter_of(report).get_content()).split())


def test_a_culprit_that_passes_every_gate_is_mailed_with_them(brain: MemoryBrain) -> None:
    commit(brain, "mm: set the stage", note=0, speed=100)
    watched(brain, "vm-icount", "vm-tcg")
    culprit = commit(brain, f"mm: be slow\n\n{LINK.format(2)}", speed=88)
    end = commit(brain, f"mm: finish the series\n\n{LINK.format(3)}", note=1)
    commit(brain, "mm: something else", note=2)
    brain.poll()
    brain.run()
    assert brain.incidents[0].commit == culprit
    found = gates(brain)
    wanted = dict.fromkeys(
        ("reproduced", "tip", "series", "revert", "code", "layout", "facts", "elsewhere"), "pass"
    )
    assert {name: gate.status for name, gate in found.items() if name != "executed"} == wanted, (
        found
    )
    assert "12.0% worse" in found["tip"].reason
    assert "13.6% better" in found["revert"].reason
    assert found["code"].reason == "1 function: do_fault 200 to 188 bytes"
    assert (found["revert"].foreseen or {})["builds"] == 1
    assert len(boots_of_head(brain, found["tip"])) == 3
    (report,) = brain.reports
    assert report.state == "sent"
    words = body(report)
    assert "Passed: reproduced (100% of it in another build layout), tip (100% of it)" in words
    assert "size do_fault: 200 to 188 bytes" in words
    assert "whether reverting the commit" not in words
    orders = [row.order for row in brain.store.db.orders.values()]
    assert {order.priority for order in orders if order.purpose == "gate"} == {32}
    assert head_of(brain, found["series"]) == end
    revert = brain.lab.tools.git.facts(head_of(brain, found["revert"]))
    assert revert.subject == 'Revert "mm: be slow"'
    _asked_again(brain)


def _asked_again(brain: MemoryBrain) -> None:
    """The same incident: fresh boots for a gate, and facts that are not equal any more."""
    before = boots_of_head(brain, gates(brain)["tip"])
    prove_again(brain.lab, 1, ["tip"], "ada@lab")
    with pytest.raises(RequestError, match="tip of i1 is in progress"):
        prove_again(brain.lab, 1, ["tip"], "ada@lab")
    brain.run()
    again = gates(brain)["tip"]
    assert (again.status, again.tries) == ("pass", 2)
    assert not boots_of_head(brain, again) & before
    db, culprit = brain.store.db, brain.incidents[0].commit
    for number, boot in list(db.boots.items()):
        if db.variants[boot.order.variant].commit == culprit:
            db.boots[number] = replace(boot, facts={**boot.facts, "qemu_version": "9.9"})
    prove_again(brain.lab, 1, ["facts"], "ada@lab")
    facts = gates(brain)["facts"]
    assert facts.status == "fail"
    assert "qemu_version" in facts.reason
    assert [cost.answer for cost in foresee_gates(brain.lab, 1, ["facts"])] == [
        f"fail: {facts.reason}"
    ]
    (cost,) = foresee_gates(brain.lab, 1, ["layout"])
    assert (cost.builds, cost.boots) == (0, 6)


def test_a_testbox_whose_file_goes_at_any_stage_fails_no_round(brain: MemoryBrain) -> None:
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
    assert brain.incidents[0].commit == culprit
    found = gates(brain)
    assert (found["tip"].status, found["tip"].reason) == (
        "not run",
        "testbox vm-icount was removed",
    )
    assert (found["facts"].status, found["facts"].reason) == (
        "not run",
        "testbox vm-icount was removed",
    )
    assert found["code"].status == "pass"
    assert [report.state for report in brain.reports] == [
        "held"
    ]  # a person looks at what could not be proved


def test_a_change_that_another_link_order_takes_away_is_no_culprit(brain: MemoryBrain) -> None:
    commit(brain, "mm: set the stage", note=0)
    watched(brain)
    commit(brain, "mm: unlucky", bound=88)
    commit(brain, "mm: something else", note=1)
    brain.poll()
    brain.run()
    assert brain.bisection().status not in ("culprit", "several", "credible_set")
    assert brain.incidents == []
    assert brain.mails == []


def test_a_change_that_hangs_on_the_layout_is_held_after_more_boots(brain: MemoryBrain) -> None:
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
    assert [report.state for report in brain.reports] == ["held"]
    assert "Layout or noise suspected" in body(brain.reports[0])
    assert [c.boots for c in brain.comparisons("attribute")] == [3, 6]
    assert brain.mails == []
    _more_boots_are_lost(brain)


def _more_boots_are_lost(brain: MemoryBrain) -> None:
    """The mail is written from what there was before."""
    db, number = brain.store.db, brain.incidents[0].comparison
    assert number is not None
    lost = replace(db.comparisons[number].comparison, status="failed")
    db.comparisons[number] = replace(db.comparisons[number], comparison=lost)
    for key, report in list(db.reports.items()):
        db.reports[key] = replace(report, state="dropped", withdrawn="for a test")
    for key, sighting in list(db.sightings.items()):
        db.sightings[key] = replace(sighting, report=None)
    brain.run()
    assert len(brain.reports) == 2
    number = brain.incidents[0].comparison
    assert number is not None
    measured = brain.comparison(number)
    assert (measured.boots, measured.status) == (3, "done")


def test_a_change_that_is_gone_at_the_tip_or_stays_without_the_commit_is_held(
    brain: MemoryBrain,
) -> None:
    commit(brain, "mm: set the stage", note=0, speed=100)
    watched(brain)
    culprit = commit(brain, "mm: be slow", speed=88)
    for n in range(3):
        commit(brain, "mm: something else", note=n + 1)
    brain.poll()
    brain.set(proof_gates=("tip", "revert", "elsewhere"), proof_budget_seconds=1.0)
    brain.run()
    found = gates(brain)
    assert brain.incidents[0].commit == culprit
    assert found["code"].reason == "left out by the setting proof.gates"
    assert found["elsewhere"].reason == "only vm-icount runs this job"
    assert found["tip"].status == "not run"
    assert "proof.budget_minutes" in found["tip"].reason
    assert [report.state for report in brain.reports] == ["held"]
    commit(brain, "mm: be fast again", bound=100)
    brain.poll()
    prove_again(brain.lab, 1, ["tip", "revert"], "ada@lab")
    brain.run()
    found = gates(brain)
    assert (found["tip"].status, found["revert"].status) == ("fail", "not run")
    assert "nothing to revert" in found["revert"].reason
    commit(brain, "mm: slow for another reason", bound=88)
    brain.poll()
    prove_again(brain.lab, 1, ["tip", "revert"], "ada@lab")
    brain.run()
    found = gates(brain)
    assert (found["tip"].status, found["revert"].status) == ("pass", "fail"), found


def test_the_culprit_of_a_bisection_by_hand_is_measured_and_proved_when_somebody_asks_for_it(
    brain: MemoryBrain,
) -> None:
    base = commit(brain, "mm: set the stage", note=0, speed=100)
    culprit = commit(brain, "mm: be slow", speed=88)
    tip = commit(brain, "mm: something else", note=2)
    watched(brain, "vm-icount", "vm-tcg")
    number = brain.bisect(good=base, bad=tip, testbox="vm-icount")
    brain.run()
    assert brain.culprit(number) == brain.incidents[0].commit == culprit
    assert gates(brain) == {} and brain.reports == []
    with pytest.raises(RequestError, match="'tipp' is not a valid gate"):
        prove_again(brain.lab, 1, ["tipp"], "ada@lab")
    assert prove_again(brain.lab, 1, [], "ada@lab") == []
    with pytest.raises(RequestError, match="is being measured against its parent"):
        prove_again(brain.lab, 1, [], "ada@lab")
    brain.run()
    found = statuses(brain)
    assert {found[name] for name in ("reproduced", "tip", "revert", "code", "elsewhere")} == {
        "pass"
    }, gates(brain)
    assert [report.incident for report in brain.reports] == [1]
