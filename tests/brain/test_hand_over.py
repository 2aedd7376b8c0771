"""Work that waits for a quarantined testbox goes on at another one of its group, and the numbers
stay right although that one has another level.
"""

from __future__ import annotations

from collections import Counter

import pytest

from swingbot.core.model.statuses import ComparisonKind
from swingbot.service.tick import tick
from tests.contract.store.world import (
    Lab,
    a_bisection,
    a_comparison,
    a_lab,
    a_testbox,
    commit,
)
from tests.fakes.memory_lab import MemoryLab

CULPRIT, LAST = 6, 11
SLOW = {commit(n): 0.88 for n in range(CULPRIT, LAST + 1)}
ONE, OTHER, THIRD = "box", "rack2", "rack3"


def world(*testboxes: str, repeatable: bool = False) -> tuple[MemoryLab, Lab]:
    """`rack2` is 30 % slower than the others, far more than the culprit's change."""
    memory = MemoryLab(speeds=SLOW, testboxes=testboxes or (ONE, OTHER), levels={OTHER: 0.7})
    memory.boot_on(a_testbox(name, repeatable=repeatable) for name in memory.testboxes)
    with memory.store.transaction() as tx:
        return memory, a_lab(tx, LAST + 1, testboxes=memory.testboxes)


def quarantine(memory: MemoryLab, name: str = ONE) -> None:
    with memory.store.transaction() as tx:
        tx.testboxes.set_state(name, "quarantined", "failed: the power is off")


def boots(memory: MemoryLab) -> Counter[str]:
    db = memory.store.db
    return Counter(row.order.testbox or "" for row in db.boots.values())


def work_until(memory: MemoryLab, wanted: int) -> None:
    """Rounds until that many boots are there, or all is done."""
    for _ in range(200):
        tick(memory.lab)
        if boots(memory).total() >= wanted or not memory.store.db.bisections:
            return
        memory.work()
        memory.store.pass_time(600.0)


@pytest.mark.parametrize("after", [0, 1, 3, 6, 10, 14])
def test_a_bisection_goes_on_at_another_testbox_of_the_group(after: int) -> None:
    memory, lab = world()
    with memory.store.transaction() as tx:
        number = a_bisection(tx, lab, origin="asked")
    if after:
        work_until(memory, after)
    before = boots(memory)
    quarantine(memory)
    memory.run()
    found = memory.store.db.bisections[number]
    assert found.bisection.status == "culprit", found.reason
    (culprit,) = (found.conclusion or {})["culprits"]
    assert culprit["commit"] == commit(CULPRIT)
    assert culprit["change_pct"] == pytest.approx(-12, abs=0.5)
    # a boot that was under way ends where it began
    assert boots(memory)[ONE] <= before[ONE] + 1
    if found.bisection.testboxes != (ONE,):
        assert boots(memory)[OTHER] > 0


def test_a_group_goes_on_with_the_rest() -> None:
    memory, lab = world(ONE, OTHER, THIRD)
    with memory.store.transaction() as tx:
        number = a_bisection(tx, lab, origin="asked")
        tx.bisections.set_testboxes(number, (ONE, OTHER, THIRD))
    work_until(memory, 6)
    before = boots(memory)
    quarantine(memory, THIRD)
    memory.run()
    found = memory.store.db.bisections[number]
    (culprit,) = (found.conclusion or {})["culprits"]
    assert culprit["commit"] == commit(CULPRIT)
    assert culprit["change_pct"] == pytest.approx(-12, abs=0.5)
    assert boots(memory)[THIRD] <= before[THIRD] + 1


@pytest.mark.parametrize("repeatable", [False, True])
def test_without_another_testbox_a_bisection_waits_and_goes_on_when_it_is_back(
    repeatable: bool,
) -> None:
    """A repeatable testbox has no substitute: boots of equal k are compared."""
    memory, lab = world(ONE, OTHER, repeatable=True) if repeatable else world(ONE)
    with memory.store.transaction() as tx:
        number = a_bisection(tx, lab, origin="asked")
    work_until(memory, 3)
    quarantine(memory)
    for _ in range(3):
        tick(memory.lab)
        memory.work()
    waiting = boots(memory)
    for _ in range(3):
        tick(memory.lab)
        memory.work()
    assert boots(memory) == waiting
    assert memory.store.db.bisections[number].bisection.status == "running"
    with memory.store.transaction() as tx:
        tx.testboxes.set_state(ONE, "active", None)
    memory.run()
    assert memory.store.db.bisections[number].bisection.status == "culprit"


@pytest.mark.parametrize(
    "kind", ["asked", "watch", "experiment", "prove", "still", "attribute", "gate"]
)
def test_each_kind_of_comparison_goes_on_at_another_testbox(kind: ComparisonKind) -> None:
    memory, lab = world()
    with memory.store.transaction() as tx:
        number = a_comparison(
            tx, lab, head=lab.kernels[LAST].id, kind=kind, boots=3, request_key="still:1"
        )
    tick(memory.lab)
    quarantine(memory)
    for _ in range(40):
        if memory.store.db.comparisons[number].comparison.status == "done":
            break
        tick(memory.lab)
        memory.work()
    with memory.store.transaction() as tx:
        rows = [row for row in tx.comparisons.rows(number) if row.headline]
    assert {row.testbox for row in rows} == {OTHER}
    assert rows[0].change_pct == pytest.approx(-12, abs=0.5)
    assert boots(memory)[ONE] == 0


def test_a_comparison_of_two_testboxes_that_is_read_by_testbox_waits() -> None:
    memory, lab = world(ONE, OTHER, THIRD)
    with memory.store.transaction() as tx:
        number = a_comparison(
            tx,
            lab,
            head=lab.kernels[LAST].id,
            kind="attribute",
            boots=2,
            parts=[(ONE, lab.spec), (OTHER, lab.spec)],
        )
    quarantine(memory)
    for _ in range(8):
        tick(memory.lab)
        memory.work()
    with memory.store.transaction() as tx:
        found = tx.comparisons.get(number)
    assert found is not None
    assert found.status == "running"
    assert {name for name, _ in found.parts} == {ONE, OTHER}
