"""Read a history from a CSV, TSV or JSON file, and draw it as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from swingbot.core import limits
from swingbot.core.stats.findings import Findings
from swingbot.core.stats.parse import GAPS, BadSamples
from swingbot.core.stats.table_cells import read_cells

COLUMNS: Final = ("x", "value", "time", "run", "anchor")
_FORM: Final = (
    "a table with the columns x and value (optional: time, run, anchor), or a JSON list of"
    " objects with these keys"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point: the means over its runs, which it holds too."""

    x: str
    value: float
    anchor: float | None = None
    runs: tuple[float, ...] = ()


def parse_history(text: str, form: str) -> list[Point]:
    """Return the points, oldest first.

    They are ordered by `time` if the file has it, and by position otherwise. Lines with the same x
    are runs of one point. Lines without a value are ignored. `form` is json, csv or tsv. Raises
    BadSamples.
    """
    lines = _json(text) if form == "json" else _table(text, form)
    points: dict[str, list[tuple[float | None, float, float | None]]] = {}
    for number, line in enumerate(lines, start=1):
        value = _number(line.get("value"), number, "value")
        if value is None:
            continue
        x = str(line.get("x") if line.get("x") is not None else number).strip()
        time, anchor = (_number(line.get(name), number, name) for name in ("time", "anchor"))
        points.setdefault(x, []).append((time, value, anchor))
    if not points:
        raise BadSamples(f"the file contains no values; give {_FORM}")
    if len(lines) > limits.STATS_VALUES:
        raise BadSamples(f"the file has {len(lines)} lines; the maximum is {limits.STATS_VALUES}")
    timed = [time is not None for runs in points.values() for time, _, _ in runs]
    if any(timed) and not all(timed):
        raise BadSamples("some lines have a time and others do not; give a time for all or none")
    order = sorted(points, key=lambda x: points[x][0][0] or 0.0) if all(timed) else list(points)
    merged = [_point(x, points[x]) for x in order]
    anchored = [point.anchor is not None for point in merged]
    if any(anchored) and not all(anchored):
        missing = merged[anchored.index(False)].x
        raise BadSamples(f"point {missing} has no anchor; give one for every point, or for none")
    return merged


def _point(x: str, runs: Sequence[tuple[float | None, float, float | None]]) -> Point:
    anchors = [anchor for _, _, anchor in runs if anchor is not None]
    return Point(
        x=x,
        value=math.fsum(value for _, value, _ in runs) / len(runs),
        anchor=math.fsum(anchors) / len(anchors) if anchors else None,
        runs=tuple(value for _, value, _ in runs),
    )


def _json(text: str) -> list[Mapping[str, Any]]:
    try:
        given = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadSamples(f"the file is not valid JSON ({error}); give {_FORM}") from None
    if not isinstance(given, list):
        raise BadSamples(f"the JSON is not a list; give {_FORM}")
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in given):
        return [{"value": each} for each in given]
    for number, each in enumerate(given, start=1):
        if not isinstance(each, Mapping) or "value" not in each:
            raise BadSamples(f"entry {number} has no key 'value'; give {_FORM}")
    return given


def _table(text: str, form: str) -> list[Mapping[str, Any]]:
    try:
        rows = read_cells(text, form, words=("x", "run"))
    except ValueError as error:
        raise BadSamples(f"{error}; give {_FORM}") from None
    if not rows or "value" not in rows[0]:
        raise BadSamples(f"the first line has no column 'value'; give {_FORM}")
    return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]


def _number(given: Any, line: int, name: str) -> float | None:
    if given is None or (isinstance(given, str) and given.strip().lower() in GAPS):
        return None
    try:
        number = float(given) if not isinstance(given, bool | list | dict) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadSamples(
            f"entry {line}: {name} is {str(given)[:40]!r}, which is not a number; write a decimal"
            " point, and nothing between thousands"
        )
    return number


def draw_history(values: Sequence[float], findings: Findings, *, width: int = 100) -> str:
    """Draw points and levels as text, oldest left; `^` marks the beginning of a level.

    Many points share a column.
    """
    rows, columns = 12, max(10, min(width - 14, len(values)))
    low, high = min(values), max(values)
    span = (high - low) or 1.0

    def row(value: float) -> int:
        return rows - 1 - round((value - low) / span * (rows - 1))

    def column(index: int) -> int:
        return index * columns // len(values)

    cells = [[" "] * columns for _ in range(rows)]
    for level in findings.levels:
        heights = np.linspace(*level.ends, level.last - level.first + 1)
        for index, height in enumerate(np.clip(heights, low, high).tolist(), level.first):
            cells[row(height)][column(index)] = "-"
    for index, value in enumerate(values):
        cells[row(value)][column(index)] = "o"
    marks = [" "] * columns
    begins = [change.at for change in findings.changes]
    begins += [change.at for change in findings.mode_changes]
    begins += [findings.ramp.at] if findings.ramp is not None else []
    begins += [findings.path.at] if findings.path is not None else []
    for at in begins:
        marks[column(at)] = "^"
    labels = {0: f"{high:.5g}", rows - 1: f"{low:.5g}"}
    lines = [f"{labels.get(n, ''):>11} |{''.join(cells[n])}".rstrip() for n in range(rows)]
    return "\n".join([*lines, *([f"{'':>11}  {''.join(marks)}".rstrip()] if "^" in marks else [])])
