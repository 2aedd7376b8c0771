"""The order in which the arms of a comparison are booted."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.plan.blocks import block_order


def test_two_arms_take_turns() -> None:
    assert [block_order(2, block, 7) for block in range(4)] == [[0, 1], [1, 0], [0, 1], [1, 0]]


@given(arms=st.integers(2, 40), block=st.integers(0, 200), seed=st.integers(1, 10**6))
def test_a_block_has_each_arm_once(arms: int, block: int, seed: int) -> None:
    assert sorted(block_order(arms, block, seed)) == list(range(arms))


@pytest.mark.parametrize("arms", [2, 3, 4, 5, 8, 9])
def test_places_and_neighbours_are_balanced(arms: int) -> None:
    blocks = [block_order(arms, block, 5) for block in range(2 * arms)]
    places = Counter((arm, place) for row in blocks for place, arm in enumerate(row))
    follows = Counter(pair for row in blocks for pair in pairwise(row))
    assert set(places.values()) == {2} and len(places) == arms * arms
    assert set(follows.values()) == {2} and len(follows) == arms * (arms - 1)


def test_another_comparison_has_another_order() -> None:
    assert len({tuple(block_order(8, 0, seed)) for seed in range(20)}) > 15
