"""Kernel configurations that belong to testboxes: one build serves those with an equal one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from swingbot.app.wiring import sync_testboxes
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.table.layout import Axis
from swingbot.service.ports import RequestError
from tests.fakelinux import FakeCommit
from tests.fakes.loop import plain
from tests.fakes.memory_brain import MemoryBrain
from tests.table_requests import compare

SERVER = "server-x86_64"
RACK = {"rack1": SERVER, "rack2": SERVER, "rack3": f"{SERVER}+net-virtio"}


def furnished(brain: MemoryBrain, rack: Mapping[str, str] = RACK) -> None:
    """Give the lab testboxes like vm-icount, with configurations of their own."""
    catalogue = brain.lab.catalogue
    present = catalogue.testboxes.present
    more = {
        name: dataclasses.replace(present["vm-icount"], name=name, tbox_group="rack", kconfig=own)
        for name, own in rack.items()
    }
    testboxes = KnownTestboxes(present={**present, **more})
    brain.lab = dataclasses.replace(
        brain.lab, catalogue=dataclasses.replace(catalogue, testboxes=testboxes)
    )
    sync_testboxes(brain.lab)


def kconfigs(brain: MemoryBrain, number: int) -> set[str]:
    db = brain.store.db
    return {db.variants[arm.variant].kconfig for arm in brain.comparison(number).arms}


def test_a_branch_is_compared_once_for_each_configuration(brain: MemoryBrain) -> None:
    furnished(brain)
    base = brain.base
    brain.commit(*plain(2))
    brain.watch(base, testboxes=["vm-icount", *RACK], kconfig="vm-x86_64+trace")
    brain.run()
    seen = [
        (sorted(testbox for testbox, _ in one.parts), kconfigs(brain, one.id))
        for one in brain.comparisons("watch")
    ]
    assert seen == [
        (["vm-icount"], {"vm-x86_64+trace"}),
        (["rack1", "rack2"], {f"{SERVER}+trace"}),
        (["rack3"], {f"{SERVER}+net-virtio+trace"}),
    ]
    orders = [row.order for row in brain.store.db.orders.values()]
    builds = [order for order in orders if order.kind == "build"]
    assert len({order.build_key for order in builds}) == len(builds) == 2 * len(seen)
    assert {row.verdict for one in brain.comparisons("watch") for row in brain.rows(one.id)} == {
        "same"
    }


def test_a_swing_is_bisected_and_proved_in_the_configuration_of_its_testbox(
    brain: MemoryBrain,
) -> None:
    furnished(brain)
    base = brain.base
    made = brain.commit(*plain(3), FakeCommit(speed=85), *plain(3))
    brain.watch(base, testboxes=["rack1"])
    brain.run()
    assert brain.culprit() == made[3]
    assert len(brain.mails) == 1
    bare = {kernel.kconfig.split("+")[0] for kernel in brain.store.db.variants.values()}
    assert bare == {SERVER}


def test_two_configurations_are_two_tables(brain: MemoryBrain) -> None:
    furnished(brain)
    base = brain.base
    (tip, *_) = brain.commit(*plain(1))
    brain.watch(base)
    with pytest.raises(RequestError) as refused:
        compare(brain.lab, base, tip, boots=2, testboxes=["vm-icount", "rack1"])
    assert refused.value.key == "testbox"
    assert "different configurations (vm-icount: vm-x86_64; rack1: server-x86_64)" in str(
        refused.value
    )
    one, other = (
        compare(brain.lab, base, tip, boots=2, testboxes=[name]) for name in ("vm-icount", "rack1")
    )
    assert (kconfigs(brain, one), kconfigs(brain, other)) == ({"vm-x86_64"}, {SERVER})


def axis(*values: tuple[str, str]) -> list[Axis]:
    return [Axis(name="kconfig", values=values)]


def test_a_table_compares_two_configurations_of_one_commit(brain: MemoryBrain) -> None:
    furnished(brain)
    brain.watch(brain.base, kconfig="vm-x86_64+trace")
    axes = axis(("usual", ""), (SERVER, SERVER))
    number = compare(brain.lab, brain.base, boots=2, testboxes=["rack3"], axes=axes)
    db = brain.store.db
    arms = brain.comparison(number).arms
    assert [(arm.name, db.variants[arm.variant].kconfig) for arm in arms] == [
        ("usual", f"{SERVER}+net-virtio+trace"),
        (SERVER, f"{SERVER}+trace"),
    ]
    assert len({db.variants[arm.variant].build_key for arm in arms}) == 2
    brain.run()
    assert {row.verdict for row in brain.rows(number)} <= {"same", "unclear"} and brain.rows(number)


def test_testboxes_of_different_configurations_share_a_table_that_names_its_own(
    brain: MemoryBrain,
) -> None:
    furnished(brain)
    brain.watch(brain.base)
    axes, both = axis(("a", "vm-x86_64"), ("b", SERVER)), ["vm-icount", "rack1"]
    number = compare(brain.lab, brain.base, boots=2, testboxes=both, axes=axes)
    assert kconfigs(brain, number) == {"vm-x86_64", SERVER}
    usual = axis(("usual", ""), ("b", SERVER))
    with pytest.raises(RequestError, match="or name with --kconfig"):
        compare(brain.lab, brain.base, boots=2, testboxes=both, axes=usual)
    with pytest.raises(RequestError, match="there is no kernel configuration 'mips'") as refused:
        compare(brain.lab, brain.base, boots=2, axes=axis(("a", "mips"), ("b", SERVER)))
    assert refused.value.key == "kconfig"


def test_a_bisection_has_one_configuration(brain: MemoryBrain) -> None:
    furnished(brain)
    base = brain.base
    made = brain.commit(*plain(4))
    brain.watch(base)
    with pytest.raises(RequestError, match="name different kernel configurations"):
        brain.bisect(base, made[-1], testbox="rack")


def test_a_testbox_whose_configuration_is_gone_is_not_watched(brain: MemoryBrain) -> None:
    furnished(brain, {"rack4": "server-mips"})
    with pytest.raises(RequestError, match="there is no kernel configuration 'server-mips'"):
        brain.watch(brain.base, testboxes=["rack4"])
