"""Kernels of commits that were posted as mails, and the tables that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from swingbot.core.model import ids

from .rows import Row, rows

TABLES: Final = 10  # of a commit
_COMMITS: Final = 300
# Kinds of tables whose pairs differ by what somebody asked about, or by one commit.
_TABLES: Final = """
WITH posted AS (
    SELECT DISTINCT ON (v.tree, v.commit) v.posted AS message_id, v.tree, v.commit, v.subject
    FROM variant v WHERE v.posted = ANY(:mails)
)
SELECT p.message_id, p.commit, p.subject, t.name AS tree,
  (SELECT coalesce(jsonb_agg(jsonb_build_array(c.kind, c.id) ORDER BY c.id DESC), '[]') FROM (
    SELECT DISTINCT c.kind, c.id FROM variant v JOIN comparison_arm a ON a.variant = v.id
    JOIN comparison c ON c.id = a.comparison
    WHERE v.commit = p.commit AND v.tree = p.tree
      AND c.kind IN ('asked', 'experiment', 'attribute') AND c.status <> 'cancelled'
    ORDER BY c.id DESC LIMIT :limit) c) AS tables
FROM posted p JOIN tree t ON t.id = p.tree
ORDER BY array_position(CAST(:mails AS text[]), p.message_id), p.commit, p.tree LIMIT :most
"""


def posted(conn: sa.Connection, mails: Sequence[str]) -> list[Row]:
    """Return the commits of the service that were posted as one of the mails, in their order.

    `mails` are Message-IDs with their <>. `tables` are the ids of at most TABLES tables that have a
    kernel of the commit, the latest first.
    """
    found = rows(conn, _TABLES, mails=list(mails), limit=TABLES, most=_COMMITS)
    for row in found:
        row["tables"] = [ids.of_table(kind, of) for kind, of in row["tables"]]
    return found
