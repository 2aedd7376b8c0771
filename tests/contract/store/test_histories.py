"""What is promised of the histories of watched branches."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import TreeHistory
from tests.contract.store.world import TESTBOX, UNIT_JOB, Store, a_comparison, a_lab, a_tree


def test_a_history_is_replaced_by_a_later_one_and_not_by_an_earlier(store: Store) -> None:
    with store.transaction() as tx:
        lab, other = a_lab(tx, 3), a_tree(tx, "other")
        tips = [a_comparison(tx, lab, kind="watch", request_key=key) for key in "ab"]
        first = TreeHistory(
            tree=lab.tree.id,
            testbox=TESTBOX,
            unit_job=UNIT_JOB,
            metric="m.ops",
            upto=tips[0],
            findings={"points": 1, "tips": {}},
        )
        later = replace(first, upto=tips[1], findings={"points": 2, "tips": {}})
        for each in (first, later, first, replace(first, metric="a.ops")):
            tx.histories.put(each)
        assert tx.histories.of(lab.tree.id) == [replace(first, metric="a.ops"), later]
        tx.histories.put(replace(later, findings={"points": 3, "tips": {}}))
        assert tx.histories.of(lab.tree.id)[1].findings["points"] == 3
        assert tx.histories.of(other.id) == []
