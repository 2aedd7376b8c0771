"""What the tips of a branch show as a history, once another one of them is measured."""

from __future__ import annotations

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Comparison, TreeHistory
from swingbot.core.stats.findings import Findings, look
from swingbot.core.thresholds import HISTORY_TIPS
from swingbot.service.ports import Transaction


def note_history(tx: Transaction, comparison: Comparison, row: ComparisonRow) -> None:
    """Look at the last tips of a headline metric, the one of this watch comparison among them, and store what they show."""
    if row.head.mean is None:
        return
    levels = tx.swings.recent_levels(
        comparison.tree, *row.key, before=comparison.id + 1, most=HISTORY_TIPS
    )[::-1]
    found = look([level.mean for level in levels])
    tips = {
        str(at): {
            "commit": levels[at].commit,
            "comparison": f"c{levels[at].comparison}",
        }
        for at in sorted(_named(found))
    }
    tx.histories.put(
        TreeHistory(
            tree=comparison.tree,
            testbox=row.testbox,
            unit_job=row.unit_job,
            metric=row.metric,
            upto=comparison.id,
            findings=found.to_json() | {"tips": tips},
        )
    )


def _named(found: Findings) -> set[int]:
    """Tips that the findings speak of, by number."""
    named = {0, found.points - 1}
    for change in found.changes:
        named |= {change.at, change.first, change.last}
    for level in found.levels:
        named |= {level.first, level.last}
    if found.spread is not None:
        named.add(found.spread.at)
    return named
