"""Free memory by zone and order: means over runs and boots."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.stats.free_memory import Moment, Sample, ZoneMemory, free_memory


def samples(
    boot: str, run: int, blocks: list[float], moment: str = "before", zone: str = "Normal"
) -> list[Sample]:
    return [
        Sample(boot, run, f"buddyinfo.{moment}.Node.0.zone.{zone}.{order}", count)
        for order, count in enumerate(blocks)
    ]


def test_boots_weigh_alike_however_many_runs_they_have() -> None:
    given = [
        *samples("x1", 0, [4, 2]),
        *samples("x1", 1, [8, 4]),
        *samples("x2", 0, [0, 9]),
        *samples("x1", 0, [1, 1], "after"),
    ]
    assert free_memory(given) == [
        ZoneMemory(
            node=0,
            zone="Normal",
            boots=2,
            before=Moment(blocks=(3, 6), unusable=(0, 0.25)),
            after=Moment(blocks=(1, 1), unusable=(0, 1 / 3)),
        )
    ]


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    given = [
        Sample("x", 0, f"buddyinfo.before.Node.{node}.zone.{zone}.0", 1)
        for node, zone in ((10, "Normal"), (2, "Normal"), (2, "DMA"))
    ]
    places = [(zone.node, zone.zone) for zone in free_memory(given)]
    assert places == [(2, "DMA"), (2, "Normal"), (10, "Normal")]


def test_other_metrics_and_no_samples_give_no_table() -> None:
    assert free_memory([]) == []
    assert free_memory([Sample("x", 0, "buddyinfo.zone.101", 3), Sample("x", 0, "a.b", 1)]) == []


def test_runs_with_other_orders_have_no_mean() -> None:
    [zone] = free_memory([*samples("x", 0, [1, 1]), *samples("x", 1, [1, 1, 1])])
    assert (zone.before, zone.after) == (None, None)


@given(seed=st.integers(0, 100))
def test_the_order_of_samples_is_irrelevant(seed: int) -> None:
    given = [*samples("x1", 0, [4, 2]), *samples("x1", 1, [8, 4]), *samples("x2", 0, [1, 9])]
    shuffled = list(given)
    random.Random(seed).shuffle(shuffled)
    assert free_memory(shuffled) == free_memory(given)
