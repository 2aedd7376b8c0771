"""will-it-scale: the table of its runtest.py, or what one of its programs prints by itself, with LKP's names.

The table has one row per number of tasks: tasks,processes,processes_idle,threads,threads_idle,linear.
A program prints `average:N`, the operations a second of all its copies together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from swingbot_jobs.result import ParseError

ROW = re.compile(r"(\d{1,6}),(-1|\d{1,18}(?:\.\d{1,9})?),[^,]{1,30},(-1|\d{1,18}(?:\.\d{1,9})?),[^,]{1,30},[^,]{1,30}")
AVERAGE = re.compile(r"average:\s*(\d{1,18}(?:\.\d{1,9})?)")


@dataclass(frozen=True)
class Row:
    """Operations a second of all copies together; 0 where that mode was not run."""

    tasks: int
    processes: float
    threads: float


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Operations a second of each copy, and of all of them; ParseError without a row or an average."""
    lines = [line.strip()[:500] for line in files.get("stdout", "").splitlines()]
    rows = table(lines) or [average(lines, params)]
    found: dict[str, float | list[float]] = {}
    # A mode in which nothing ran is missing, not 0.
    for name, values in (
        ("per_process_ops", [row.processes / row.tasks for row in rows if row.processes]),
        ("per_thread_ops", [row.threads / row.tasks for row in rows if row.threads]),
    ):
        if values:
            found[name] = float(int(sum(values) / len(values)))
    found["workload"] = sum(row.processes + row.threads for row in rows)
    return found


def table(lines: list[str]) -> list[Row]:
    if not any(line.startswith("tasks,processes,") for line in lines):
        return []
    rows = [Row(int(match[1]), float(match[2]), float(match[3])) for line in lines if (match := ROW.fullmatch(line))]
    for row in rows:
        if min(row.processes, row.threads) < 0:  # runtest.py's -1: that program printed no average
            raise ParseError(f"with {row.tasks} tasks, will-it-scale's {'processes' if row.processes < 0 else 'threads'} gave no result")
    rows = [row for row in rows if row.tasks > 0 and row.processes + row.threads > 0]
    if not rows:
        raise ParseError("the table of will-it-scale has no row with a result")
    return rows


def average(lines: list[str], params: Mapping[str, str]) -> Row:
    averages = [float(match[1]) for line in lines if (match := AVERAGE.fullmatch(line))]
    if len(averages) != 1:
        raise ParseError("will-it-scale printed no average" if not averages else f"will-it-scale printed {len(averages)} averages, expected one")
    tasks = int(params["nr_task"]) if params.get("nr_task", "").isdecimal() else 1
    if tasks < 1 or averages[0] <= 0:
        raise ParseError("will-it-scale did no operation")
    threads = params.get("mode") == "thread"
    return Row(tasks, 0.0 if threads else averages[0], averages[0] if threads else 0.0)
