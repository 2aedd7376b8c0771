"""Histories over the tips of watched branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from swingbot_jobs import codec

from .rows import Row, rows, shown

if TYPE_CHECKING:  # the functions import it: it takes numpy, which few verbs need
    from swingbot.core.stats.findings import BisectedStep

_OF: Final = """SELECT h.testbox, h.unit_job, h.metric, h.upto, h.findings FROM tree_history h
WHERE h.tree = :tree ORDER BY h.metric, h.testbox, h.unit_job"""
# A branch of a merge is searched by a bisection of its own, whose culprit is the better one. Tips
# after good, up to bad, may be those with which the culprit came.
_BISECTED: Final = """
WITH tips AS MATERIALIZED (
  SELECT commit, place FROM v_tips WHERE tree = (SELECT name FROM tree WHERE id = :tree)
)
SELECT b.id, b.testbox, b.unit_job, b.metric, b.conclusion->'culprit'->>'commit' AS culprit,
  (b.conclusion->>'change_pct')::double precision AS pct,
  (b.conclusion->'interval_pct'->>0)::double precision AS low_pct,
  (b.conclusion->'interval_pct'->>1)::double precision AS high_pct,
  (SELECT array_agg(tip.commit) FROM tips tip
    WHERE tip.place BETWEEN coalesce(good.place + 1, bad.place) AND bad.place) AS tips
FROM bisection b LEFT JOIN bisection up ON up.id = b.parent
LEFT JOIN tips bad ON bad.commit = coalesce(up.bad, b.bad)
LEFT JOIN tips good ON good.commit = coalesce(up.good, b.good)
WHERE b.tree = :tree AND b.status = 'culprit' AND b.conclusion->>'change_pct' IS NOT NULL
ORDER BY b.id
"""
Key = tuple[str, str, str]
Bisected = Mapping[Key, list[tuple[frozenset[str], "BisectedStep"]]]


def histories(conn: sa.Connection, tree: int) -> list[Row]:
    """{testbox, unit_job, metric, upto, findings} of each headline metric.

    `upto` is the comparison of the last tip; `findings` are as in tree_history, with what finished
    bisections know about their steps.
    """
    bisected = bisected_steps(conn, tree)
    return [
        row
        | {
            "upto": shown("comparison", row["upto"]),
            "findings": _overruled(row["findings"], bisected.get(_key(row), [])),
        }
        for row in rows(conn, _OF, tree=tree)
    ]


def bisected_steps(conn: sa.Connection, tree: int) -> Bisected:
    """Culprits of finished bisections by testbox, unit job and metric, in the form of
    `with_bisected`."""
    from swingbot.core.stats.findings import BisectedStep

    found: dict[Key, list[tuple[frozenset[str], BisectedStep]]] = {}
    for row in rows(conn, _BISECTED, tree=tree):
        step = BisectedStep(
            bisection=f"b{row['id']}",
            **{name: row[name] for name in ("culprit", "pct", "low_pct", "high_pct")},
        )
        found.setdefault(_key(row), []).append((frozenset(row["tips"] or ()), step))
    return found


def _key(row: Mapping[str, Any]) -> Key:
    return row["testbox"], row["unit_job"], row["metric"]


def _overruled(
    stored: Mapping[str, Any], bisected: list[tuple[frozenset[str], BisectedStep]]
) -> Mapping[str, Any]:
    """Return stored findings with their bisections; those of a different version as they are."""
    from swingbot.core.stats.findings import Findings, with_bisected

    try:
        findings = codec.typed(Findings, stored, ignore_unknown=True)
        commits = {int(at): tip["commit"] for at, tip in stored["tips"].items()}
        return {**stored, **codec.plain(with_bisected(findings, commits, bisected))}
    except (AttributeError, KeyError, TypeError, ValueError):
        return stored
