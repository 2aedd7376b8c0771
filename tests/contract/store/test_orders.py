"""What orders, attempts, dispatches and leases promise."""

from __future__ import annotations

import pytest

from swingbot.core.access.roles import Role
from swingbot.core.model.records import UNTRUSTED, BootKey, KernelTrust, Variant
from swingbot.service.access import create_token, revoke_token
from swingbot.service.ports.access import NewToken
from tests.contract.store.world import (
    REFUSED,
    TESTBOX,
    Lab,
    Store,
    a_bisection,
    a_boot,
    a_boot_order,
    a_build,
    a_comparison,
    a_lab,
    a_variant,
    end_dispatch,
    facts_of,
    sha256,
)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, 3)


def test_there_is_one_order_for_a_kernel_and_a_second_asker_only_raises_its_priority(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        first = tx.orders.ensure_build(lab.kernels[0], 20)
        assert (first.state, first.budget, first.testbox) == ("waiting", 3, None)
        assert tx.orders.ensure_build(lab.kernels[0], 30).priority == 30
        assert tx.orders.ensure_build(lab.kernels[0], 10).priority == 30
        assert [order.id for order in tx.orders.open()] == [first.id]
        assert (
            tx.orders.of_build(lab.kernels[0].build_key)
            == tx.orders.by_number([first.id])[first.id]
        )
        assert tx.orders.of_build(lab.kernels[1].build_key) is None


def test_boot_orders_differ_by_kernel_series_and_k(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        made = [
            a_boot_order(tx, lab),
            a_boot_order(tx, lab, k=1),
            a_boot_order(tx, lab, kernel=1),
            a_boot_order(tx, lab, series="c1"),
        ]
        assert len({order.id for order in made}) == 4
        assert a_boot_order(tx, lab, k=1).id == made[1].id
        assert (made[1].testbox, made[1].spec, made[1].k) == (TESTBOX, lab.spec, 1)


def test_a_bisection_withdraws_its_request_for_an_order(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order, number, comparison = (
            a_boot_order(tx, lab),
            a_bisection(tx, lab),
            a_comparison(tx, lab),
        )
        tx.orders.want(order.id, bisection=number)
        tx.orders.want(order.id, comparison=comparison)
        tx.orders.unwant(order.id, bisection=number)
        assert tx.orders.wanted(bisection=number) == []
        assert [one.id for one in tx.orders.wanted(comparison=comparison)] == [order.id]


def test_open_boots_are_known_by_their_running_comparison(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        running, waiting = a_comparison(tx, lab), a_comparison(tx, lab)
        tx.comparisons.set_status(running, "running")
        made = [a_boot_order(tx, lab, k=k) for k in range(3)]
        build = tx.orders.ensure_build(lab.kernels[0], 0)
        for order in (made[1], made[0], build, made[2]):
            tx.orders.want(order.id, comparison=running)
        tx.orders.want(made[0].id, comparison=waiting)
        tx.orders.want(made[0].id, bisection=a_bisection(tx, lab))
        tx.orders.set_state(made[2].id, "done")
        assert tx.orders.open_boots_of_comparisons() == {running: [made[0].id, made[1].id]}


def test_a_comparison_is_unfinished_while_it_needs_an_open_order(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        comparison, other = a_comparison(tx, lab), a_comparison(tx, lab, kind="anchor")
        first, second = a_boot_order(tx, lab), a_boot_order(tx, lab, k=1)
        for order in (first, second):
            tx.orders.want(order.id, comparison=comparison)
        tx.orders.want(second.id, bisection=a_bisection(tx, lab))
        assert tx.orders.unfinished_comparisons() == {comparison}
        tx.orders.set_state(first.id, "done")
        assert tx.orders.unfinished_comparisons() == {comparison}
        tx.orders.set_state(second.id, "failed", "lost")
        assert tx.orders.unfinished_comparisons() == set()
        tx.orders.want(a_boot_order(tx, lab, k=2).id, comparison=other)
        assert tx.orders.unfinished_comparisons() == {other}


def test_boots_are_ordered_together_as_they_are_one_by_one(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        comparison, variant = a_comparison(tx, lab), lab.kernels[0]
        before = a_boot_order(tx, lab, k=1)
        tx.orders.set_state(before.id, "failed", "lost")
        keys = [
            BootKey(
                build_key=variant.build_key,
                testbox=TESTBOX,
                spec=lab.spec,
                series="",
                k=k,
                purpose=purpose,
            )
            for k, purpose in ((2, "search"), (1, "search"), (0, "fresh"), (2, "search"))
        ]
        boots = [(key, variant) for key in keys]
        tx.orders.ensure_boots(boots, 30, comparison=comparison)
        tx.orders.ensure_boots(boots, 20, comparison=comparison)
        tx.orders.ensure_boots([], 20, comparison=comparison)
        found = {order.key: order for order in tx.orders.wanted(comparison=comparison)}
        assert list(found) == [str(keys[1]), str(keys[0]), str(keys[2])]
        assert found[str(keys[1])].id == before.id
        assert [order.budget for order in found.values()] == [6, 3, 3]
        assert {(order.state, order.priority) for order in found.values()} == {("waiting", 30)}
        again = tx.orders.ensure_boots(boots, 0)
        assert again == [found[str(key)] for key in keys[:3]]


def test_several_orders_are_read_and_set_at_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        made = [a_boot_order(tx, lab, k=k).id for k in range(3)]
        assert tx.orders.by_number([]) == {}
        tx.orders.set_states([], "done")
        tx.orders.set_states(made[:2], "cancelled", "no longer needed")
        found = tx.orders.by_number([*made, 10**9])
        assert found.keys() == set(made)
        assert [(found[n].state, found[n].reason) for n in made] == [
            ("cancelled", "no longer needed"),
            ("cancelled", "no longer needed"),
            ("waiting", None),
        ]


def test_an_order_is_answered_by_the_same_boot_of_an_identical_image(
    store: Store, lab: Lab
) -> None:
    image = a_build(store, lab)
    a_build(store, lab, kernel=1, kernel_build=same_image(lab, image))
    a_boot(store, lab, k=0)
    with store.transaction() as tx:
        assert tx.orders.answered() == set()
        same = a_boot_order(tx, lab, kernel=1, k=0)
        a_boot_order(tx, lab, kernel=1, k=1)
        a_boot_order(tx, lab, kernel=1, k=0, series="c1")
        assert tx.orders.answered() == {same.id}
        tx.orders.set_state(same.id, "done")
        assert tx.orders.answered() == set()


def same_image(lab: Lab, image: str) -> dict[str, object]:
    """The second kernel, built into an image that is known already."""
    return {
        "build_key": lab.kernels[1].build_key,
        "image_sha256": image,
        "compiler_version": "gcc 12",
        "cached": False,
    }


def test_asking_for_a_cancelled_or_failed_order_makes_it_wait_again(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_boot_order(tx, lab).id
        tx.orders.set_state(number, "cancelled", "no longer needed")
        again = a_boot_order(tx, lab)
        assert (again.state, again.reason, again.budget) == ("waiting", None, 3)
        tx.orders.set_state(number, "failed", "given up")
        again = a_boot_order(tx, lab)
        assert (again.state, again.reason, again.budget) == ("waiting", None, 6)
        tx.orders.set_state(number, "done")
        assert a_boot_order(tx, lab).state == "done"


def test_open_orders_come_by_priority_then_age(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        low, high, other = (
            a_boot_order(tx, lab, k=k, priority=p) for k, p in ((0, 10), (1, 30), (2, 10))
        )
        done = a_boot_order(tx, lab, k=3)
        tx.orders.set_state(done.id, "done")
        tx.orders.set_state(other.id, "running")
        assert [order.id for order in tx.orders.open()] == [high.id, low.id, other.id]


def test_wanting_twice_is_wanting_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        comparison, bisection = a_comparison(tx, lab), a_bisection(tx, lab)
        orders = [a_boot_order(tx, lab, k=k).id for k in range(3)]
        for order in (orders[1], orders[0], orders[0]):
            tx.orders.want(order, comparison=comparison)
        tx.orders.want(orders[0], bisection=bisection)
        assert [o.id for o in tx.orders.wanted(comparison=comparison)] == orders[:2]
        assert [o.id for o in tx.orders.wanted(bisection=bisection)] == orders[:1]


def test_an_order_is_wanted_by_somebody(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, lab).id
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.orders.want(order)


def test_an_order_is_unwanted_once_all_who_want_it_are_over(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        comparison, bisection = a_comparison(tx, lab), a_bisection(tx, lab)
        shared, own, lost = (a_boot_order(tx, lab, k=k).id for k in range(3))
        tx.orders.want(shared, comparison=comparison)
        tx.orders.want(shared, bisection=bisection)
        tx.orders.want(own, comparison=comparison)
        assert [o.id for o in tx.orders.unwanted()] == [lost]
        tx.comparisons.set_status(comparison, "cancelled")
        assert [o.id for o in tx.orders.unwanted()] == [own, lost]
        tx.bisections.conclude(bisection, "culprit", {}, None)
        assert [o.id for o in tx.orders.unwanted()] == [shared, own, lost]
        tx.orders.set_state(own, "cancelled")
        assert [o.id for o in tx.orders.unwanted()] == [shared, lost]


def test_orders_of_anchors_are_open_and_wanted_by_one(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        anchor, other = a_comparison(tx, lab, kind="anchor"), a_comparison(tx, lab)
        orders = [a_boot_order(tx, lab, k=k).id for k in range(3)]
        tx.orders.want(orders[0], comparison=anchor)
        tx.orders.want(orders[1], comparison=anchor)
        tx.orders.want(orders[2], comparison=other)
        tx.orders.set_state(orders[1], "done")
        assert tx.orders.of_anchors() == {orders[0]}


def test_open_orders_of_one_kind(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        boot, build = a_boot_order(tx, lab), tx.orders.ensure_build(lab.kernels[0], 1)
        assert [order.id for order in tx.orders.open("boot")] == [boot.id]
        assert [order.id for order in tx.orders.open("build")] == [build.id]


def test_ready_orders_come_by_priority_with_the_trust_of_their_kernels(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        kernel = a_variant(tx, lab.tree, 7, trust=UNTRUSTED)
        odd = Lab(tree=lab.tree, kernels=[kernel], spec=lab.spec)
        boot, waiting = (a_boot_order(tx, odd, k=k).id for k in range(2))
        high = a_boot_order(tx, lab, priority=90).id
        build = tx.orders.ensure_build(kernel, 1).id
        tx.orders.set_states([boot, high, build], "ready")
        ready = [(order.id, order.trust) for order in tx.orders.ready(())]
        assert ready == [(high, "trusted"), (boot, "untrusted"), (build, "untrusted")]
        assert waiting not in dict(ready)


def test_orders_of_a_kernel_that_only_an_ended_token_vouched_for(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tokens = [
            create_token(
                tx.access,
                NewToken(who="Ada", role=Role.SUBMITTER, digest=sha256(n), vouches=True, by="root"),
            )
            for n in range(2)
        ]

        def vouched(number: int, token: int, like: Variant | None = None) -> Variant:
            key = like.build_key if like is not None else sha256("key", number)
            trust = KernelTrust("trusted", token)
            return tx.variants.add(lab.tree, facts_of(number), key, "request", trust=trust)

        alone, shared = vouched(7, tokens[0]), vouched(8, tokens[0])
        again, known = vouched(9, tokens[1], shared), vouched(10, tokens[0], lab.kernels[0])
        builds = [tx.orders.ensure_build(one, 1).id for one in (alone, shared, known)]
        tx.orders.set_state(builds[0], "running")
        assert tx.variants.unvouched() == {}
        revoke_token(tx.access, tokens[0], by="root")
        ended = tx.variants.unvouched()
        assert list(ended) == builds[:1] and ended[builds[0]].number == tokens[0]
        revoke_token(tx.access, tokens[1], by="root")
        assert again.build_key == shared.build_key and list(tx.variants.unvouched()) == builds[:2]
        tx.variants.add(lab.tree, facts_of(7), alone.build_key, "request")
        assert list(tx.variants.unvouched()) == builds[1:2], "an operator vouches for it now"
        tx.orders.set_states(builds, "failed")
        assert tx.variants.unvouched() == {}


def test_untried_boots_of_leased_testboxes_are_not_ready(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        untried, tried = (a_boot_order(tx, lab, k=k) for k in range(2))
        build = tx.orders.ensure_build(lab.kernels[0], 1).id
        tx.orders.set_states([untried.id, tried.id, build], "ready")
        tx.attempts.add(tried.id, 1)
        assert untried.testbox is not None
        assert {order.id for order in tx.orders.ready([untried.testbox])} == {tried.id, build}
        assert {order.id for order in tx.orders.ready(["another"])} == {
            untried.id,
            tried.id,
            build,
        }


def test_failed_orders_are_found_by_kind_and_key(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        builds = [tx.orders.ensure_build(kernel, 1) for kernel in lab.kernels]
        for order in (builds[1], builds[0], a_boot_order(tx, lab)):
            tx.orders.set_state(order.id, "failed", "why")
        keys = [kernel.build_key for kernel in lab.kernels]
        assert [o.id for o in tx.orders.failed("build", keys)] == [builds[0].id, builds[1].id]
        assert tx.orders.failed("build", keys[2:]) == []
        assert tx.orders.failed("build", keys)[0].reason == "why"


def test_a_reopened_order_is_ready_with_its_new_budget(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = tx.orders.ensure_build(lab.kernels[0], 1)
        tx.orders.set_state(order.id, "done")
        tx.orders.reopen(order.id, 5)
        again = tx.orders.by_number([order.id])[order.id]
        assert again is not None and (again.state, again.budget) == ("ready", 5)


def test_builds_ahead_are_dropped_unless_they_are_kept_begun_or_important(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        bisection = a_bisection(tx, lab)
        dropped, kept, begun = (tx.orders.ensure_build(kernel, 1).id for kernel in lab.kernels)
        important = tx.orders.ensure_build(a_variant(tx, lab.tree, 9), 30).id
        boot = a_boot_order(tx, lab, priority=1).id
        tx.orders.set_state(begun, "running")
        for order in (dropped, kept, begun, important, boot):
            tx.orders.want(order, bisection=bisection)
        tx.orders.drop_ahead(bisection, 1, [kept])
        assert [o.id for o in tx.orders.wanted(bisection=bisection)] == [
            kept,
            begun,
            important,
            boot,
        ]
        assert [o.id for o in tx.orders.unwanted()] == [dropped]


def test_what_a_testbox_lost_is_given_back_to_its_open_orders(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tried, _, over = (a_boot_order(tx, lab, k=k).id for k in range(3))
        for number in (1, 2):
            tx.attempts.declare_dead(tx.attempts.add(tried, number), "lost")
        tx.orders.set_state(over, "done")
        tx.orders.give_back_budget(TESTBOX, 3)
        budgets = [a_boot_order(tx, lab, k=k).budget for k in range(3)]
        assert budgets == [5, 3, 3]
        tx.orders.give_back_budget(TESTBOX, 1)
        assert [a_boot_order(tx, lab, k=k).budget for k in range(3)] == budgets


def test_an_order_has_one_running_attempt(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, lab).id
        first = tx.attempts.add(order, 1)
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.attempts.add(order, 2)
    with store.transaction() as tx:
        tx.attempts.declare_dead(first, "lost")
        assert tx.attempts.add(order, 2) != first
        assert [attempt.number for attempt in tx.attempts.in_state("running")] == [2]
        assert [attempt.id for attempt in tx.attempts.in_state("dead")] == [first]


def test_what_a_transaction_did_is_undone_when_it_fails(store: Store, lab: Lab) -> None:
    def fail() -> None:
        with store.transaction() as tx:
            tx.attempts.add(a_boot_order(tx, lab).id, 1)
            tx.comparisons.set_status(a_comparison(tx, lab), "running")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.transaction() as tx:
        assert not tx.orders.open()
        assert not tx.attempts.in_state("running")
        assert not tx.comparisons.open()


def test_an_attempt_shows_its_latest_dispatch(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, lab).id
        attempt = tx.attempts.add(order, 1)
        (bare,) = tx.attempts.in_state("running")
        assert (bare.order_id, bare.dispatch_number, bare.dispatch_state) == (order, 0, None)
        tx.dispatches.add(order, attempt, 1, 1, "boot-box")
        assert tx.dispatches.by_builder() == {"boot-box": 1}
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.dispatches.add(order, attempt, 1, 2, "boot-box")
    with store.transaction() as tx:
        end_dispatch(tx, attempt, "retry")
        (lost,) = tx.attempts.in_state("running")
        assert (lost.dispatch_number, lost.dispatch_state, lost.dispatch_result) == (
            1,
            "over",
            "retry",
        )
        assert tx.dispatches.by_builder() == {}
        tx.dispatches.add(order, attempt, 1, 2, "boot-box")
        (again,) = tx.attempts.in_state("running")
        assert (again.dispatch_number, again.dispatch_state) == (2, "wanted")
        assert tx.dispatches.by_builder() == {"boot-box": 1}
    with store.transaction() as tx:
        tx.attempts.end(attempt, {"status": "up"})
        assert tx.dispatches.by_builder() == {}, "its worker is free in a moment"


def test_the_age_of_an_attempt_is_in_seconds(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.attempts.add(a_boot_order(tx, lab).id, 1)
    store.pass_time(100.0)
    with store.transaction() as tx:
        (attempt,) = tx.attempts.in_state("running")
    assert attempt.age_seconds == pytest.approx(100.0, abs=30.0)


def test_an_outcome_is_ingested_by_one_caller(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        attempt = tx.attempts.add(a_boot_order(tx, lab).id, 1)
    with store.transaction() as tx:
        tx.attempts.end(attempt, {"status": "up"})
        (ended,) = tx.attempts.in_state("ended", ingested=False)
        assert ended.outcome == {"status": "up"}
        assert tx.attempts.mark_ingested(attempt)
        assert not tx.attempts.mark_ingested(attempt)
        assert tx.attempts.in_state("ended", ingested=False) == []
        assert [a.id for a in tx.attempts.in_state("ended", ingested=True)] == [attempt]
        assert [a.id for a in tx.attempts.in_state("ended")] == [attempt]


def test_what_was_made_of_an_order_is_counted_with_the_last_reason(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, lab).id
        assert tx.attempts.made(order) == (0, 1e9, None)
        tx.attempts.declare_dead(tx.attempts.add(order, 1), "lost")
        second = tx.attempts.add(order, 2)
    with store.transaction() as tx:
        tx.attempts.end(second, {"status": "infra", "reason": "the disk is full"})
    store.pass_time(50.0)
    with store.transaction() as tx:
        made, ago, why = tx.attempts.made(order)
        assert (made, why) == (2, "the disk is full")
        assert ago == pytest.approx(50.0, abs=30.0)
        tx.attempts.set_reason(second, "made again")
        assert tx.attempts.made(order)[2] == "made again"
        other = a_boot_order(tx, lab, k=1).id
        assert tx.attempts.made_of([order, other])[other] == (0, 1e9, None)
        assert tx.attempts.made_of([order, other])[order][::2] == (2, "made again")


def test_a_testbox_has_one_lease(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        one, other = (tx.attempts.add(a_boot_order(tx, lab, k=k).id, 1) for k in range(2))
        assert tx.attempts.take_lease(TESTBOX, one)
        assert not tx.attempts.take_lease(TESTBOX, other)
        assert not tx.attempts.take_lease(TESTBOX, one)
        assert tx.attempts.leased() == {TESTBOX}
        tx.attempts.release_lease(other)
        assert tx.attempts.leased() == {TESTBOX}
        tx.attempts.release_lease(one)
        tx.attempts.release_lease(one)
        assert tx.attempts.leased() == set()


def test_a_dead_attempt_holds_no_lease_and_stays_as_it_died(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, lab).id
        attempt = tx.attempts.add(order, 1)
        tx.attempts.take_lease(TESTBOX, attempt)
        tx.attempts.declare_dead(attempt, "lost")
        tx.attempts.declare_dead(attempt, "lost again")
        assert tx.attempts.leased() == set()
        assert tx.attempts.made(order)[2] == "lost"


def test_a_lease_lapses_when_its_controller_falls_silent(store: Store) -> None:
    with store.transaction() as tx:
        lab = a_lab(tx, testboxes=(TESTBOX, "node"))
        order = a_boot_order(tx, lab).id
        attempt = tx.attempts.add(order, 1)
        for name in (TESTBOX, "node"):
            assert tx.attempts.take_lease(name, attempt)
    store.pass_time(1000.0)
    with store.transaction() as tx:
        assert tx.attempts.lapsed_leases(300.0) == []  # no controller has begun
    with store.transaction() as tx:
        tx.leases.hold(attempt, "lab1", None, 300.0)
        assert tx.attempts.lapsed_leases(300.0) == []
    store.pass_time(400.0)
    with store.transaction() as tx:
        (lapse,) = tx.attempts.lapsed_leases(300.0)
    assert (lapse.testbox, lapse.attempt, lapse.order, lapse.holder) == (
        TESTBOX,
        attempt,
        order,
        "lab1",
    )
    assert lapse.silent_seconds == pytest.approx(100.0, abs=30.0)


def test_a_testbox_idles_since_its_last_order_ended(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.testboxes.idle_seconds([TESTBOX]) == {}
        order = a_boot_order(tx, lab).id
        assert tx.testboxes.idle_seconds([TESTBOX, "other"]) == {TESTBOX: 0.0}
        assert tx.testboxes.idle_seconds([TESTBOX], queue=False) == {}
        tx.orders.set_state(order, "running")
        assert tx.testboxes.idle_seconds([TESTBOX], queue=False) == {TESTBOX: 0.0}
        tx.orders.set_state(order, "done")
    store.pass_time(60.0)
    with store.transaction() as tx:
        assert tx.testboxes.idle_seconds([TESTBOX])[TESTBOX] == pytest.approx(60.0, abs=30.0)


def test_the_queue_stands_still_since_the_last_attempt_ended(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        empty = tx.alerts.queue_stillness()
        assert (empty.orders, empty.oldest, empty.still_seconds) == (0, None, 0.0)
    a_build(store, lab)
    with store.transaction() as tx:
        waits, ready = (a_boot_order(tx, lab, k=k).id for k in range(2))
        tx.orders.set_state(ready, "ready")
    store.pass_time(500.0)
    with store.transaction() as tx:
        found = tx.alerts.queue_stillness()
        assert (found.orders, found.oldest) == (1, ready)
        assert found.still_seconds == pytest.approx(500.0, abs=30.0)
        tx.testboxes.set_state(TESTBOX, "quarantined", "moved")
        assert tx.alerts.queue_stillness().orders == 0
        assert waits != ready


def test_a_lease_that_is_valid_for_too_long_lapses_unless_it_is_renewed(store: Store) -> None:
    with store.transaction() as tx:
        order = a_boot_order(tx, a_lab(tx)).id
        attempt = tx.attempts.add(order, 1)
        assert tx.attempts.take_lease(TESTBOX, attempt)
        tx.leases.hold(attempt, "lab1", None, 3900.0)  # the clock was set back by an hour
        (lapse,) = tx.attempts.lapsed_leases(300.0)
        assert lapse.silent_seconds == 0
        tx.attempts.restart_leases(300.0)
        assert tx.attempts.lapsed_leases(300.0) == []
    store.pass_time(400.0)
    with store.transaction() as tx:
        assert len(tx.attempts.lapsed_leases(300.0)) == 1
        tx.attempts.restart_leases(300.0)
        assert tx.attempts.lapsed_leases(300.0) == []
