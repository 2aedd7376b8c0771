"""Measure a culprit that watching found against its parent, with every job of its tree.

That table is the report's, and it tells which other swings the same commit explains.
"""

from __future__ import annotations

from typing import Final

from swingbot.core.plan import swings as plan
from swingbot.service.make_variants import variant_of
from swingbot.service.ports import Lab, Store

# Boots that neither raised the alarm nor took part in the search: the numbers that are printed come from these.
FRESH_K: Final = 100
BOOTS: Final = 3


def attribute_incidents(lab: Lab, store: Store) -> None:
    """Open the comparison of each new culprit with its parent."""
    for incident, tree_id, culprit_id, bisection_id in store.incidents_to_attribute():
        culprit, tree = store.variant(culprit_id), store.tree_by_id(tree_id)
        told = next(c for c in store.conclusion(bisection_id)["culprits"] if c["commit"] == culprit.commit)
        parent = variant_of(lab, store, tree, told["parent"])
        parts = {part for swing in store.swings_of_bisection(bisection_id) for part in _parts(store, swing.comparison)}
        comparison = store.add_comparison(
            kind="attribute",
            tree=tree.id,
            base=parent.id,
            head=culprit.id,
            boots=BOOTS,
            parts=sorted(parts),
            first_k=FRESH_K,
            request_key=f"incident:{incident}",
        )
        store.set_incident_comparison(incident, comparison)


def _parts(store: Store, comparison: int) -> tuple[tuple[str, str], ...]:
    found = store.comparison(comparison)
    assert found is not None
    return found.parts


def explain_swings(lab: Lab, store: Store) -> None:
    """Close open swings that a culprit of the same comparison accounts for."""
    for incident, attributed in store.incidents_to_report():
        rows = {(row["testbox"], row["unit_job"], row["metric"]): row for row in store.rows(attributed)}
        for bisection in store.bisections_of_incident(incident):
            looked_at = {swing.comparison for swing in store.swings_of_bisection(bisection)}
            for swing in store.swings("open", "suspected"):
                if swing.comparison in looked_at and plan.explains(rows.get((swing.testbox, swing.unit_job, swing.metric)), swing.change_pct):
                    store.set_swing(swing.id, "explained", bisection)
