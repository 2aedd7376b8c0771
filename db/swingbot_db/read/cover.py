"""Boots that counted the calls of functions (docs/executed.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import sqlalchemy as sa

from swingbot.core.proof.executed import MONITOR

from .rows import Row, rows

_COUNTED: Final = f"{MONITOR}.counted"
_CALLS: Final = f"{MONITOR}.calls."
_MOST: Final = 200  # boots that are looked at
_BOOTS: Final = """
SELECT x.id AS boot, m.testbox, m.unit_job, b.mean AS counted, s.unit_jobs,
  kb.build_key, kb.files, v.commit, v.kconfig
FROM measured_metric m JOIN boot_mean b ON b.measured = m.id JOIN boot x ON x.id = b.boot
JOIN boot_spec s ON s.sha256 = x.spec JOIN kernel_build kb ON kb.build_key = x.build_key
JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant JOIN tree t ON t.id = v.tree
WHERE m.metric = :counted AND t.name = :tree ORDER BY x.id DESC, m.unit_job LIMIT :most
"""
_OF_BOOTS: Final = """
SELECT b.boot, m.unit_job, substr(m.metric, :from) AS function, b.mean AS calls
FROM measured_metric m JOIN boot_mean b ON b.measured = m.id
WHERE m.metric = ANY(:metrics) AND b.boot = ANY(:boots)
"""


def counted_boots(conn: sa.Connection, tree: str) -> list[Row]:
    """The latest unit jobs of boots of a tree's kernels that counted calls, latest first: `boot`,
    `testbox`, `unit_job`, `functions` that it was asked for, `counted` symbols, and the kernel
    (`build_key`, `files`, `commit`, `kconfig`).
    """
    found = rows(conn, _BOOTS, counted=_COUNTED, tree=tree, most=_MOST)
    for row in found:
        jobs = {job["name"]: job for job in row.pop("unit_jobs")}
        row["functions"] = list(jobs.get(row["unit_job"], {}).get("functions", ()))
    return found


def counted_calls(conn: sa.Connection, boots: Sequence[int], functions: Iterable[str]) -> list[Row]:
    """Calls of these functions in these boots: `boot`, `unit_job`, `function`, `calls`."""
    metrics = [f"{_CALLS}{name}" for name in functions]
    return rows(conn, _OF_BOOTS, metrics=metrics, boots=list(boots), **{"from": len(_CALLS) + 1})
