"""How boots of one kernel scatter on a testbox, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from .rows import Row, rows, shown

_SCATTER: Final = """
WITH own AS (
  SELECT m.id, m.unit_job, m.metric, n.place
  FROM unnest(CAST(:unit_jobs AS text[]), CAST(:metrics AS text[]))
    WITH ORDINALITY AS n (unit_job, metric, place)
  JOIN measured_metric m USING (unit_job, metric) WHERE m.testbox = :name
), lately AS (
  SELECT id, booted_at, order_id, image_sha256, spec FROM boot
  WHERE testbox = :name AND outcome = 'up' ORDER BY id DESC LIMIT :boots
)
SELECT own.unit_job, own.metric, b.id, b.booted_at, b.image_sha256, b.spec, x.mean, x.runs,
  v.id AS variant, v.commit, v.subject, v.author
FROM own JOIN boot_mean x ON x.measured = own.id JOIN lately b ON b.id = x.boot
JOIN orders o ON o.id = b.order_id JOIN variant v ON v.id = o.variant
ORDER BY own.place, b.id
"""
_BOOTS: Final = 300  # the latest of the testbox
_METRICS: Final = 6


def scatter(conn: sa.Connection, testbox: str, noise: Sequence[Row]) -> list[Row]:
    """The latest boots of kernels with two or more, by metric: {unit_job, metric, kernels}; of the
    benchmarks' metrics with noise records those with the most boots.

    `kernels`: {variant, commit, subject, author, boots} by their first boot; `boots`: {boot,
    booted_at, runs, pct}, in per cent of the mean of the kernel's boots.
    """
    own = [
        row
        for row in noise
        if row["alias_of"] is None and row["metric"].partition(".")[0] in row["unit_job"]
    ]
    most = sorted(own, key=lambda row: row["boots"], reverse=True)[:_METRICS]
    names = {
        "unit_jobs": [row["unit_job"] for row in most],
        "metrics": [row["metric"] for row in most],
    }
    found: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for row in rows(conn, _SCATTER, name=testbox, boots=_BOOTS, **names):
        kernels = found.setdefault((row["unit_job"], row["metric"]), {})
        kernels.setdefault((row["image_sha256"], row["spec"]), []).append(row)
    by_metric = [
        {
            "unit_job": unit_job,
            "metric": metric,
            "kernels": [_kernel(boots) for boots in kernels.values() if _scatters(boots)],
        }
        for (unit_job, metric), kernels in found.items()
    ]
    return [one for one in by_metric if one["kernels"]]


def _scatters(boots: list[Row]) -> bool:
    return len(boots) > 1 and sum(one["mean"] for one in boots) != 0


def _kernel(boots: list[Row]) -> Row:
    level = sum(one["mean"] for one in boots) / len(boots)
    return {
        "variant": shown("variant", boots[0]["variant"]),
        "commit": boots[0]["commit"],
        "subject": boots[0]["subject"],
        "author": boots[0]["author"],
        "boots": [
            {
                "boot": shown("boot", one["id"]),
                "booted_at": one["booted_at"],
                "runs": one["runs"],
                "pct": 100.0 * one["mean"] / level,
            }
            for one in boots
        ],
    }
