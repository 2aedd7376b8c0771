"""How long orders waited although they were ready and their testbox was free."""

from __future__ import annotations

import bisect
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from benchmarks.fleet_rounds import RoundClock, percentiles
from benchmarks.fleet_world import Size
from swingbot.core.plan.queue import KERNELS_AHEAD

# A boot is ready when the kernels of all arms of its comparison are there; the boots of a bisection
# and of an anchor need only their own. `free`: when the attempt before on the testbox had ended.
_BOOTS: Final = """
WITH built AS (SELECT kb.build_key, a.ended_at AS at FROM kernel_build kb
    JOIN attempt a ON a.id = kb.attempt),
wanted AS (SELECT w.order_id, min(w.comparison) AS comparison, max(b.at) AS at,
    bool_or(c.kind = 'asked') AS asked, min(c.kind) AS kind, min(c.tree) AS tree
  FROM want w JOIN comparison c ON c.id = w.comparison
  JOIN comparison_arm ca ON ca.comparison = c.id JOIN variant v ON v.id = ca.variant
  LEFT JOIN built b ON b.build_key = v.build_key GROUP BY w.order_id)
SELECT coalesce(w.kind, 'bisection') AS kind, w.tree, w.comparison,
  extract(epoch FROM a.created_at)::float AS handed_out,
  extract(epoch FROM greatest(o.created_at, own.at, w.at))::float AS ready,
  extract(epoch FROM lag(a.ended_at) OVER (PARTITION BY o.testbox ORDER BY a.id))::float AS free
FROM attempt a JOIN orders o ON o.id = a.order_id LEFT JOIN built own ON own.build_key = o.build_key
LEFT JOIN wanted w ON w.order_id = o.id
WHERE o.kind = 'boot' AND a.number = 1 ORDER BY a.id
"""
_BUILDS: Final = """
SELECT extract(epoch FROM o.created_at)::float AS ready,
  extract(epoch FROM a.created_at)::float AS handed_out,
  extract(epoch FROM coalesce(a.ended_at, 'infinity'))::float AS ended
FROM attempt a JOIN orders o ON o.id = a.order_id WHERE o.kind = 'build' AND a.number = 1
ORDER BY a.id
"""
_OLDEST: Final = """
SELECT kind, state, count(*) AS n,
  max(extract(epoch FROM clock_timestamp() - created_at))::float AS oldest
FROM orders WHERE state IN ('waiting', 'ready') GROUP BY 1, 2 ORDER BY 1, 2
"""


def waits(
    conn: sa.Connection, size: Size, answer: Mapping[str, Any], clock: RoundClock
) -> dict[str, Any]:
    """Waits in seconds by kind, and what was left undone."""
    boots = conn.execute(sa.text(_BOOTS)).all()
    recorded = _Recorded(clock.dispatches)
    table: dict[str, list[float]] = defaultdict(list)
    by_tree: dict[int, list[float]] = defaultdict(list)
    by_comparison: dict[int, list[float]] = defaultdict(list)
    for row in boots:
        table["dispatch: testbox free, order ready"].append(
            recorded.at(row.handed_out) - max(row.ready, row.free or 0.0)
        )
        waited = row.handed_out - row.ready
        table[f"in the queue: {row.kind}"].append(waited)
        if row.kind == "watch":
            by_tree[row.tree].append(waited)
        by_comparison[row.comparison].append(waited)
    table["dispatch: build"] = _builds(conn, size, recorded)
    greedy = set(answer["asked"].get("asker 0", ()))
    modest = {
        number
        for name, numbers in answer["asked"].items()
        for number in numbers
        if name != "asker 0"
    }
    for name, numbers in (("greedy asker", greedy), ("other askers", modest - greedy)):
        table[f"in the queue: {name}"] = [
            wait for number in numbers for wait in by_comparison.get(number, ())
        ]
    return {
        "waits": {name: percentiles(values) for name, values in table.items()},
        "service": _service(conn, size, answer, by_tree),
    }


class _Recorded:
    """When an attempt was there for others to see: at the end of the transaction in which it
    says it was created."""

    def __init__(self, dispatches: Sequence[tuple[float, float]]) -> None:
        self._began = [began for began, _ in dispatches]
        self._ended = [ended for _, ended in dispatches]

    def at(self, created: float) -> float:
        place = bisect.bisect_right(self._began, created) - 1
        return max(created, self._ended[place]) if place >= 0 else created


def _builds(conn: sa.Connection, size: Size, recorded: _Recorded) -> list[float]:
    """Waits of build orders that came when there was room for another one."""
    rows = conn.execute(sa.text(_BUILDS)).all()
    room = KERNELS_AHEAD * size.workers
    starts, ends = sorted(row.handed_out for row in rows), sorted(row.ended for row in rows)
    return [
        recorded.at(row.handed_out) - row.ready
        for row in rows
        if bisect.bisect_right(starts, row.ready) - bisect.bisect_right(ends, row.ready) < room
    ]


def _service(
    conn: sa.Connection,
    size: Size,
    answer: Mapping[str, Any],
    by_tree: Mapping[int, Sequence[float]],
) -> dict[str, Any]:
    """What starved, and how evenly trees were served."""
    means = [statistics.fmean(values) for values in by_tree.values()]
    counts = answer["counts"]
    return {
        "testboxes that were free with an order ready, mean": round(
            statistics.fmean(one["starved"] for one in counts), 1
        )
        if counts
        else None,
        "testboxes busy, mean": round(statistics.fmean(one["busy"] for one in counts), 1)
        if counts
        else None,
        "trees served": f"{len(means)} of {size.trees}",
        "mean wait of a tree in the queue, s": percentiles(means),
        "evenness of trees (Jain, 1 = all wait alike)": round(
            sum(means) ** 2 / (len(means) * sum(mean**2 for mean in means)), 3
        )
        if any(means)
        else None,
        "left": [dict(row._mapping) for row in conn.execute(sa.text(_OLDEST))],
    }
