"""What comparisons, their rows, swings and anchors promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.records import Arm, Comparison, Swing, base_and_head
from swingbot.core.model.statuses import Reference, SwingState
from swingbot.service.ports import Transaction
from tests.contract.store.world import (
    METRIC,
    REFUSED,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_bisection,
    a_boot_order,
    a_comparison,
    a_lab,
    a_row,
    a_spec,
    commit,
    new_swing,
)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, 3, testboxes=(TESTBOX, "other"))


def known(tx: Transaction, number: int) -> Comparison:
    found = tx.comparisons.get(number)
    assert found is not None
    return found


def a_tip(tx: Transaction, lab: Lab, pct: float = -18.0) -> int:
    """A watch comparison that is done."""
    number = a_comparison(tx, lab, kind="watch")
    tx.comparisons.replace_rows(number, [(lab.spec, a_row(pct=pct))])
    tx.comparisons.set_status(number, "done")
    return number


def a_swing(tx: Transaction, comparison: int, state: SwingState = "open", **more: Any) -> Swing:
    tx.swings.add(new_swing(comparison, direction="worse", change_pct=-18.0, state=state, **more))
    return next(s for s in tx.swings.in_state(state) if s.comparison == comparison)


def test_a_new_comparison_waits(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        parts = [("other", lab.spec), *lab.parts, *lab.parts]
        number = a_comparison(tx, lab, parts=parts, first_k=100, request_key="r")
        assert known(tx, number) == Comparison(
            id=number,
            kind="asked",
            tree=lab.tree.id,
            arms=base_and_head(lab.kernels[0].id, lab.kernels[1].id),
            first_k=100,
            boots=3,
            status="waiting",
            parts=((TESTBOX, lab.spec), ("other", lab.spec)),
            request_key="r",
        )
        assert tx.comparisons.get(number + 1) is None


def test_an_experiment_keeps_its_arms_in_their_order(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        own = a_spec(tx, "another")
        arms = (
            Arm(name="v6.1", variant=lab.kernels[2].id),
            Arm(
                name="never",
                variant=lab.kernels[2].id,
                axes={"cmdline": "never"},
                settings={"cmdline": "transparent_hugepage=never"},
                specs={lab.spec: own},
            ),
            Arm(name="fix", variant=lab.kernels[0].id, from_block=3),
        )
        number = a_comparison(
            tx, lab, kind="experiment", arms=arms, against=("above", "first"), columns=("size",)
        )
        found = known(tx, number)
        assert (found.arms, found.against, found.columns) == (arms, ("above", "first"), ("size",))
        assert [arm.spec(lab.spec) for arm in found.arms] == [lab.spec, own, lab.spec]
        assert [c.id for c in tx.comparisons.open()] == [number]


def test_rows_of_an_experiment_are_of_an_arm_against_another(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab, kind="experiment")
        wanted: list[tuple[Reference, int, int]] = [
            ("above", 2, 1),
            ("above", 1, 0),
            ("first", 2, 0),
        ]
        rows = [
            (lab.spec, replace(a_row(), against=against, arm=arm, reference=reference))
            for against, arm, reference in wanted
        ]
        tx.comparisons.replace_rows(number, rows)
        assert [(r.against, r.arm, r.reference) for r in tx.comparisons.rows(number)] == [
            ("above", 1, 0),
            ("above", 2, 1),
            ("first", 2, 0),
        ]


def test_an_extended_experiment_waits_again_and_keeps_its_rows_until_it_is_judged(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab, kind="experiment", boots=3)
        tx.comparisons.replace_rows(number, [(lab.spec, a_row())])
        tx.comparisons.set_status(number, "done")
        more = Arm(name="late", variant=lab.kernels[2].id, from_block=3)
        tx.comparisons.reopen(number, 6, [more])
        found = known(tx, number)
        assert (found.status, found.boots, found.looks) == ("waiting", 6, 2)
        assert [arm.name for arm in found.arms] == ["base", "head", "late"]
        assert len(tx.comparisons.rows(number)) == 1
        tx.comparisons.replace_rows(number, [])
        assert tx.comparisons.rows(number) == []
        tx.comparisons.set_status(number, "running")
        tx.comparisons.reopen(number, 7)
        assert (known(tx, number).boots, known(tx, number).looks) == (7, 2)


def test_the_looks_that_a_request_states_are_known(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert known(tx, a_comparison(tx, lab)).looks_stated == 1
        assert known(tx, a_comparison(tx, lab, looks_stated=3)).looks_stated == 3


def test_a_table_is_private_until_it_is_published(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert known(tx, a_comparison(tx, lab)).private_to is None
        alone = a_comparison(tx, lab, private_to=[])
        number = a_comparison(tx, lab, private_to=["Ada", "Bob"])
        assert known(tx, alone).private_to == ()
        assert known(tx, number).private_to == ("Ada", "Bob")
        for _ in range(2):
            tx.comparisons.publish(number)
            assert known(tx, number).private_to is None
        assert known(tx, alone).private_to == ()


def test_the_smallest_change_of_interest_is_that_of_the_request_or_of_the_tree(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        assert known(tx, a_comparison(tx, lab)).min_effect_pct is None
        assert known(tx, a_comparison(tx, lab, min_effect_pct=0.5)).min_effect_pct == 0.5
        tree = tx.trees.add(replace(lab.tree, name="mm", min_effect_pct=0.3))
        assert (tx.trees.get(tree.id).min_effect_pct, lab.tree.min_effect_pct) == (0.3, None)
        own = replace(lab, tree=tree)
        assert known(tx, a_comparison(tx, own)).min_effect_pct == 0.3
        assert known(tx, a_comparison(tx, own, min_effect_pct=0.5)).min_effect_pct == 0.5


def test_a_row_that_made_a_swing_is_not_withdrawn(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_tip(tx, lab)
        a_swing(tx, number)
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.comparisons.replace_rows(number, [])


def test_two_arms_of_one_name_are_refused(store: Store, lab: Lab) -> None:
    arms = [Arm(name="fix", variant=kernel.id) for kernel in lab.kernels[:2]]
    with pytest.raises(REFUSED), store.transaction() as tx:
        a_comparison(tx, lab, kind="experiment", arms=arms)


def test_the_same_request_is_the_same_comparison_and_a_change_may_have_several(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tx.trees.add_change(lab.tree.id, "first", commit(0), commit(1))
        (change,) = tx.trees.changes_to_compare()
        asked, watched = (
            a_comparison(tx, lab, request_key="r"),
            a_comparison(tx, lab, change=change.id),
        )
        free = [a_comparison(tx, lab), a_comparison(tx, lab)]
        assert a_comparison(tx, lab, request_key="r", boots=9) == asked
        other = a_comparison(tx, lab, change=change.id)
        assert len({asked, watched, other, *free}) == 5
        assert known(tx, asked).boots == 3
        found = tx.comparisons.of_request("r")
        assert found is not None and found.id == asked
        assert tx.comparisons.of_request("s") is None
        assert tx.trees.changes_to_compare() == []


def test_a_comparison_that_is_over_stays_as_it_is(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number, other = a_comparison(tx, lab), a_comparison(tx, lab)
        tx.comparisons.set_status(number, "running")
        assert [c.id for c in tx.comparisons.open()] == [number, other]
        assert known(tx, number).open
        tx.comparisons.set_status(number, "failed", "no kernel")
        tx.comparisons.set_status(number, "done")
        assert (known(tx, number).status, known(tx, number).reason) == ("failed", "no kernel")
        assert not known(tx, number).open
        assert [c.id for c in tx.comparisons.open()] == [other]


def test_the_first_row_of_a_metric_stays_and_rows_are_sorted(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab)
        given = [
            a_row(metric=metric, pct=pct) for metric, pct in (("b", -18.0), ("a", -5.0), ("b", 1.0))
        ]
        given.append(a_row("other-job", "a"))
        tx.comparisons.replace_rows(number, [(lab.spec, row) for row in given])
        rows = tx.comparisons.rows(number)
        assert [(row.unit_job, row.metric, row.change_pct) for row in rows] == [
            ("other-job", "a", -18.0),
            (UNIT_JOB, "a", -5.0),
            (UNIT_JOB, "b", -18.0),
        ]
        assert {row.spec for row in rows} == {lab.spec}
        assert tx.comparisons.rows(number + 1) == []


def test_only_a_running_comparison_is_extended_and_only_upwards(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab)
        tx.comparisons.extend(number, 5)
        assert known(tx, number).boots == 3
        tx.comparisons.set_status(number, "running")
        tx.comparisons.extend(number, 2)
        assert (known(tx, number).boots, known(tx, number).status) == (3, "running")
        tx.comparisons.extend(number, 5)
        assert (known(tx, number).boots, known(tx, number).status) == (5, "waiting")


def test_only_a_running_comparison_is_renewed_and_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab)
        tx.comparisons.set_status(number, "running")
        tx.comparisons.renew(number, 3)
        assert (known(tx, number).first_k, known(tx, number).status) == (3, "waiting")
        tx.comparisons.set_status(number, "running")
        tx.comparisons.renew(number, 3)
        assert known(tx, number).status == "running"


def test_a_part_moves_to_another_testbox_with_its_orders(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number, spec = a_comparison(tx, lab), a_spec(tx, "second")
        order = a_boot_order(tx, lab).id
        tx.orders.want(order, comparison=number)
        tx.comparisons.set_status(number, "running")
        assert not tx.comparisons.move_part(number, TESTBOX, spec, "other")
        assert tx.comparisons.move_part(number, TESTBOX, lab.spec, "other")
        assert known(tx, number).parts == (("other", lab.spec),)
        assert known(tx, number).status == "waiting"
        assert tx.orders.wanted(comparison=number) == []
        assert not tx.comparisons.move_part(number, TESTBOX, lab.spec, "other")


def test_a_part_does_not_move_to_a_testbox_that_has_it(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_comparison(tx, lab, parts=[(TESTBOX, lab.spec), ("other", lab.spec)])
        assert not tx.comparisons.move_part(number, TESTBOX, lab.spec, "other")
        assert len(known(tx, number).parts) == 2


def test_the_latest_tip_is_the_last_watch_comparison_that_is_done(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.comparisons.latest_tip(lab.tree.id) is None
        a_tip(tx, lab)
        last = a_tip(tx, lab)
        a_comparison(tx, lab, kind="watch")
        tx.comparisons.set_status(a_comparison(tx, lab), "done")
        found = tx.comparisons.latest_tip(lab.tree.id)
        assert found is not None and found.id == last
        assert tx.comparisons.latest_tip(lab.tree.id + 1) is None


def test_a_row_has_one_swing(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        number = a_tip(tx, lab)
        swing = a_swing(
            tx, number, "suspected", source="creep", anchor=lab.kernels[0].id, reason="w"
        )
        assert (swing.source, swing.anchor, swing.bisection) == ("creep", lab.kernels[0].id, None)
        tx.swings.add(new_swing(number, direction="better", change_pct=2.0, state="not_bisected"))
        assert tx.swings.in_state("not_bisected") == []
        assert tx.swings.in_state("not_bisected", "suspected") == [swing]
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.swings.add(new_swing(number, metric="no.such.row"))


def test_a_swing_keeps_its_bisection_until_another_is_named(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        swing, bisection = a_swing(tx, a_tip(tx, lab)), a_bisection(tx, lab)
        tx.swings.set_state(swing.id, "bisecting", bisection)
        tx.swings.set_state(swing.id, "explained")
        (found,) = tx.swings.in_state("explained")
        assert found.bisection == bisection


def test_stage_two_weighs_a_suspected_swing_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        swing = a_swing(tx, a_tip(tx, lab), "suspected", reason="-18 %")
        tx.swings.set_proof(swing.id, proof := a_comparison(tx, lab, kind="prove"))
        tx.swings.set_proof(swing.id, a_comparison(tx, lab, kind="prove"))
        tx.swings.weigh(swing.id, "open", {"pairs": 4}, -17.0)
        tx.swings.weigh(swing.id, "refuted", {}, 1.0)
        (found,) = tx.swings.in_state("open", "refuted")
        assert (found.state, found.change_pct, found.proof) == ("open", -17.0, proof)


def test_a_refuted_swing_keeps_its_change_if_none_is_given(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        swing = a_swing(tx, a_tip(tx, lab), "suspected")
        tx.swings.weigh(swing.id, "refuted", {"pairs": 4})
        (found,) = tx.swings.in_state("refuted")
        assert found.change_pct == -18.0


def test_levels_of_earlier_tips_come_latest_first(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tips = [a_tip(tx, lab, pct=float(-n)) for n in range(4)]
        key = (lab.tree.id, TESTBOX, UNIT_JOB, METRIC)
        levels = tx.swings.recent_levels(*key, before=tips[3], most=2)
        assert [(level.comparison, level.mean) for level in levels] == [
            (tips[2], 98.0),
            (tips[1], 99.0),
        ]
        assert (levels[0].commit, levels[0].boots) == (commit(1), 3)
        assert tx.swings.recent_levels(*key, before=tips[0], most=2) == []


def test_older_levels_end_at_the_last_swing(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tips = [a_tip(tx, lab) for _ in range(4)]
        key = (lab.tree.id, TESTBOX, UNIT_JOB, METRIC)
        assert tx.swings.last(*key, before=tips[3]) is None
        a_swing(tx, tips[0])
        assert tx.swings.last(*key, before=tips[3]) == tips[0]
        tx.swings.weigh(a_swing(tx, tips[1], "suspected").id, "refuted", {})
        assert tx.swings.last(*key, before=tips[3]) == tips[0]
        history = a_swing(tx, tips[2], "suspected", source="history")
        tx.swings.weigh(history.id, "refuted", {})
        assert tx.swings.last(*key, before=tips[3]) == tips[2]
        assert tx.swings.last(*key, before=tips[2]) == tips[0]


def test_spreads_end_at_a_refuted_change_of_the_spread_and_levels_do_not(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tips = [a_tip(tx, lab) for _ in range(3)]
        key = (lab.tree.id, TESTBOX, UNIT_JOB, METRIC)
        for tip, source in zip(tips, ("spread", "history"), strict=False):
            anchor = lab.kernels[0].id if source == "spread" else None
            swing = a_swing(tx, tip, "suspected", source=source, anchor=anchor)
            tx.swings.weigh(swing.id, "refuted", {})
        assert tx.swings.last(*key, before=tips[2], refuted=("spread",)) == tips[0]
        assert tx.swings.last(*key, before=tips[2]) == tips[1]
        assert tx.swings.last(*key, before=tips[1]) is None


def test_what_known_culprits_make_leaves_the_levels_before_it_in_force(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tips = [a_tip(tx, lab) for _ in range(2)]
        tx.swings.weigh(a_swing(tx, tips[0], "suspected").id, "known", {"reason": "still there"})
        assert [swing.state for swing in tx.swings.in_state("known")] == ["known"]
        assert tx.swings.last(lab.tree.id, TESTBOX, UNIT_JOB, METRIC, before=tips[1]) is None


def test_a_swing_is_looked_for_in_a_part_of_its_range_with_a_proof_of_its_own(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tip = a_tip(tx, lab)
        swing, (first, last) = a_swing(tx, tip, "suspected"), [each.id for each in lab.kernels[:2]]
        tx.swings.set_proof(swing.id, tip)
        tx.swings.narrow(swing.id, first, last, -3.0)
        (found,) = tx.swings.in_state("suspected")
        assert (found.anchor, found.upto, found.proof) == (first, last, None)
        assert (found.source, found.change_pct) == ("expected", -3.0)
        tx.swings.weigh(swing.id, "refuted", {})
        tx.swings.narrow(swing.id, None, None, -1.0)
        assert [each.upto for each in tx.swings.in_state("refuted")] == [last]


def test_swings_of_a_bisection_are_those_of_the_ones_above_it_too(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        above, below = a_bisection(tx, lab), a_bisection(tx, lab, request_key="branch")
        tx.bisections.set_parent(below, above, commit(1))
        one, other = (a_swing(tx, a_tip(tx, lab)) for _ in range(2))
        tx.swings.set_state(one.id, "bisecting", above)
        tx.swings.set_state(other.id, "bisecting", below)
        assert [s.id for s in tx.swings.of_bisection(above)] == [one.id]
        assert [s.id for s in tx.swings.of_bisection(below)] == [one.id, other.id]
        tx.swings.set_state(one.id, "refuted")
        assert [s.id for s in tx.swings.of_bisection(below)] == [other.id]


def test_the_first_mark_of_an_anchor_stays(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        anchor, asked = a_comparison(tx, lab, kind="anchor"), a_comparison(tx, lab)
        for number in (anchor, asked):
            tx.anchors.mark(number, "moved")
            tx.anchors.mark(number, "again")
        assert [known(tx, number).reason for number in (anchor, asked)] == ["moved", None]


def test_anchors_are_found_by_testbox_and_status(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        one, two = (a_comparison(tx, lab, kind="anchor") for _ in range(2))
        a_comparison(tx, lab, kind="anchor", parts=[("other", lab.spec)])
        a_comparison(tx, lab)
        tx.comparisons.set_status(two, "done")
        assert [c.id for c in tx.anchors.of_testbox(TESTBOX, "waiting", "done")] == [one, two]
        assert [c.id for c in tx.anchors.of_testbox(TESTBOX, "done")] == [two]


def test_the_kernel_of_an_anchor_is_that_of_the_last_one(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.anchors.kernel(TESTBOX) is None
        a_tip(tx, lab)
        assert tx.anchors.kernel(TESTBOX) == (lab.tree.id, lab.kernels[0].id, lab.spec)
        anchor = a_comparison(tx, lab, kind="anchor", base=lab.kernels[2].id)
        a_tip(tx, lab)
        tx.comparisons.set_status(anchor, "done")
        assert tx.anchors.kernel(TESTBOX) == (lab.tree.id, lab.kernels[2].id, lab.spec)
        assert tx.anchors.kernel("other") is None


def test_a_new_testbox_is_screened_with_what_is_asked_of_it(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.anchors.asked_kernel(TESTBOX) is None
        terms = BisectionTerms(testboxes=(TESTBOX, "other"))
        a_bisection(tx, lab, terms=terms, points=[(kernel, 1.0) for kernel in lab.kernels[1:]])
        assert tx.anchors.asked_kernel("other") == (lab.tree.id, lab.kernels[1].id, lab.spec)
        number = a_comparison(tx, lab)
        assert tx.anchors.asked_kernel(TESTBOX) == (lab.tree.id, lab.kernels[0].id, lab.spec)
        tx.comparisons.set_status(number, "done")
        assert tx.anchors.asked_kernel(TESTBOX) == (lab.tree.id, lab.kernels[1].id, lab.spec)
