"""Kernels of patches that were posted as mails, and the tables that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from swingbot.core.limits import QUERY_VALUES
from swingbot.core.model import ids

from .rows import Row, rows

TABLES: Final = 10  # of a commit
_COMMITS: Final = 300
# Kinds of tables whose pairs differ by what somebody asked about, or by one commit.
_TABLES: Final = """
WITH posted AS (
    SELECT DISTINCT ON (v.tree, v.commit) v.posted AS message_id, v.tree, v.commit, v.subject,
      v.patches
    FROM variant v WHERE v.posted = ANY(:mails)
      OR v.patches <> '[]' AND v.patches ->> -1 = ANY(:patches)
      OR v.commit IN (SELECT commit FROM patch WHERE patch_id <> '' AND patch_id = ANY(:patches))
    ORDER BY v.tree, v.commit, v.patches <> '[]' DESC
)
SELECT p.message_id, p.commit, p.subject, t.name AS tree,
  jsonb_array_length(p.patches) BETWEEN 1 AND :longest AS complete,
  CASE WHEN p.patches <> '[]' THEN p.patches ELSE coalesce((
    SELECT jsonb_build_array(q.patch_id) FROM patch q
    WHERE q.commit = p.commit AND q.patch_id <> ''), '[]') END AS patch_ids,
  (SELECT coalesce(jsonb_agg(jsonb_build_array(c.kind, c.id) ORDER BY c.id DESC), '[]') FROM (
    SELECT DISTINCT c.kind, c.id FROM variant v JOIN comparison_arm a ON a.variant = v.id
    JOIN comparison c ON c.id = a.comparison
    WHERE v.commit = p.commit AND v.tree = p.tree
      AND c.kind IN ('asked', 'experiment', 'attribute') AND c.status <> 'cancelled'
    ORDER BY c.id DESC LIMIT :limit) c) AS tables
FROM posted p JOIN tree t ON t.id = p.tree
ORDER BY array_position(CAST(:mails AS text[]), p.message_id), p.commit, p.tree LIMIT :most
"""


def posted(conn: sa.Connection, mails: Sequence[str], patches: Sequence[str]) -> list[Row]:
    """Return the commits of the service that were posted as one of the mails, in their order, and
    those with the diff of one of the patches.

    `mails` are Message-IDs with their <>, `patches` are `git patch-id --verbatim`. `tables` are the
    ids of at most TABLES tables that have a kernel of the commit, the latest first.
    """
    given = {"mails": list(mails), "patches": list(patches)}
    found = rows(conn, _TABLES, **given, longest=QUERY_VALUES - 1, limit=TABLES, most=_COMMITS)
    for row in found:
        row["tables"] = [ids.of_table(kind, of) for kind, of in row["tables"]]
    return found
