"""Histories over the tips of watched branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from swingbot_jobs import codec

from .rows import Row, rows, shown

if TYPE_CHECKING:  # the functions import it: it takes numpy, which few verbs need
    from swingbot.core.stats.findings import SearchedTips

_OF: Final = """SELECT h.testbox, h.unit_job, h.metric, h.upto, h.findings FROM tree_history h
WHERE h.tree = :tree ORDER BY h.metric, h.testbox, h.unit_job"""
_SEARCHES: Final = """SELECT testbox, unit_job, metric, search, status, commits, change_pct AS pct,
  low_pct, high_pct, tips, own FROM v_searched_tips
WHERE tree = (SELECT name FROM tree WHERE id = :tree) ORDER BY number, search"""
Key = tuple[str, str, str]
Searches = Mapping[Key, list["SearchedTips"]]


def histories(conn: sa.Connection, tree: int) -> list[Row]:
    """{testbox, unit_job, metric, upto, findings} of each headline metric.

    `upto` is the comparison of the last tip; `findings` are as in tree_history, with what finished
    searches know about their steps.
    """
    searches = finished_searches(conn, tree)
    return [
        row
        | {
            "upto": shown("comparison", row["upto"]),
            "findings": _overruled(row["findings"], searches.get(_key(row), [])),
        }
        for row in rows(conn, _OF, tree=tree)
    ]


def finished_searches(conn: sa.Connection, tree: int) -> Searches:
    """What finished searches found by testbox, unit job and metric, in the form of
    `with_searches`."""
    from swingbot.core.stats.findings import FinishedSearch, SearchedTips

    found: dict[Key, list[SearchedTips]] = {}
    for row in rows(conn, _SEARCHES, tree=tree):
        names = ("search", "status", "pct", "low_pct", "high_pct")
        search = FinishedSearch(
            commits=tuple(row["commits"]), **{name: row[name] for name in names}
        )
        found.setdefault(_key(row), []).append(
            SearchedTips(found=search, tips=frozenset(row["tips"] or ()), own=row["own"])
        )
    return found


def _key(row: Mapping[str, Any]) -> Key:
    return row["testbox"], row["unit_job"], row["metric"]


def _overruled(stored: Mapping[str, Any], searches: list[SearchedTips]) -> Mapping[str, Any]:
    """Return stored findings with their bisections; those of a different version as they are."""
    from swingbot.core.stats.findings import Findings, with_searches

    try:
        findings = codec.typed(Findings, stored, ignore_unknown=True)
        commits = {int(at): tip["commit"] for at, tip in stored["tips"].items()}
        return {**stored, **codec.plain(with_searches(findings, commits, searches))}
    except (AttributeError, KeyError, TypeError, ValueError):
        return stored
