"""The patches of a watched branch: state since the last move, measured cost, and incidents."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from .rows import Row, rows, shown

_PATCHES: Final = """
SELECT b.position, CASE WHEN b.state NOT IN ('below', 'dropped') THEN count(*) FILTER (WHERE b.state
  NOT IN ('below', 'dropped')) OVER (ORDER BY b.position) END AS number,
       b.state, p.commit, p.patch_id, p.subject, p.author, b.was
FROM branch_patch b JOIN patch p ON p.commit = b.commit WHERE b.tree = :tree ORDER BY b.position
"""
# A patch of this branch, and its copies at earlier tips and in other branches.
_COPIES: Final = """
WITH copy AS (
    SELECT b.position, q.commit, q.parent, q.patch_id
    FROM branch_patch b JOIN patch p ON p.commit = b.commit
    JOIN patch q ON q.commit = p.commit OR (p.patch_id <> '' AND q.patch_id = p.patch_id)
    WHERE b.tree = :tree
)
"""
# Of several measurements of a metric, the one with the most boots; of these, the latest. Kernels of
# another configuration or layout than the branch's own, such as those of gates, do not count.
_COSTS: Final = (
    _COPIES
    + """
, own AS (
    SELECT kconfig, compiler FROM tree WHERE id = :tree
    UNION SELECT h.kconfig, h.compiler FROM comparison_pair c JOIN variant h ON h.id = c.head
    WHERE c.tree = :tree AND c.kind = 'watch'
)
SELECT DISTINCT ON (y.position, r.testbox, r.unit_job, r.metric) y.position, y.commit, r.testbox,
  r.unit_job, r.metric, r.change_pct, r.verdict,
       r.detail->'interval_pct' AS interval_pct, r.detail->>'better' AS better,
         (r.detail->'margin_pct')::double precision AS margin_pct,
         (r.detail->'more_boots')::integer AS more_boots,
         (r.detail->'head'->>'boots')::integer AS boots, c.id AS comparison
FROM copy y
JOIN variant h ON h.commit = y.commit AND h.layout = 0 JOIN own USING (kconfig, compiler)
JOIN comparison_pair c ON c.head = h.id AND c.status = 'done'
JOIN variant v ON v.id = c.base AND v.commit = y.parent
  AND (v.kconfig, v.compiler, v.layout) = (h.kconfig, h.compiler, 0)
JOIN comparison_row r ON r.comparison = c.id AND (r.detail->>'headline')::boolean
  AND r.change_pct IS NOT NULL
ORDER BY y.position, r.testbox, r.unit_job, r.metric, (r.verdict <> 'invalid') DESC, boots DESC,
  c.id DESC
"""
)
_INCIDENTS: Final = (
    _COPIES
    + """
SELECT DISTINCT y.position, i.id, i.status, 'culprit' AS part
FROM copy y JOIN variant v ON v.commit = y.commit JOIN sighting s ON s.culprit = v.id
  JOIN incident i ON i.id = s.incident
UNION SELECT DISTINCT y.position, i.id, i.status, 'version' FROM copy y
  JOIN incident i ON i.fixed_by = y.commit
ORDER BY 1, 2, 4
"""
)


def patches(conn: sa.Connection, tree: int) -> list[Row]:
    """Patches, oldest first; dropped ones last. `number` counts the patches on the branch.

    `costs`: the change relative to the patch's parent, measured for any copy of the patch
    (`commit`); empty if no copy was measured. `incidents`: those that name the patch as the culprit
    (`part` "culprit") or as a new version of it ("version").
    """
    costs: dict[int, list[Row]] = {}
    for row in rows(conn, _COSTS, tree=tree):
        row["comparison"] = shown("comparison", row["comparison"])
        costs.setdefault(row.pop("position"), []).append(row)
    incidents: dict[int, list[Row]] = {}
    for row in rows(conn, _INCIDENTS, tree=tree):
        row["id"] = shown("incident", row["id"])
        incidents.setdefault(row.pop("position"), []).append(row)
    return [
        row
        | {
            "patch_id": row["patch_id"] or None,
            "costs": costs.get(row["position"], []),
            "incidents": incidents.get(row["position"], []),
        }
        for row in rows(conn, _PATCHES, tree=tree)
    ]
