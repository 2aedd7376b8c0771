"""Kernels that are built before anyone asked for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.bisect.state import Belief, BisectionState, CandidateBelief, PointState
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.plan.speculative_builds import builds_ahead, likely_next


def believed(mass: list[float]) -> Belief:
    candidates = tuple(
        CandidateBelief(idx=i, probability=p, state="candidate") for i, p in enumerate(mass, 1)
    )
    return Belief(
        candidates=candidates,
        p_none=0.0,
        points=(),
        change_pct=None,
        good_level=None,
        bad_level=None,
        phase="search",
    )


def a_state(
    n: int,
    *,
    cost: float = 8.0,
    boot: float = 10.0,
    flights: tuple[int, ...] = (),
    built: Collection[int] = (),
) -> BisectionState:
    made = [PointState(idx=i, build_cost_seconds=cost, built=i in built) for i in range(n + 1)]
    return BisectionState(
        points=tuple(made),
        in_flight=tuple(WantedBoot(i, 0, "search") for i in flights),
        boot_cost_seconds=boot,
    )


EVEN = believed([1 / 16] * 16)


def test_at_the_beginning_the_middle_is_likeliest_then_the_quarters() -> None:
    assert likely_next(a_state(16), EVEN, 3) == [8, 4, 12]
    assert likely_next(a_state(16), EVEN, 9) == [8, 4, 12]
    assert likely_next(replace(a_state(16), testboxes=4), EVEN, 20) == [
        8,
        4,
        12,
        2,
        6,
        10,
        14,
        1,
        3,
        5,
        7,
        9,
        11,
        13,
        15,
    ]


def test_while_the_middle_is_booted_the_middles_of_both_halves_come_next() -> None:
    assert likely_next(a_state(16, flights=(8,)), EVEN, 2) == [4, 12]


def test_what_is_built_asks_for_nothing() -> None:
    assert likely_next(a_state(16, built=(8, 4)), EVEN, 3) == [12]


def test_a_settled_belief_asks_for_nothing() -> None:
    assert likely_next(a_state(4), believed([0.01, 0.97, 0.01, 0.01]), 2) == []
    assert likely_next(a_state(4), believed([0.0] * 4), 2) == []


def test_only_what_is_ready_before_the_answer_is_built_ahead() -> None:
    assert builds_ahead(a_state(16, flights=(8,), cost=8, boot=10), EVEN, 2) == [4]
    assert builds_ahead(a_state(16, flights=(8,), cost=5, boot=10), EVEN, 2) == [4, 12]
    assert builds_ahead(a_state(16, flights=(8,), cost=300, boot=10), EVEN, 2) == []
    # nothing in flight: the next step asks by itself
    assert builds_ahead(a_state(16, cost=1), EVEN, 2) == []


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.sets(st.integers(0, 40)),
    st.integers(1, 3),
)
def test_ends_and_known_kernels_are_never_built_ahead(
    mass: list[float], known: set[int], most: int
) -> None:
    n = len(mass)
    state = a_state(n, built=known)
    state = replace(
        state,
        points=tuple(
            replace(p, skipped="does not build") if p.idx % 5 == 3 else p for p in state.points
        ),
    )
    found = likely_next(state, believed(mass), most)
    assert len(found) == len(set(found)) <= most
    assert all(
        0 < i < n and not state.points[i].built and state.points[i].skipped is None for i in found
    )
