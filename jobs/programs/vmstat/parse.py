"""`vmstat [--timestamp] -n 1` of procps, under LKP's names.

The first row is the average since the testbox booted. LKP counts it as a second like the others;
here it is left out. `vmstat -a` has other columns under another heading, which is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

KEYS = (
    *(
        "procs.r",
        "procs.b",
        "memory.swpd",
        "memory.free",
        "memory.buff",
        "memory.cache",
        "swap.si",
        "swap.so",
        "io.bi",
    ),
    *(
        "io.bo",
        "system.in",
        "system.cs",
        "cpu.us",
        "cpu.sy",
        "cpu.id",
        "cpu.wa",
        "cpu.st",
        "cpu.gu",
    ),
)
ROW = re.compile(
    r"\s*(?P<numbers>\d{1,20}(?:\s+\d{1,20}){15,17})(?:\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?\s*"
)
MAX_ROWS = 100_000


def series(text: str) -> list[dict[str, float]]:
    """Return every row with LKP's keys."""
    lines = [line[:500] for line in text.splitlines()]
    rows = [match["numbers"].split() for line in lines if (match := ROW.fullmatch(line))]
    if heading := next(
        (words for line in lines if (words := line.split())[:2] == ["r", "b"]), None
    ):
        names = [key.partition(".")[2] for key in KEYS]
        columns = [word for word in heading if word in names]
        if columns != names[: len(columns)]:
            raise ParseError(f"vmstat printed other columns: {' '.join(heading)[:100]}")
        rows = [row for row in rows if len(row) == len(columns)]  # shorter ones were cut
    return [
        {key: float(number) for key, number in zip(KEYS, row, strict=False)}
        for row in rows[:MAX_ROWS]
    ]


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the mean of each column. Raises ParseError if the run ended before its first row."""
    rows = series(files.get("vmstat", ""))[1:]
    if not rows:
        raise ParseError(
            "vmstat printed only the row of averages since boot: the run was too short"
        )
    columns: dict[str, list[float]] = {}
    for row in rows:
        for key, value in row.items():
            columns.setdefault(key, []).append(value)
    return {key: sum(values) / len(values) for key, values in columns.items()}
