"""How long things take here, from what earlier ones took: the only source of every estimate that we show."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from swingbot.core.plan.costs import seconds_left

from .rows import Row, first, rows

_BOOT_SECONDS = """
SELECT avg(seconds) AS seconds
FROM (SELECT seconds FROM boot
      WHERE testbox = :testbox AND (CAST(:spec AS text) IS NULL OR spec = :spec) AND origin = 'measured'
      ORDER BY id DESC LIMIT 20) AS latest
"""
# What the next build of a bisection takes: nearly all of the latest builds were such steps, and the median passes over the others.
_BUILD_SECONDS = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds
FROM (SELECT seconds FROM kernel_build WHERE NOT cached AND origin = 'measured' ORDER BY built_at DESC LIMIT 10) AS latest
"""
# An attempt waits in Buildbot while another build runs there, so its time counts from the end of the latest one.
_BUILDS = """
SELECT f.seconds AS foreseen, extract(epoch FROM now() - greatest(a.created_at, latest.built_at)) AS elapsed
FROM unnest(CAST(:keys AS text[])) AS k (build_key)
LEFT JOIN build_forecast f ON f.build_key = k.build_key
LEFT JOIN orders o ON o.key = 'build:' || k.build_key
LEFT JOIN attempt a ON a.order_id = o.id AND a.state = 'running'
LEFT JOIN LATERAL (SELECT max(built_at) AS built_at FROM kernel_build WHERE NOT cached AND built_at > a.created_at) AS latest ON true
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
    """Median wall seconds of the last 10 kernel builds that were really built; None before the first."""
    row = first(conn, _BUILD_SECONDS)
    return None if row is None or row["seconds"] is None else float(row["seconds"])


def queued_before(conn: sa.Connection, testbox: str, order: int) -> int:
    """Boot orders on the testbox that were there before `order` and are not over."""
    row = first(conn, _QUEUED_BEFORE, testbox=testbox, before=order)
    return int(row["orders"]) if row else 0


def builds_left(conn: sa.Connection, build_keys: Collection[str]) -> float | None:
    """Seconds until these kernels are built, one after the other; None where one was not foreseen yet.

    Of those that are handed out, the one that has been running longest is the one that runs.
    """
    found = rows(conn, _BUILDS, keys=list(build_keys))
    if any(row["foreseen"] is None for row in found):
        return None
    running = max((row for row in found if row["elapsed"] is not None), key=_elapsed, default=None)
    return sum(
        (
            seconds_left(row["foreseen"], _elapsed(row)) if row is running else row["foreseen"]
            for row in found
        ),
        0.0,
    )


def _elapsed(row: Row) -> float:
    return max(0.0, float(row["elapsed"]))


def remaining_seconds(
    builds: float | None, boots_by_box: list[tuple[int, float | None]]
) -> float | None:
    """Seconds of `builds`, then boots; testboxes work side by side, so the slowest counts. None if a needed figure is unknown."""
    if builds is None or any(boots and each is None for boots, each in boots_by_box):
        return None
    return builds + max((boots * (each or 0.0) for boots, each in boots_by_box), default=0.0)
