"""Free blocks by zone and order, and the unusable free space index made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot_jobs.reading import buddy, snapshots
from swingbot_jobs.reading.buddy import Zone

BLOCKS = st.lists(st.integers(0, 10**6).map(float), min_size=1, max_size=11)


def kernels_index(blocks: list[int], order: int) -> int:
    """unusable_free_index() of mm/vmstat.c in thousandths, with its integer arithmetic."""
    free = sum(count << size for size, count in enumerate(blocks))
    suitable = sum(count << (size - order) for size, count in enumerate(blocks) if size >= order)
    return (free - (suitable << order)) * 1000 // free if free else 1000


def test_pages_in_smaller_blocks_than_the_order_are_unusable() -> None:
    assert [buddy.unusable_index([4, 2, 2], order) for order in range(3)] == [0, 0.25, 0.5]


def test_without_free_pages_nothing_is_usable() -> None:
    assert buddy.unusable_index([0, 0], 0) == 1


@given(blocks=BLOCKS, order=st.integers(0, 10))
def test_the_index_is_the_kernels(blocks: list[float], order: int) -> None:
    whole = [int(count) for count in blocks]
    assert buddy.unusable_index(blocks, order) * 1000 == pytest.approx(
        kernels_index(whole, order), abs=1.001
    )


@given(blocks=BLOCKS)
def test_a_larger_order_never_finds_more(blocks: list[float]) -> None:
    found = [buddy.unusable_index(blocks, order) for order in range(len(blocks))]
    assert found == sorted(found)
    assert all(0 <= index <= 1 for index in found)


def test_zones_are_read_from_a_snapshot_and_one_with_a_gap_is_left_out() -> None:
    [found] = snapshots.read_snapshots(
        "Node 1, zone Normal 4 0 1\nNode 0, zone DMA32 7\nNode 0, zone DMA 1 1\n",
        snapshots.buddyinfo,
    )
    del found["Node.0.zone.DMA.0"]
    assert buddy.by_zone(found) == {Zone(0, "DMA32"): [7], Zone(1, "Normal"): [4, 0, 1]}
    assert buddy.unusable(found)["Node.1.zone.Normal.2"] == 0.5


@pytest.mark.parametrize("name", ["Node.0.zone.Normal", "Node.x.zone.Normal.1", "before.1", ""])
def test_another_name_is_no_place_of_a_zone(name: str) -> None:
    assert buddy.place(name) is None
