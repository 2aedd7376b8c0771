"""How the tip of a branch stands: each headline metric against the base and the last release."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.list_documents import Standing

from .rows import Row, rows

_TIPS: Final = 120  # measured tips of a history
# Places and releases are read once: the planner takes thousands of tips for a few.
_LEVELS: Final = """
WITH tip AS MATERIALIZED (
  SELECT commit, place FROM v_tips WHERE tree = (SELECT name FROM tree WHERE id = :tree)
), release AS MATERIALIZED (
  SELECT commit, release FROM v_releases WHERE tree = (SELECT name FROM tree WHERE id = :tree)
), measured AS MATERIALIZED (
  SELECT c.id, h.commit, tip.place, c.base = first.base AND tip.place > 0 AS is_first
  FROM comparison_pair c JOIN variant h ON h.id = c.head JOIN tip ON tip.commit = h.commit
  CROSS JOIN LATERAL (SELECT base FROM comparison_pair
    WHERE tree = :tree AND kind = 'watch' ORDER BY id LIMIT 1) first
  WHERE c.tree = :tree AND c.kind = 'watch' AND c.status = 'done'
  ORDER BY c.id DESC LIMIT :tips
)
SELECT r.testbox, r.unit_job, r.metric, coalesce(r.detail->>'unit', '') AS unit,
  r.detail->>'better' AS better, m.commit, 'c' || m.id AS comparison, m.is_first,
  (r.detail->'head'->>'mean')::double precision AS mean,
  (r.detail->'base'->>'mean')::double precision AS before,
  r.verdict, r.change_pct, r.detail->'interval_pct' AS interval_pct,
  (r.detail->>'margin_pct')::double precision AS margin_pct,
  (r.detail->>'more_boots')::integer AS more_boots, l.release,
  x.facts->>'label' AS label
FROM measured m
JOIN comparison_row r ON r.comparison = m.id AND r.against = 'first' AND r.arm = 1
  AND (r.detail->>'headline')::boolean AND r.detail->>'alias_of' IS NULL
JOIN testbox x ON x.name = r.testbox
LEFT JOIN release l ON l.commit = m.commit
WHERE r.detail->'head'->>'mean' IS NOT NULL
ORDER BY r.unit_job, r.metric, r.testbox, m.place
"""


def standing(conn: sa.Connection, tree: int) -> list[Standing]:
    """Each headline metric on each testbox over the measured tips of a branch, oldest first.

    Levels are those of the boots that were made when each tip was new.
    """
    found = rows(conn, _LEVELS, tree=tree, tips=_TIPS)
    return [
        _standing(list(own))
        for _, own in groupby(found, lambda row: (row["unit_job"], row["metric"], row["testbox"]))
    ]


def _standing(tips: Sequence[Row]) -> Standing:
    last = tips[-1]
    first = next((tip["before"] for tip in tips if tip["is_first"]), None)
    released = next((tip for tip in reversed(tips) if tip["release"]), None)
    names = ("testbox", "label", "unit_job", "metric", "unit", "better", "commit", "comparison")
    judged = ("verdict", "change_pct", "interval_pct", "margin_pct", "more_boots")
    document: Any = {name: last[name] for name in (*names, *judged)} | {
        "mean": last["mean"],
        "levels": [tip["mean"] for tip in tips],
        "base_pct": _percent(last["mean"], first),
        "release": released["release"] if released else None,
        "release_pct": _percent(last["mean"], released["mean"]) if released else None,
    }
    standing: Standing = document
    return standing


def _percent(level: float, reference: float | None) -> float | None:
    return 100.0 * (level / reference - 1.0) if reference else None
