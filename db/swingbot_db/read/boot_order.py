"""The order behind a boot, in the form for `swingbot-worker boot --order`."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot.core.model.dispatch import purpose_named

from .rows import Row, by_id

_ORDER = """SELECT x.id, x.order_id, x.attempt, x.build_key, x.image_sha256, x.testbox, x.k,
  x.purpose, s.unit_jobs
FROM boot x JOIN boot_spec s ON s.sha256 = x.spec WHERE x.id = :id"""


def boot_order(conn: sa.Connection, id: int | str) -> Row:
    """Return an order, version 1, without the exchange: results stay local. Raises NotFound."""
    row = by_id(conn, _ORDER, "boot", id)
    return {
        "version": 1,
        "kind": "boot",
        "order": f"o{row['order_id']}",
        "attempt": f"a{row['attempt']}",
        "kernel": {"build_key": row["build_key"], "image_sha256": row["image_sha256"]},
        "testbox": row["testbox"],
        "k": row["k"],
        **purpose_named(row["purpose"]),
        "unit_jobs": row["unit_jobs"],
    }
