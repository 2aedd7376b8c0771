"""Pure planning: what a new tip means, what is handed out, which swing is bisected first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow, Side, Verdict
from swingbot.core.model.records import Order
from swingbot.core.plan.new_tip import matters, what_changed
from swingbot.core.plan.queue import AHEAD, choose, patience
from swingbot.core.plan.relevance import weight
from swingbot.core.plan.swings import explains, strongest, swings
from swingbot.core.thresholds import PRIOR_NO_CODE

BASE, OLD, NEW, FORK = "b" * 40, "0" * 40, "1" * 40, "f" * 40


def changed(
    last: str | None, tip: str, *, descends: bool = True, fork: str | None = FORK
) -> tuple[str, str, str] | None:
    found = what_changed(
        base=BASE,
        last_tip=last,
        tip=tip,
        is_ancestor=lambda old, new: descends,
        merge_base=lambda one, other: fork,
    )
    return (found.kind, found.old, found.new) if found else None


def test_a_tip_that_did_not_move_is_no_change() -> None:
    assert changed(NEW, NEW) is None


def test_the_first_tip_is_compared_with_the_base() -> None:
    assert changed(None, NEW) == ("first", BASE, NEW)


def test_a_tip_that_descends_is_compared_with_the_last_one() -> None:
    assert changed(OLD, NEW) == ("advance", OLD, NEW)


def test_a_rebased_tip_is_compared_with_the_merge_base_or_the_base() -> None:
    assert changed(OLD, NEW, descends=False) == ("rebase", FORK, NEW)
    assert changed(OLD, NEW, descends=False, fork=None) == ("rebase", BASE, NEW)


def test_globs_decide_whether_a_change_matters() -> None:
    assert matters(["drivers/x.c"], [])
    assert matters(["drivers/x.c", "mm/slub.c"], ["mm/*"])
    assert matters(["mm/kasan/x.c"], ["mm"])
    assert not matters(["drivers/x.c", "mmc/x.c"], ["mm", "fs/*"])


def order(number: int, kind: str = "boot", testbox: str | None = "vm", priority: int = 0) -> Order:
    fields: dict[str, Any] = {
        "id": number,
        "kind": kind,
        "key": str(number),
        "build_key": "0" * 64,
        "variant": 1,
        "state": "ready",
        "reason": None,
    }
    boot = (
        {"testbox": testbox, "spec": "s", "series": "", "k": 0}
        if kind == "boot"
        else {"testbox": None, "spec": None, "series": None, "k": None}
    )
    return Order(**fields, **boot, priority=priority, budget=3)


def test_a_testbox_gets_one_boot_at_a_time() -> None:
    picked = choose(
        [order(1), order(2), order(3, testbox="other")],
        busy={},
        leased=set(),
        usable={"vm", "other"},
    )
    assert [o.id for o in picked] == [1, 3]


def test_leased_and_unusable_testboxes_get_nothing() -> None:
    assert (
        choose([order(1), order(2, testbox="drained")], busy={}, leased={"vm"}, usable={"vm"}) == []
    )


def test_kernels_are_handed_out_two_ahead() -> None:
    builds = [order(n, "build", priority=30) for n in (1, 2, 3)]
    assert [o.id for o in choose(builds, busy={}, leased=set(), usable=set())] == [1, 2]
    assert [o.id for o in choose(builds, busy={"kernel": 1}, leased=set(), usable=set())] == [1]


def test_a_kernel_that_nobody_asked_for_is_built_only_when_there_is_nothing_else_to_build() -> None:
    ahead, wanted = order(1, "build", priority=AHEAD), order(2, "build", priority=30)
    assert [o.id for o in choose([wanted, ahead], busy={}, leased=set(), usable=set())] == [2]
    assert choose([ahead], busy={"kernel": 1}, leased=set(), usable=set()) == []
    assert [o.id for o in choose([ahead], busy={}, leased=set(), usable=set())] == [1]


def test_patience_grows_with_failures() -> None:
    assert [patience(n) for n in range(6)] == sorted(patience(n) for n in range(6))
    assert patience(0) == 0


def test_commits_outside_the_code_keep_a_small_prior() -> None:
    assert weight(["Documentation/x.rst", "arch/arm64/mm/x.c"]) == PRIOR_NO_CODE > 0
    assert weight(["Documentation/x.rst", "mm/x.c"]) == weight(["arch/x86/mm/x.c"]) == 1.0


def row(
    pct: float | None,
    verdict: Verdict = "worse",
    *,
    headline: bool = True,
    minimum: float = 2.0,
    metric: str = "m",
) -> ComparisonRow:
    side = Side(boots=3, runs=9, mean=100.0, stddev=1.0)
    return ComparisonRow(
        headline=headline,
        verdict=verdict,
        change_pct=pct,
        interval_pct=None,
        min_effect_pct=minimum,
        testbox="vm",
        unit_job="u",
        metric=metric,
        better="higher",
        base=side,
        head=side,
    )


def test_only_headlines_with_a_direction_are_swings() -> None:
    rows = [
        row(-9),
        row(-9, headline=False),
        row(-0.1, "same"),
        row(-3, "unclear"),
        row(None, "invalid"),
        row(4, "better"),
    ]
    assert swings(rows) == [rows[0], rows[5]]


def test_the_strongest_swing_is_so_many_times_its_own_minimum() -> None:
    assert (
        strongest([row(-9, minimum=4, metric="tcp"), row(-6, minimum=2, metric="udp")]).metric
        == "udp"
    )


@pytest.mark.parametrize(
    ("own", "whole", "answer"),
    [(-9, -10, True), (-3, -10, False), (9, -10, False), (-9, 10, False)],
)
def test_a_culprit_explains_what_goes_its_way_and_is_mostly_its_own(
    own: float, whole: float, answer: bool
) -> None:
    assert explains(row(own), whole) is answer
    assert not explains(row(own, "same"), whole)
    assert not explains(None, whole)


def test_ids_carry_their_letter_and_say_what_was_expected() -> None:
    assert ids.read(ids.show("comparison", 5)) == ("comparison", 5)
    with pytest.raises(ids.BadId, match="bisection has an id such as b5"):
        ids.read("c5", "bisection")
    for nonsense in ("", "5", "c", "c5x", "z5", "c-5", "c" + "9" * 30):
        with pytest.raises(ids.BadId):
            ids.read(nonsense)


PAIRS = {"cs-ab": ("a", "b"), "cs-ba": ("a", "b")}
ALL = {"a", "b", "cs-ab", "cs-ba", "c"}


def handed(*orders: Order, leased: Collection[str] = ()) -> list[int]:
    return [o.id for o in choose(orders, busy={}, leased=leased, usable=ALL, nodes=PAIRS)]


def test_a_cluster_and_its_nodes_never_work_beside_each_other() -> None:
    on_a, both, on_b, on_c = (
        order(1, testbox="a"),
        order(2, testbox="cs-ab"),
        order(3, testbox="b"),
        order(4, testbox="c"),
    )
    assert handed(both, on_a, on_b, on_c) == [2, 4]
    assert handed(on_c, both, order(5, testbox="cs-ba")) == [4, 2]
    assert handed(both, leased={"a"}) == []


def test_a_cluster_that_waits_for_one_node_keeps_the_other_from_less_dear_work_only() -> None:
    on_b, both = order(1, testbox="b"), order(2, testbox="cs-ab")
    assert handed(on_b, both, leased={"a"}) == [1]
    assert handed(both, on_b, leased={"a"}) == []
    assert handed(both, on_b) == [2]


def test_a_cluster_that_may_not_work_keeps_nobody_waiting() -> None:
    picked = choose(
        [order(1, testbox="cs-ab"), order(2, testbox="a")],
        busy={},
        leased=(),
        usable={"a", "b"},
        nodes=PAIRS,
    )
    assert [o.id for o in picked] == [2]
