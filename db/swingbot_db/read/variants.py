"""Variants with the state of their kernel build."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from .rows import ORDER_STATE, Row, rows, shown

_VARIANTS = f"""
SELECT v.id, v.tree, t.name AS tree_name, v.commit, v.subject, v.author, v.kconfig, v.compiler,
  v.layout, v.build_key, v.origin, v.trust,
       kb.status AS build, kb.image_sha256, kb.seconds AS build_seconds, kb.cached AS build_cached,
         kb.errors AS build_errors,
       o.id AS build_order, {ORDER_STATE} AS build_order_state
FROM variant v
JOIN tree t ON t.id = v.tree
LEFT JOIN kernel_build kb ON kb.build_key = v.build_key
LEFT JOIN orders o ON o.kind = 'build' AND o.key = 'build:' || v.build_key
WHERE v.id = ANY(:ids)
"""


def variants(conn: sa.Connection, numbers: Iterable[int]) -> dict[int, Row]:
    """Variant number -> its facts; `build` is built, failed or None (not built yet)."""
    facts = {}
    for row in rows(conn, _VARIANTS, ids=list(set(numbers))):
        number = row["id"]
        facts[number] = row | {
            "id": shown("variant", number),
            "tree": row.pop("tree_name"),
            "build_order": shown("order", row["build_order"]),
        }
    return facts
