"""What bisections and their steering promise."""

from __future__ import annotations

from typing import Final

import pytest

from swingbot.core.model.bisection import BisectionTerms, Observation, WantedBoot
from swingbot.core.model.conclusion import EndedSearch
from swingbot.core.model.records import Bisection
from tests.contract.store.world import (
    METRIC,
    REFUSED,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_bisection,
    a_boot,
    a_build,
    a_lab,
    commit,
)

DIGEST = "d" * 64

FOUND: Final = {"culprits": [], "candidates": [], "boots": 8, "kernels": 4, "builds": 3}


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, 5)


def test_a_new_bisection_runs_in_a_series_of_its_own(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        assert tx.bisections.get(number) == Bisection(
            id=number,
            tree=lab.tree.id,
            origin="watch",
            good=commit(0),
            bad=commit(4),
            testbox=TESTBOX,
            spec=lab.spec,
            series=f"b{number}",
            unit_job=UNIT_JOB,
            metric=METRIC,
            terms=BisectionTerms(unit="ops/s", better="higher", max_boots=40),
            status="running",
        )
        assert tx.bisections.get(number + 1) is None
        shared = tx.bisections.get(a_bisection(tx, lab, series="", request_key="other"))
        assert shared is not None and shared.series == ""


def test_the_same_request_is_the_same_bisection(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        assert a_bisection(tx, lab, metric="other") == number
        assert len(tx.bisections.points(number)) == 5
        other = a_bisection(tx, lab, request_key="c")
        assert tx.bisections.running() == [number, other]


def test_points_come_good_end_first_with_hints_and_skips(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.steering.set_skipped(number, [1, 2], "skipped by me")
        tx.steering.set_skipped(number, [2], None)
        tx.steering.set_hint(number, [3], 5.0)
        tx.steering.set_hint(number, [4], 100.0)
        tx.steering.set_hint(number, [4], 0.001)
        points = tx.bisections.points(number)
        assert [variant.commit for variant, _, _ in points] == [commit(n) for n in range(5)]
        assert [why for _, _, why in points] == [None, "skipped by me", None, None, None]
        # Five weights of 1 over four candidates: a hint leaves a tenth of 1.25.
        assert [weight for _, weight, _ in points] == pytest.approx([1.0, 1.0, 1.0, 5.0, 0.125])


def test_a_boot_is_wanted_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.bisections.add_want(number, WantedBoot(2, 0, "search", layout=1, testbox=1))
        tx.bisections.add_want(number, WantedBoot(0, 1, "ends"))
        tx.bisections.add_want(number, WantedBoot(0, 0, "ends"))
        tx.bisections.add_want(number, WantedBoot(2, 0, "confirm"))
        assert tx.bisections.wants(number) == [
            WantedBoot(0, 0, "ends", 0, 0),
            WantedBoot(0, 1, "ends", 0, 0),
            WantedBoot(2, 0, "search", 1, 1),
        ]
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.bisections.add_want(number, WantedBoot(9, 0, "search"))


def test_a_wanted_boot_moves_until_it_is_observed(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        for idx in (0, 1):
            tx.bisections.add_want(number, WantedBoot(idx, 0, "ends"))
        tx.bisections.add_observation(number, 0, 0, None, (), "panicked")
        tx.bisections.set_testboxes(number, (TESTBOX, "other"))
        for idx in (0, 1, 3):
            tx.bisections.move_want(number, idx, 0, 1)
        assert tx.bisections.wants(number) == [
            WantedBoot(0, 0, "ends"),
            WantedBoot(1, 0, "ends", testbox=1),
        ]
        found = tx.bisections.get(number)
        assert found is not None
        assert found.testboxes == (TESTBOX, "other")
        assert (found.testbox, found.terms.unit) == (TESTBOX, "ops/s")


def test_what_came_of_a_boot_counts_once(store: Store, lab: Lab) -> None:
    a_build(store, lab)
    boot = a_boot(store, lab)
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        for idx in (1, 0):
            tx.bisections.add_want(number, WantedBoot(idx, 0, "ends"))
        tx.bisections.add_observation(number, 1, 0, None, (), "does not build")
        tx.bisections.add_observation(number, 0, 0, boot, (100.0, 102.0), None)
        tx.bisections.add_observation(number, 0, 0, None, (), "lost")
        first, second = tx.bisections.observations(number)
        assert first.at is not None
        assert first == Observation(
            idx=0, k=0, values=(100.0, 102.0), phase="ends", layout=0, testbox=0, at=first.at
        )
        assert second == Observation(
            idx=1, k=0, values=(), skip="does not build", phase="ends", layout=0, testbox=0, at=None
        )


@pytest.mark.parametrize(
    ("idx", "values", "skip"), [(1, (1.0,), None), (0, (), None), (0, (1.0,), "but why")]
)
def test_an_observation_was_asked_for_and_says_something(
    store: Store, lab: Lab, idx: int, values: tuple[float, ...], skip: str | None
) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.bisections.add_want(number, WantedBoot(0, 0, "ends"))
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.bisections.add_observation(number, idx, 0, None, values, skip)


def test_a_bisection_ends_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.bisections.set_belief(number, {"p": [1.0]})
        asked, ended, reason = tx.bisections.life_of(number)
        assert asked.endswith("Z") and (ended, reason) == (None, None)
        tx.bisections.conclude(number, "culprit", FOUND, "it was found")
        tx.bisections.conclude(number, "cancelled", {}, "by a person")
        known = tx.bisections.get(number)
        assert known is not None and known.status == "culprit" == tx.bisections.status(number)
        assert tx.bisections.status(number + 1) is None
        assert tx.bisections.conclusion(number) == EndedSearch.read(FOUND)
        asked, ended, reason = tx.bisections.life_of(number)
        assert ended is not None and ended > asked and reason == "it was found"
        assert tx.bisections.running() == []


def test_a_branch_of_a_merge_knows_its_parent(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        parent = a_bisection(tx, lab)
        one, other = (a_bisection(tx, lab, request_key=key) for key in "xy")
        for branch in (one, other):
            tx.bisections.set_parent(branch, parent, commit(3))
        tx.bisections.set_parent(one, other, commit(4))
        assert tx.bisections.parent_of(one) == (parent, commit(3))
        assert tx.bisections.parent_of(parent) is None
        assert [(b.id, merge) for b, merge in tx.bisections.branches_of(parent)] == [
            (one, commit(3)),
            (other, commit(3)),
        ]


def test_a_resumed_bisection_runs_with_a_wider_policy(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.bisections.conclude(number, "inconclusive", {"x": 1}, "the budget is spent")
        tx.steering.reopen(number, max_boots=80, max_end_boots=40)
        known = tx.bisections.get(number)
        assert known is not None and known.status == "running"
        assert known.terms == BisectionTerms(
            unit="ops/s", better="higher", max_boots=80, max_end_boots=40
        )
        assert tx.bisections.life_of(number)[1:] == (None, None)
        tx.bisections.conclude(number, "culprit", FOUND, None)
        assert tx.bisections.conclusion(number) == EndedSearch.read(FOUND)


def test_the_journal_has_each_step_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        assert tx.steering.last_step(number) is None
        tx.steering.add_step(number, 1, "e", {"b": 1, "a": [0.1]}, DIGEST, {"action": "wait"})
        tx.steering.add_step(number, 2, "e", {}, "e" * 64, {"action": "measure"})
        assert tx.steering.last_step(number) == tx.steering.steps(number)[-1]
        first, second = tx.steering.steps(number)
        assert (first.number, first.facts, first.digest) == (1, {"b": 1, "a": [0.1]}, DIGEST)
        assert second.number == 2 and second.at >= first.at
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.steering.add_step(number, 2, "e", {}, DIGEST, {})


def test_what_people_say_is_kept_in_order(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_bisection(tx, lab)
        tx.steering.add(number, "skip", [1, 2], who="me", why="broken")
        tx.steering.add(number, "hint", [3], who="you", why=None, factor=5.0)
        tx.steering.add(number, "resume", [], who="me", why=None, boots=80)
        assert [
            (s.act, s.points, s.factor, s.boots, s.why, s.who) for s in tx.steering.all(number)
        ] == [
            ("skip", (1, 2), None, None, "broken", "me"),
            ("hint", (3,), 5.0, None, None, "you"),
            ("resume", (), None, 80, None, "me"),
        ]
