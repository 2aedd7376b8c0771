"""will-it-scale: the table of its runtest.py or the output of one of its programs,
with LKP's names.

The table has one row per number of tasks:
tasks,processes,processes_idle,threads,threads_idle,linear.
A program prints `average:N`, the operations per second of all its copies together.
A mode that was not run is 0 in every row; a 0 beside other numbers means that every copy died.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from swingbot_jobs.reading.result import ParseError

ROW = re.compile(
    r"(\d{1,6}),(-1|\d{1,18}(?:\.\d{1,9})?),([^,]{1,30}),(-1|\d{1,18}(?:\.\d{1,9})?),([^,]{1,30}),([^,]{1,30})"
)
CUT = re.compile(r"[1-9]\d{0,5}(?:,|$)")
SECOND = re.compile(r"min:(\d{1,18}) max:\d{1,18} total:\d{1,18}$")
ASSERTION = re.compile(r"Assertion .{1,200} failed")
ENDED = re.compile(r"Traceback \(most recent call last\)|KeyboardInterrupt|Killed\b|Terminated\b")
AVERAGE = re.compile(r"average:\s*(\d{1,18}(?:\.\d{1,9})?)")


@dataclass(frozen=True)
class Row:
    """Operations per second of all copies together; 0 where that mode was not run."""

    tasks: int
    processes: float
    threads: float
    processes_idle: float = 0.0
    threads_idle: float = 0.0
    linear: float = 0.0


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return operations per second of each copy and of all copies.

    Raises ParseError without a row or an average, or if a copy died.
    """
    lines = [line.strip()[:500] for line in files.get("stdout", "").splitlines()]
    rows = table(lines)
    check_alive(lines, files.get("stderr", ""))
    metrics = of_table(rows)
    rows = rows or [average(lines, params)]
    # A mode in which nothing ran is missing, not 0.
    for name, values in (
        ("per_process_ops", [row.processes / row.tasks for row in rows if row.processes]),
        ("per_thread_ops", [row.threads / row.tasks for row in rows if row.threads]),
    ):
        if values:
            metrics[name] = float(int(sum(values) / len(values)))
    metrics["workload"] = sum(row.processes + row.threads for row in rows)
    return dict(metrics)


def check_alive(lines: list[str], stderr: str) -> None:
    """Raise ParseError if a copy died: it counts in the average as an idle copy."""
    died = next(
        (
            match
            for line in [*lines, *stderr.splitlines()]
            if (match := ASSERTION.search(line[:500]))
        ),
        None,
    )
    if died:
        raise ParseError(f"a copy of will-it-scale died: {died[0]}")
    if ended := next(
        (line for line in [*lines, *stderr.splitlines()] if ENDED.match(line.strip())), None
    ):
        raise ParseError(f"will-it-scale was ended: {ended.strip()[:80]}")
    slowest = (
        [
            float(match[1])
            for line in lines[lines.index("measurement") + 1 :]
            if (match := SECOND.match(line))
        ]
        if "measurement" in lines
        else []
    )
    if slowest and slowest[-1] == 0:
        raise ParseError(
            "a copy of will-it-scale did nothing in the last second that was measured:"
            " it died or hung"
        )


def of_table(rows: list[Row]) -> dict[str, float]:
    """Return LKP's metrics of each row, and how the last row scales: its processes divided by
    `linear` growth.
    """
    metrics: dict[str, float] = {}
    for row in rows:
        columns = {
            "processes": row.processes,
            "processes_idle": row.processes_idle,
            "threads": row.threads,
            "threads_idle": row.threads_idle,
            "linear": row.linear,
        }
        metrics |= {f"{row.tasks}.{name}": value for name, value in columns.items() if value}
    scaled = [row.processes / row.linear for row in rows if row.linear and row.tasks != 1]
    return metrics | ({"scalability": round(scaled[-1], 6)} if scaled and scaled[-1] else {})


def table(lines: list[str]) -> list[Row]:
    if not any(line.startswith("tasks,processes,") for line in lines):
        return []
    if cut := next((line for line in lines if CUT.match(line) and not ROW.fullmatch(line)), None):
        raise ParseError(
            f"will-it-scale's row of {cut.partition(',')[0]} tasks is incomplete: {cut[:80]!r}"
        )
    rows = [
        Row(
            int(match[1]),
            float(match[2]),
            float(match[4]),
            number(match[3]),
            number(match[5]),
            number(match[6]),
        )
        for line in lines
        if (match := ROW.fullmatch(line))
    ]
    for row in rows:
        if min(row.processes, row.threads) < 0:  # runtest.py's -1: that program printed no average
            raise ParseError(
                f"with {row.tasks} tasks,"
                f" will-it-scale's {'processes' if row.processes < 0 else 'threads'} printed no"
                " result"
            )
    rows = [row for row in rows if row.tasks > 0]
    if not rows:
        raise ParseError("the table of will-it-scale has no row with a result")
    if len({row.tasks for row in rows}) < len(rows):
        raise ParseError("will-it-scale's table has two rows of one number of tasks")
    check_modes(rows)
    return rows


def check_modes(rows: list[Row]) -> None:
    """Raise ParseError if nothing ran in a row, or nothing of a mode that ran in another row."""
    ran = [any(row.processes for row in rows), any(row.threads for row in rows)]
    for row in rows:
        numbers = [row.processes, row.threads]
        if not any(numbers):
            raise ParseError(f"nothing of will-it-scale ran with {row.tasks} tasks")
        for mode, number_, wanted in zip(("process", "thread"), numbers, ran, strict=True):
            if wanted and not number_:
                raise ParseError(f"no {mode} of will-it-scale ran with {row.tasks} tasks")
    units = {row.linear / row.tasks for row in rows if row.linear}
    if len(units) > 1:
        raise ParseError("will-it-scale's column `linear` does not grow with the tasks: it was cut")


def number(text: str) -> float:
    """Return a column that is only passed on.

    Values that are not numbers are left out, like a 0.
    """
    return float(text) if re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", text) else 0.0


def average(lines: list[str], params: Mapping[str, str]) -> Row:
    averages = [float(match[1]) for line in lines if (match := AVERAGE.fullmatch(line))]
    if len(averages) != 1:
        raise ParseError(
            "will-it-scale printed no average"
            if not averages
            else f"will-it-scale printed {len(averages)} averages, expected one"
        )
    tasks = int(params["nr_task"]) if params.get("nr_task", "").isdecimal() else 1
    if tasks < 1 or averages[0] <= 0:
        raise ParseError("will-it-scale did no operation")
    threads = params.get("mode") == "thread"
    return Row(tasks, 0.0 if threads else averages[0], averages[0] if threads else 0.0)
