"""How a testbox spent its time, from stored times alone: state changes, orders and builds."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from swingbot.core.model.testbox_state import TIME_USES

from .rows import Row, rows

WINDOW_HOURS: Final = 24
# A piece adds 1 to the count of its use when it begins and subtracts it when it ends. `counts` has
# the running sums of each interval, and `named` picks its use. An order is ready once its kernel is
# stored. While a testbox is out of service, its waiting orders do not count.
_TIME_USE = """
WITH span AS (
    SELECT greatest(now() - make_interval(hours => :hours), f.at) AS began, now() AS ended
    FROM (SELECT at FROM testbox_event WHERE testbox = :name ORDER BY id LIMIT 1) f),
phase AS (
    SELECT e.at AS began, e.state, lead(e.at, 1, now()) OVER (ORDER BY e.at, e.id) AS ended
    FROM testbox_event e
    WHERE e.testbox = :name AND e.id >= coalesce(
        (SELECT x.id FROM testbox_event x, span
         WHERE x.testbox = :name AND x.at < span.began ORDER BY x.id DESC LIMIT 1), 0)),
wanted AS (
    SELECT o.created_at AS began, coalesce(o.ended_at, now()) AS ended, k.built_at AS ready
    FROM orders o LEFT JOIN kernel_build k ON k.build_key = o.build_key, span
    WHERE o.testbox = :name AND o.kind = 'boot'
      AND (o.ended_at IS NULL OR o.ended_at > span.began)),
pieces AS (
    SELECT began, ended, 'out' AS what FROM phase WHERE state IN ('lost', 'quarantined')
    UNION ALL
    SELECT began, ended, 'busy' FROM phase WHERE state IN ('booting', 'running', 'returning')
    UNION ALL
    SELECT greatest(began, ready), ended, 'service' FROM wanted WHERE ready < ended
    UNION ALL
    SELECT began, ended, 'kernel' FROM wanted),
clipped AS (
    SELECT greatest(p.began, s.began) AS began, least(p.ended, s.ended) AS ended, p.what
    FROM pieces p, span s WHERE p.ended > s.began AND p.began < s.ended
    UNION ALL SELECT began, ended, 'idle' FROM span),
deltas AS (
    SELECT began AS at, what, 1 AS change FROM clipped
    UNION ALL SELECT ended, what, -1 FROM clipped),
counts AS (
    SELECT at, lead(at) OVER w - at AS length,
           sum(change) FILTER (WHERE what = 'out') OVER w AS out,
           sum(change) FILTER (WHERE what = 'busy') OVER w AS busy,
           sum(change) FILTER (WHERE what = 'service') OVER w AS service,
           sum(change) FILTER (WHERE what = 'kernel') OVER w AS kernel
    FROM deltas WINDOW w AS (ORDER BY at ROWS UNBOUNDED PRECEDING)),
named AS (
    SELECT extract(epoch FROM length)::double precision AS seconds,
           CASE WHEN busy > 0 THEN 'busy' WHEN out > 0 THEN 'out'
                WHEN service > 0 THEN 'service' WHEN kernel > 0 THEN 'kernel' ELSE 'idle' END
             AS what
    FROM counts WHERE length > interval '0')
SELECT (SELECT began FROM span) AS since,
       coalesce((SELECT sum(seconds) FROM named), 0) AS seconds,
       {parts}
"""
_PART = "coalesce((SELECT sum(seconds) FROM named WHERE what = '{part}'), 0) AS {part}"


def time_use(conn: sa.Connection, name: str, hours: int = WINDOW_HOURS) -> Row | None:
    """Return how the testbox spent the last `hours`, or the time since its first boot.

    Keys: "since", and in seconds "seconds" in all, "busy" (booting, running, returning), "kernel"
    (its orders wait for a kernel), "service" (a kernel is there, and the testbox is free), "idle"
    (it has no order), "out" (lost or quarantined); "overhead" is (busy + service) / busy, None if
    it was never busy. None before the first boot.
    """
    parts = ",\n       ".join(_PART.format(part=part) for part in TIME_USES)
    [row] = rows(conn, _TIME_USE.format(parts=parts), name=name, hours=hours)
    if row["since"] is None:
        return None
    seconds = {key: round(float(row[key]), 3) for key in ("seconds", *TIME_USES)}
    busy = seconds["busy"]
    overhead = round((busy + seconds["service"]) / busy, 4) if busy else None
    return {"since": row["since"], **seconds, "overhead": overhead}
