"""Rows of a comparison to plot, and their order."""

from __future__ import annotations

import re
from typing import Final

from swingbot.core.model.comparison_row import CHANGED, Key, key_of

from ..ports import Row

_LIKE: Final = re.compile(r"[\\%_]")  # special characters of LIKE patterns


def like(metric: str) -> str:
    """Return the LIKE pattern that matches this metric alone, or the beginning of one."""
    return _LIKE.sub(r"\\\g<0>", metric)


def program_of(metric: str) -> str:
    return metric.partition(".")[0]


def programs_of(comparison: Row) -> set[str]:
    """Return the benchmarks of a comparison. `/raw/` has the hundreds of monitor counters."""
    return {job["program"] for part in comparison["parts"] for job in part["unit_jobs"]}


def own_metrics(comparison: Row) -> list[str]:
    """Return LIKE patterns of the metrics that the benchmarks of a comparison report."""
    return [f"{like(program)}.%" for program in sorted(programs_of(comparison))]


def is_of(metric: str, unit_job: str) -> bool:
    """Return True if the benchmark itself reported the metric, judged by the unit job's name."""
    return program_of(metric) in unit_job


def plotted(comparison: Row, samples: list[Row]) -> list[Key]:
    """Return the keys to plot, in row order: benchmark metrics, and counters that changed.

    Aliases are left out because another plot has the same points. `samples`: at least those of
    `own_metrics`.
    """
    rows = comparison["rows"]
    keys = [
        key_of(row)
        for row in rows
        if not row.get("alias_of") and (not row["counter"] or row["verdict"] in CHANGED)
    ]
    programs = programs_of(comparison)
    measured = sorted({key_of(row) for row in samples if program_of(row["metric"]) in programs})
    return keys + [key for key in measured if key not in {key_of(row) for row in rows}]
