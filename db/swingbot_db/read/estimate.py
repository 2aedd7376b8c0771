"""Durations estimated from earlier builds and boots; all displayed estimates come from here."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from swingbot.core.plan.costs import seconds_left

from .rows import Row, first, rows

_BOOT_SECONDS = """
SELECT avg(seconds) AS seconds
FROM (SELECT seconds FROM boot
      WHERE testbox = :testbox AND (CAST(:spec AS text) IS NULL OR spec = :spec)
        AND origin = 'measured'
      ORDER BY id DESC LIMIT 20) AS latest
"""
# Time of the next build of a bisection: nearly all recent builds were such steps, and the median
# is robust against the others.
_BUILD_SECONDS = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds
FROM (SELECT seconds FROM kernel_build WHERE NOT cached AND origin = 'measured'
  ORDER BY built_at DESC LIMIT 10) AS latest
"""
# An attempt waits in Buildbot while another build runs there, so its time starts when the latest
# build ends.
_BUILDS = """
SELECT f.seconds AS foreseen,
  extract(epoch FROM now() - greatest(a.created_at, latest.built_at)) AS elapsed
FROM unnest(CAST(:keys AS text[])) AS k (build_key)
LEFT JOIN build_forecast f ON f.build_key = k.build_key
LEFT JOIN orders o ON o.key = 'build:' || k.build_key
LEFT JOIN attempt a ON a.order_id = o.id AND a.state = 'running'
LEFT JOIN LATERAL (SELECT max(built_at) AS built_at FROM kernel_build WHERE NOT cached
  AND built_at > a.created_at) AS latest ON true
"""
_QUEUED_BEFORE = """
SELECT count(*) AS orders FROM orders
WHERE kind = 'boot' AND testbox = :testbox AND state IN ('ready', 'running') AND id < :before
"""


def boot_seconds(conn: sa.Connection, testbox: str, spec: str | None = None) -> float | None:
    """Mean wall seconds of the last 20 boots of this spec on the testbox, else of any spec.

    None before the first boot.
    """
    for choice in (spec, None) if spec else (None,):
        row = first(conn, _BOOT_SECONDS, testbox=testbox, spec=choice)
        if row and row["seconds"] is not None:
            return float(row["seconds"])
    return None


def build_seconds(conn: sa.Connection) -> float | None:
    """Median wall seconds of the last 10 uncached kernel builds; None before the first."""
    row = first(conn, _BUILD_SECONDS)
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def queued_before(conn: sa.Connection, testbox: str, order: int) -> int:
    """Number of boot orders on the testbox that are older than `order` and not over."""
    row = first(conn, _QUEUED_BEFORE, testbox=testbox, before=order)
    return int(row["orders"]) if row else 0


def builds_left(conn: sa.Connection, build_keys: Collection[str]) -> float | None:
    """Seconds until these kernels are built one after the other; None without all forecasts.

    Of the dispatched builds, the one dispatched first is taken as the running one.
    """
    forecasts = rows(conn, _BUILDS, keys=list(build_keys))
    if any(row["foreseen"] is None for row in forecasts):
        return None
    running = max(
        (row for row in forecasts if row["elapsed"] is not None), key=_elapsed, default=None
    )
    return sum(
        (
            seconds_left(row["foreseen"], _elapsed(row)) if row is running else row["foreseen"]
            for row in forecasts
        ),
        0.0,
    )


def _elapsed(row: Row) -> float:
    return max(0.0, float(row["elapsed"]))


def remaining_seconds(
    builds: float | None, boots_by_testbox: list[tuple[int, float | None]]
) -> float | None:
    """Seconds of `builds`, then boots; None if a duration is unknown.

    Testboxes work in parallel, so the slowest one counts.
    """
    if builds is None or any(boots and each is None for boots, each in boots_by_testbox):
        return None
    return builds + max((boots * (each or 0.0) for boots, each in boots_by_testbox), default=0.0)
