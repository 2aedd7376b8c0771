"""Which rows of a comparison are plotted, and in which order."""

from __future__ import annotations

from swingbot.core.model.comparison_row import CHANGED, Key, key_of

from .ports import Row


def program_of(metric: str) -> str:
    return metric.partition(".")[0]


def programs_of(found: Row) -> set[str]:
    """The benchmarks of a comparison; what monitors saw beside them are hundreds of numbers, which `/raw/` has."""
    return {job["program"] for part in found["parts"] for job in part["unit_jobs"]}


def is_of(metric: str, unit_job: str) -> bool:
    """Whether the benchmark itself gave the metric, as far as its unit job's name tells."""
    return program_of(metric) in unit_job


def plotted(found: Row, samples: list[Row]) -> list[Key]:
    """What is plotted, in the order of the rows: benchmark metrics always, counters when they changed.

    Aliases are not: their points are those of another plot.
    """
    rows = found["rows"]
    keys = [
        key_of(row)
        for row in rows
        if not row.get("alias_of") and (not row["counter"] or row["verdict"] in CHANGED)
    ]
    programs = programs_of(found)
    measured = sorted({key_of(row) for row in samples if program_of(row["metric"]) in programs})
    return keys + [key for key in measured if key not in {key_of(row) for row in rows}]
