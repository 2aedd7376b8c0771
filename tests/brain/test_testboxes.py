"""Testboxes that fail, are new or have changed: what goes on elsewhere, what must be screened, and
mails that come once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from swingbot.core.model.records import OpenOrder
from swingbot.service.lab.set_testboxes import drain, quarantine, resume
from swingbot.service.lab.watch_testboxes import SETTLE_SECONDS
from swingbot.service.result.reparse import ReparseRequest, reparse
from tests.db.racks import compared, fail, turn, workers
from tests.fakelinux import FakeCommit
from tests.fakes.loop import JOB, METRIC, plain
from tests.fakes.memory_brain import MemoryBrain, make_memory_brain
from tests.table_requests import compare


@pytest.fixture
def brain(tmp_path: Path, request: pytest.FixtureRequest) -> MemoryBrain:
    """rack7 and rack8 are interchangeable; their results count after so many anchor boots."""
    made = make_memory_brain(
        tmp_path,
        [FakeCommit()],
        PATHS_WORKERS=str(workers(tmp_path / "workers", rack7="rack", rack8="rack")),
        TESTBOXES_SCREENING_BOOTS=str(getattr(request, "param", 0)),
    )
    clock = replace(made.lab.clock, listening=lambda: SETTLE_SECONDS, awake=lambda: 1e9)
    return replace(made, lab=replace(made.lab, clock=clock))


def ready_again(brain: MemoryBrain) -> None:
    """Skip the pause between two attempts, and dispatch."""
    attempts = brain.store.db.attempts
    for number, row in list(attempts.items()):
        if row.ended_at is not None:
            attempts[number] = replace(row, ended_at=row.ended_at - timedelta(hours=1))
    turn(brain)


def state(brain: MemoryBrain, name: str = "rack7") -> tuple[str, str | None]:
    with brain.store.transaction() as tx:
        return tx.testboxes.reasons()[name]


def phase(brain: MemoryBrain, name: str = "rack7") -> str:
    return brain.store.db.testbox_statuses[name].status.state


def failures(brain: MemoryBrain, name: str = "rack7") -> int:
    return brain.store.db.testbox_statuses[name].status.failures


def screening(brain: MemoryBrain, name: str = "rack7") -> tuple[bool, int]:
    """Whether it is screened, and how many anchor boots it has."""
    with brain.store.transaction() as tx:
        found = tx.testboxes.screenings([name])[name]
    return found.screened, found.boots


def history(brain: MemoryBrain, name: str = "rack7") -> set[str]:
    return {event.why for event in brain.store.db.events.values() if event.testbox == name}


def sent(brain: MemoryBrain) -> list[str]:
    brain.send()
    return [subject.removeprefix("[swingbot] ") for subject in brain.mails]


def open_orders(brain: MemoryBrain) -> list[OpenOrder]:
    with brain.store.transaction() as tx:
        return list(tx.orders.open())


def boots(brain: MemoryBrain, name: str = "rack7") -> int:
    return sum(boot.order.testbox == name for boot in brain.store.db.boots.values())


def test_failures_in_a_row_quarantine_a_testbox_and_its_order_goes_on_elsewhere(
    brain: MemoryBrain,
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    for _ in range(2):
        fail(brain)
        ready_again(brain)
        assert phase(brain) == "leased"
    fail(brain)
    assert state(brain) == (
        "quarantined",
        "failed: 3 attempts in a row were lost to the testbox or its controller; the "
        "last: the disk is full",
    )
    assert sent(brain) == ["testbox rack7 is quarantined"]
    brain.run()
    number = int(name[1:])
    assert brain.comparison(number).status == "done"
    assert {row.testbox for row in brain.rows(number)} == {"rack8"}
    assert f"rack8 of its group takes over comparison {name}" in history(brain)
    assert open_orders(brain) == []
    resume(brain.lab.transaction, "rack7")
    turn(brain)
    assert (phase(brain), failures(brain)) == ("idle", 0)
    assert sorted(sent(brain)) == [
        "over: testbox rack7 is back in service",
        "testbox rack7 is quarantined",
    ]


def test_a_bisection_its_proof_and_its_mail_go_on_at_another_testbox(brain: MemoryBrain) -> None:
    base = brain.base
    made = brain.commit(*plain(1), FakeCommit(speed=88), *plain(4))
    brain.watch(base, testboxes=["rack7"])
    brain.bisect(good=base, bad=made[-1], testbox="rack7", job_files=[JOB], tree=None)
    for _ in range(6):
        turn(brain)
        brain.fake.work()
    before = boots(brain)
    assert before > 0
    quarantine(brain.lab.transaction, "rack7", "failed: the power is off")
    brain.fake.work()
    brain.run()
    assert (brain.bisection().status, brain.culprit()) == ("culprit", made[1])
    (culprit,) = brain.conclusion()["culprits"]
    assert culprit["change_pct"] == pytest.approx(-12, abs=0.2)
    (mail,) = [subject for subject in brain.mails if made[1][:12] in subject]
    assert f"{METRIC} 12.0% worse" in mail
    assert boots(brain) <= before + 1, "what was under way ended there"
    assert "rack8 of its group takes over boots of bisection b1" in history(brain)
    assert open_orders(brain) == []


def test_a_virtual_testbox_is_not_quarantined_for_what_its_host_lacks(brain: MemoryBrain) -> None:
    compared(brain, "vm-tcg")
    turn(brain)
    for _ in range(3):
        fail(brain)
        ready_again(brain)
    assert state(brain, "vm-tcg")[0] == "active"


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_a_new_testbox_votes_after_its_screening_and_a_changed_one_after_another(
    brain: MemoryBrain,
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    assert (phase(brain), screening(brain)) == ("leased", (False, 0))
    brain.fake.work()
    turn(brain)
    assert (phase(brain), screening(brain)) == ("leased", (False, 1))
    db = brain.store.db
    of_rack7 = {boot.order.id for boot in db.boots.values() if boot.order.testbox == "rack7"}
    wanted = {c for order, c, _ in db.wants if order in of_rack7 and c is not None}
    assert {brain.comparison(number).kind for number in wanted} == {"anchor"}
    brain.run()
    assert screening(brain)[0]
    assert "screened: 3 anchor boots gave its noise record" in history(brain)
    assert brain.comparison(int(name[1:])).status == "done"
    for microcode, screened in (("0x1", True), ("0x2", False)):  # known better; changed
        for number, boot in list(db.boots.items()):
            db.boots[number] = replace(boot, facts={**boot.facts, "microcode": microcode})
        turn(brain)
        assert screening(brain)[0] == screened
    assert screening(brain) == (False, 0)
    assert "its hardware changed: microcode 0x1 -> 0x2; it is screened again" in history(brain)


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_a_testbox_on_which_its_anchor_does_not_come_up_is_not_let_to_vote(
    brain: MemoryBrain,
) -> None:
    name = compared(brain, "rack7")
    drain(brain.lab.transaction, "rack8", "its twin is away")
    brain.fake.dead = True
    brain.rounds(6)
    assert state(brain)[1] == "screening: 0 of 3 anchor boots came up"
    assert sent(brain) == ["testbox rack7 is quarantined"]
    resume(brain.lab.transaction, "rack7")
    brain.fake.dead = False
    brain.run()
    assert (brain.comparison(int(name[1:])).status, screening(brain)[0]) == ("done", True)


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_boots_in_a_row_that_do_not_come_up_make_a_testbox_boot_its_anchor(
    brain: MemoryBrain,
) -> None:
    compared(brain, "rack7")
    brain.run()
    anchors = len(brain.comparisons("anchor"))
    brain.fake.dead = True
    base = brain.base
    brain.commit(*plain(2))
    compare(brain.lab, base, brain.base, job_files=[JOB], testboxes=["rack7"], boots=2)
    brain.rounds(8)
    assert len(brain.comparisons("anchor")) == anchors + 1
    assert (state(brain)[1] or "").startswith("moved: the anchor kernel no longer gives results")
    assert sent(brain) == ["testbox rack7 has drifted"]


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_a_kernel_that_sees_half_of_the_machine_claims_nothing_and_leaves_the_machine_alone(
    brain: MemoryBrain,
) -> None:
    compared(brain, "rack7")
    brain.fake.facts |= {"nr_cpu": 1, "memory_kb": 1_000_000}
    brain.run()
    base = brain.base
    brain.commit(*plain(2))
    brain.fake.facts |= {"memory_kb": 500_000}
    asked = compare(brain.lab, base, brain.base, job_files=[JOB], testboxes=["rack7"], boots=2)
    for _ in range(8):
        brain.rounds(2)
        ready_again(brain)
    runs = [run for run in brain.store.db.runs.values() if run.status == "invalid"]
    assert {run.reason for run in runs} == {
        "the kernel sees 488 of 1024 MiB of memory of testbox rack7, and other kernels saw all, so"
        " this kernel or its configuration lacks them (CONFIG_NR_CPUS, NUMA, X2APIC)"
    }
    assert not any(run.samples for run in runs)
    assert brain.comparison(asked).status == "done" and not brain.store.db.swings
    assert (state(brain)[0], screening(brain)[0], failures(brain)) == ("active", True, 0)
    assert not any("hardware changed" in why for why in history(brain))
    # A corrected parser does not make them valid, but a corrected testbox file does.
    reread = reparse(brain.lab, ReparseRequest(again=True, dry_run=True))
    assert reread.runs >= len(runs) and reread.changed == 0, reread.listed
    testboxes = brain.lab.catalogue.testboxes
    smaller = replace(testboxes.present["rack7"], memory_mb=512)
    files = replace(testboxes, present={**testboxes.present, "rack7": smaller})
    lab = replace(brain.lab, catalogue=replace(brain.lab.catalogue, testboxes=files))
    again = reparse(lab, ReparseRequest(again=True, dry_run=True))
    assert again.statuses == {("invalid", "ok"): len(runs)}
    # What counted still counts on a machine that has grown.
    larger = replace(testboxes.present["rack7"], memory_mb=2048)
    files = replace(testboxes, present={**testboxes.present, "rack7": larger})
    lab = replace(brain.lab, catalogue=replace(brain.lab.catalogue, testboxes=files))
    assert reparse(lab, ReparseRequest(again=True, dry_run=True)).changed == 0
