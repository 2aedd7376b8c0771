"""A bisection's boots of other layouts and on several testboxes: ordered, built, booted and
learnt from, on a real database."""

from __future__ import annotations

import dataclasses

import pytest

from swingbot.app.wiring import sync_testboxes
from swingbot.core.bisect.state import BisectionState
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.bisect.advance import state_of
from swingbot.service.bisect.boot_keys import boot_key
from swingbot.service.kernel.variants import in_layout
from swingbot.service.order.place import want_boot
from swingbot.service.ports import RequestError
from tests.fakelinux import FakeCommit
from tests.fakes.loop import plain
from tests.fakes.memory_brain import MemoryBrain


def state(brain: MemoryBrain, number: int) -> BisectionState:
    with brain.lab.transaction("look") as tx:
        bisection, points = tx.bisections.get(number), tx.bisections.points(number)
        assert bisection is not None
        return state_of(
            brain.lab.tools,
            brain.lab.catalogue,
            tx,
            bisection,
            points,
            tx.builds.by_key([variant.build_key for variant, _, _ in points]),
        )


def test_a_boot_of_another_layout_is_of_another_kernel_and_says_so(brain: MemoryBrain) -> None:
    base = brain.base
    brain.watch(base)
    made = brain.commit(*plain(2), FakeCommit(speed=88), FakeCommit())
    number = brain.bisect(base, made[-1])
    with brain.lab.transaction("ask") as tx:
        bisection, good = tx.bisections.get(number), tx.bisections.points(number)[0][0]
        assert bisection is not None
        tx.bisections.add_want(number, WantedBoot(0, 900, "confirm", layout=2))
        laid_out = in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 2)
        assert (
            laid_out == in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 2)
            and laid_out.commit == good.commit
            and laid_out.build_key != good.build_key
        )
        assert in_layout(brain.lab.catalogue.kconfigs, tx.trees, tx.variants, good, 0) == good
        want_boot(tx.orders, laid_out, boot_key(bisection, laid_out, 900), 40, bisection=number)
    assert [(flight.k, flight.layout) for flight in state(brain, number).in_flight] == [(900, 2)]
    with brain.store.transaction() as tx:
        orders = tx.orders.wanted(bisection=number)
    assert {order.state for order in orders if order.build_key == laid_out.build_key} == {"waiting"}
    brain.run()
    (seen,) = [o for o in state(brain, number).observations if o.k == 900]
    assert (seen.idx, seen.k, seen.layout, seen.testbox) == (0, 900, 2, 0) and seen.values
    db = brain.store.db
    booted = [(db.variants[boot.order.variant].commit, boot.image) for boot in db.boots.values()]
    assert len({image for commit, image in booted if commit == base}) == 2
    assert brain.culprit(number) == made[2]


def grouped(brain: MemoryBrain, *, repeatable: bool = True) -> None:
    """Give vm-icount a twin in group `pair`."""
    catalogue = brain.lab.catalogue
    present = catalogue.testboxes.present
    one = dataclasses.replace(present["vm-icount"], tbox_group="pair")
    twin = dataclasses.replace(one, name="vm-twin", repeatable=repeatable)
    testboxes = KnownTestboxes(present={**present, "vm-icount": one, "vm-twin": twin})
    catalogue = dataclasses.replace(catalogue, testboxes=testboxes)
    brain.lab = dataclasses.replace(brain.lab, catalogue=catalogue)
    sync_testboxes(brain.lab)


def bisect_on(brain: MemoryBrain, testbox: str) -> tuple[int, list[str]]:
    base = brain.base
    brain.watch(base)
    made = brain.commit(*plain(5), FakeCommit(speed=88), *plain(4))
    return brain.bisect(base, made[-1], testbox=testbox), made


def booted_on(brain: MemoryBrain, number: int) -> set[tuple[int, str]]:
    """(index of the testbox, its name) of the boots that a bisection learnt from."""
    with brain.store.transaction() as tx:
        seen = tx.bisections.observations(number)
    boots = brain.store.db.boots
    rows = [brain.store.db.observations[number, o.idx, o.k] for o in seen]
    names = [boots[row.boot].order.testbox or "" if row.boot else "" for row in rows]
    return {(o.testbox, name) for o, name in zip(seen, names, strict=True)}


def test_testboxes_of_a_group_share_a_bisection(brain: MemoryBrain) -> None:
    grouped(brain)
    number, made = bisect_on(brain, "pair")
    assert state(brain, number).testboxes == 2
    brain.run()
    assert brain.culprit(number) == made[5]
    assert len(brain.bisection(number).testboxes) == 2
    assert booted_on(brain, number) == {(0, "vm-icount"), (1, "vm-twin")}


def test_one_testbox_of_a_group_works_alone(brain: MemoryBrain) -> None:
    grouped(brain)
    number, made = bisect_on(brain, "vm-twin")
    brain.run()
    assert brain.culprit(number) == made[5]
    assert state(brain, number).testboxes == 1
    assert booted_on(brain, number) == {(0, "vm-twin")}


def test_testboxes_that_differ_in_kind_do_not_share_a_bisection(brain: MemoryBrain) -> None:
    grouped(brain, repeatable=False)
    with pytest.raises(RequestError, match="name one"):
        bisect_on(brain, "pair")
