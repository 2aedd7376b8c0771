"""What a build will cost, learnt from made-up histories; and how likely a commit is before
anything was measured."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.plan.costs import (
    FULL_SECONDS,
    ChangedFiles,
    MeasuredBuild,
    along,
    change_of,
    costs,
    costs_of_points,
    seconds_left,
)
from swingbot.core.plan.relevance import untouched, weight, weights
from swingbot.core.thresholds import PRIOR_EVEN_SHARE, PRIOR_MAYBE_COMPILED, PRIOR_NO_CODE

COMPILED = frozenset({"mm/slub.o", "mm/memory.o", "kernel/fork.o"})
changes = st.none() | st.builds(ChangedFiles, *[st.integers(0, 5)] * 4)
histories = st.lists(st.builds(MeasuredBuild, changes, st.floats(0, 1e4)), max_size=30)


def history(seed: int, builds: int = 40) -> list[MeasuredBuild]:
    """A lab where a build takes 8 s, 2 s a source, 15 s for local headers, 120 s for wide ones,
    60 s for Kconfig; one in ten waits for long."""
    rng = random.Random(seed)
    made = [MeasuredBuild(None, 200.0)]
    for number in range(builds):
        change = ChangedFiles(rng.randint(0, 12), number % 5 == 1, number % 5 == 2, number % 5 == 3)
        seconds = (
            8 + 2 * change.sources + 15 * change.local + 120 * change.wide + 60 * change.config
        )
        made.append(
            MeasuredBuild(change, seconds * rng.uniform(0.9, 1.1) + 100 * (rng.random() < 0.1))
        )
    return made


@pytest.mark.parametrize("seed", range(5))
def test_costs_are_those_of_the_lab_whatever_a_few_builds_waited_for(seed: int) -> None:
    learnt = costs(history(seed))
    assert learnt.of(ChangedFiles(sources=1)) == pytest.approx(10, rel=0.35)
    assert learnt.of(ChangedFiles(sources=10)) == pytest.approx(28, rel=0.25)
    assert learnt.of(ChangedFiles(wide=1)) == pytest.approx(128, rel=0.25)
    assert learnt.of(ChangedFiles(config=2)) == pytest.approx(68, rel=0.3)
    assert learnt.of(ChangedFiles(sources=3, local=1)) == pytest.approx(29, rel=0.35)


def test_what_is_left_of_a_build_falls_to_a_tenth_and_then_grows_with_the_build() -> None:
    assert [seconds_left(300.0, elapsed) for elapsed in (0.0, 100.0, 250.0, 300.0, 600.0)] == [
        300.0,
        200.0,
        50.0,
        30.0,
        60.0,
    ]


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1e3))
def test_the_foreseen_end_of_a_build_never_comes_nearer_by_waiting(
    foreseen: float, elapsed: float, more: float
) -> None:
    now = elapsed + seconds_left(foreseen, elapsed)
    assert elapsed + more + seconds_left(foreseen, elapsed + more) >= now * (1 - 1e-12)
    assert now >= max(foreseen, elapsed) * (1 - 1e-12)


def test_without_builds_the_defaults_hold_and_scale_with_a_full_build() -> None:
    slow, fast = costs([]), costs([], full_seconds=FULL_SECONDS / 10)
    assert slow.of(None) == FULL_SECONDS
    assert slow.of(ChangedFiles(sources=1)) == pytest.approx(10 * fast.of(ChangedFiles(sources=1)))
    assert (
        slow.of(ChangedFiles(sources=1))
        < slow.of(ChangedFiles(local=1))
        < slow.of(ChangedFiles(wide=1))
        < FULL_SECONDS
    )


def test_one_odd_build_does_not_make_all_dear() -> None:
    assert (
        costs([*history(1), MeasuredBuild(ChangedFiles(sources=1), 3600.0)]).of(
            ChangedFiles(sources=1)
        )
        < 15
    )


@given(histories)
def test_costs_are_finite_and_never_above_a_full_build(builds: list[MeasuredBuild]) -> None:
    learnt = costs(builds)
    for change in (None, ChangedFiles(), ChangedFiles(1000, 1, 1, 1)):
        assert 0 <= learnt.of(change) <= learnt.full < 1e5


@given(
    histories,
    st.builds(ChangedFiles, *[st.integers(0, 5)] * 4),
    st.builds(ChangedFiles, *[st.integers(0, 5)] * 4),
)
def test_more_change_never_costs_less(
    builds: list[MeasuredBuild], one: ChangedFiles, more: ChangedFiles
) -> None:
    learnt = costs(builds)
    assert (
        learnt.of(one)
        <= learnt.of(ChangedFiles(*(a + b for a, b in zip(one, more, strict=True)))) + 1e-9
    )


def test_paths_are_counted_by_what_make_redoes() -> None:
    paths = [
        "mm/slub.c",
        "mm/zswap.c",
        "mm/slab.h",
        "include/linux/mm.h",
        "arch/x86/include/asm/page.h",
        "mm/Kconfig",
        "Makefile",
        "Documentation/mm/slub.rst",
    ]
    assert change_of(paths) == ChangedFiles(2, 1, 2, 2)
    assert change_of(paths, COMPILED) == ChangedFiles(1, 1, 2, 2)
    assert change_of(["mm/slub.c", "mm/slub.c"]) == ChangedFiles(1)


def test_a_path_that_changes_twice_is_built_once() -> None:
    assert list(along([["mm/a.c"], ["mm/b.c", "mm/a.c"], ["include/linux/mm.h"]])) == [
        ChangedFiles(1),
        ChangedFiles(2),
        ChangedFiles(2, 0, 1),
    ]


def test_a_commit_costs_by_its_distance_from_where_the_work_tree_stands() -> None:
    steps = [["mm/a.c"], ["include/linux/mm.h"], ["mm/b.c"], ["mm/c.c"]]
    learnt = costs([])
    seconds = costs_of_points(learnt, steps, 3, None)
    # the header lies between points 1 and 2
    assert seconds[3] < seconds[2] == seconds[4] < seconds[1] <= seconds[0]
    away = costs_of_points(learnt, steps, None, ["mm/z.c"])
    assert away == sorted(away) and away[0] == pytest.approx(
        learnt.of(ChangedFiles(sources=1)), rel=0.05
    )
    assert set(costs_of_points(learnt, steps, None, None)) == {FULL_SECONDS}


def test_ten_thousand_points_are_quick_to_price() -> None:
    steps = [[f"mm/{n % 700}.c", f"net/{n}.c"] for n in range(10_000)]
    assert (
        costs_of_points(costs([]), steps, 5000, None)[5000]
        == costs_of_points(costs([]), [], 0, None)[0]
    )


def test_what_this_configuration_does_not_compile_keeps_a_small_prior() -> None:
    assert weight(["drivers/gpu/drm/x.c"]) == 1.0
    assert (
        weight(["drivers/gpu/drm/x.c", "drivers/gpu/drm/x.h", "Documentation/x.rst"], COMPILED)
        == PRIOR_NO_CODE
    )
    assert weight(["drivers/gpu/drm/x.c", "mm/slub.c"], COMPILED) == 1.0
    assert (
        weight(["include/linux/mm.h"], COMPILED)
        == weight(["mm/internal.h"], COMPILED)
        == weight(["arch/x86/mm/x.S"], COMPILED)
        == 1.0
    )
    assert weight(["mm/zswap.c"], COMPILED) == PRIOR_MAYBE_COMPILED
    assert weight([], COMPILED) == PRIOR_NO_CODE


def test_a_commit_whose_objects_are_the_same_on_both_sides_left_nothing_behind() -> None:
    before, after = {"mm/a.o": "1", "mm/b.o": "1"}, {"mm/a.o": "1", "mm/b.o": "2"}
    assert untouched(["mm/a.c"], before, after)
    for paths in (["mm/b.c"], ["mm/a.c", "mm/b.c"], ["mm/a.c", "mm/internal.h"], ["mm/new.c"], []):
        assert not untouched(paths, before, after)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_every_commit_keeps_a_tenth_of_its_even_share(relevance: list[float]) -> None:
    prior = weights(relevance)
    assert sum(prior) == pytest.approx(1.0)
    assert min(prior) >= PRIOR_EVEN_SHARE / len(prior) * (1 - 1e-9)
