"""How long things take here, from what earlier ones took: the only source of every estimate that we show."""

from __future__ import annotations

import sqlalchemy as sa

from .rows import first

_BOOT_SECONDS = """
SELECT avg(seconds) AS seconds
FROM (SELECT seconds FROM boot
      WHERE testbox = :testbox AND (CAST(:spec AS text) IS NULL OR spec = :spec) AND origin = 'measured'
      ORDER BY id DESC LIMIT 20) AS latest
"""
_BUILD_SECONDS = """
SELECT avg(seconds) AS seconds
FROM (SELECT seconds FROM kernel_build WHERE NOT cached AND origin = 'measured' ORDER BY built_at DESC LIMIT 10) AS latest
"""
_QUEUED_BEFORE = """
SELECT count(*) AS orders FROM orders
WHERE kind = 'boot' AND testbox = :testbox AND state IN ('ready', 'running') AND id < :before
"""


def boot_seconds(conn: sa.Connection, testbox: str, spec: str | None = None) -> float | None:
    """Mean wall seconds of the last 20 boots of this spec on the testbox, else of any spec; None before the first."""
    for choice in (spec, None) if spec else (None,):
        row = first(conn, _BOOT_SECONDS, testbox=testbox, spec=choice)
        if row and row["seconds"] is not None:
            return float(row["seconds"])
    return None


def build_seconds(conn: sa.Connection) -> float | None:
    """Mean wall seconds of the last 10 kernel builds that were really built; None before the first."""
    row = first(conn, _BUILD_SECONDS)
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def queued_before(conn: sa.Connection, testbox: str, order: int) -> int:
    """Boot orders on the testbox that were there before `order` and are not over."""
    row = first(conn, _QUEUED_BEFORE, testbox=testbox, before=order)
    return int(row["orders"]) if row else 0


def remaining_seconds(
    builds: int, build_each: float | None, boots_by_box: list[tuple[int, float | None]]
) -> float | None:
    """Builds one after the other, then boots; testboxes work side by side, so the slowest counts. None if a needed figure is unknown."""
    if (builds and build_each is None) or any(
        boots and each is None for boots, each in boots_by_box
    ):
        return None
    return builds * (build_each or 0.0) + max(
        (boots * (each or 0.0) for boots, each in boots_by_box), default=0.0
    )
