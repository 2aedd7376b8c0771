"""Reader of `perf stat` output: aligned text, `-x SEP` and `-j`, with or without `-r N`,
in any locale.

swingbot's own runs use LC_ALL=C and `-x,`; the other forms come from elsewhere (a developer's mail,
an older mail of the lists). Only totals are read: interval (`-I`) and per-CPU (`-A`) output is
refused, not misread. `<not supported>` and `<not counted>` are missing, never 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.reading.result import ParseError

_MISSING: Final = ("<not supported>", "<not counted>")
_INTERVAL: Final = re.compile(r'^[ \t]*\d+\.\d{9}(?:\W|$)(?!.*seconds)|^\{"interval"', re.MULTILINE)
_PER_CPU: Final = re.compile(r"^(?:CPU\d+|S\d+(?:-D\d+)?(?:-C\d+)?|N\d+)[\s,;]", re.MULTILINE)
# value SEP unit SEP event SEP ...: the separator is the text between value and unit,
# repeated after the unit.
_EVENT: Final = r"[A-Za-z][\w.-]*/[^/\n]*/\w*|[A-Za-z][\w.:@-]*"
_SEPARATED: Final = re.compile(
    r"^\s*(?P<value><not \w+>|\d+(?:[.,]\d+)?)(?P<sep>[^\w\s.<%-]|\s)(?P<unit>[A-Za-z%/]*)(?P=sep)"
    rf"(?P<event>{_EVENT})(?:(?P=sep)(?P<rest>.*))?$"
)
_GROUP: Final = "'\u2019\u00a0\u202f "
_UNIT: Final = r"msec|usec|nsec|ns|us|ms|Joules|Bytes|[KMG]iB|%"
_TEXT: Final = re.compile(
    rf"^\s*(?P<value><not \w+>|\d{{1,3}}(?:[{_GROUP}.,]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
    rf"\s+(?:(?P<unit>{_UNIT})\s+)?(?P<event>{_EVENT})(?P<rest>.*)$"
)
_SECONDS: Final = re.compile(
    r"^\s*(?P<value>\d+[.,]\d+)(?:\s+\+-\s*\d+[.,]\d+)?\s+seconds"
    r" (?P<what>time elapsed|user|sys)(?P<rest>.*)$"
)
_STDERR: Final = re.compile(r"\+-\s*(\d+(?:[.,]\d+)?)%")
_REPETITIONS: Final = re.compile(
    r"^[ \t]*Performance counter stats for .*\((\d{1,6}) runs\):[ \t]*$", re.MULTILINE
)
_JSON_VALUE: Final = re.compile(r'"counter-value"\s*:\s*"([^"]*)"')
_JSON_FIELD: Final = re.compile(r'"(unit|event)"\s*:\s*"([^"]*)"')
_JSON_VARIANCE: Final = re.compile(r'"variance"\s*:\s*(\d+(?:[.,]\d+)?)')
_HYBRID: Final = re.compile(r"cpu_(?:core|atom)/([^/]+)/(\w*)")


@dataclass(frozen=True, slots=True)
class Count:
    """One event.

    `stderr_pct` is perf's number after `+-`: the standard error of the mean in percent of it;
    None for a single run.
    """

    value: float
    unit: str
    stderr_pct: float | None = None


@dataclass(frozen=True, slots=True)
class _CounterRow:
    event: str
    value: str
    unit: str
    stderr_pct: str | None


def read_perf_stat(text: str) -> dict[str, Count]:
    """Return counts by perf's event name.

    Events of the halves of a hybrid CPU are summed under one name.

    Raises ParseError when there is no perf output in `text`, or a form that can't be read without
    guessing. An empty result means that perf printed events but could count none of them.
    """
    if len(text) > limits.PERF_STAT_CHARACTERS:
        raise ParseError(
            f"the perf stat output has {len(text)} characters, more than"
            f" {limits.PERF_STAT_CHARACTERS}"
        )
    if _INTERVAL.search(text):
        raise ParseError(
            "this is perf stat output by intervals (-I), which perf-stat-interval reads;"
            " only totals of a whole run can be read here"
        )
    if _PER_CPU.search(text):
        raise ParseError(
            "this is perf stat output by CPU or socket (-A, --per-*); only totals can be read"
        )
    rows = list(
        _rows(
            [
                line.rstrip()
                for line in text.splitlines()
                if len(line) <= limits.PERF_STAT_LINE_CHARACTERS
            ]
        )
    )
    if not rows:
        raise ParseError("no perf stat counters found: neither aligned text, -x nor -j output")
    if len(rows) > limits.PERF_STAT_EVENTS:
        raise ParseError(
            f"perf stat printed {len(rows)} events, more than {limits.PERF_STAT_EVENTS}"
        )
    return _collect(rows)


def read_repetitions(text: str) -> int | None:
    """Return N of `perf stat -r N`.

    None if the output does not contain it, as with `-x` and `-j`.
    """
    match = _REPETITIONS.search(text[: limits.PERF_STAT_CHARACTERS])
    return int(match[1]) if match else None


def _rows(lines: list[str]) -> Iterator[_CounterRow]:
    if any(line.lstrip().startswith("{") for line in lines):
        yield from _json_rows(lines)
    elif any("Performance counter stats for" in line for line in lines):
        yield from _text_rows(lines)
    else:
        rows = list(_separated_rows(lines))
        yield from rows or _text_rows(lines)


def _separated_rows(lines: Iterable[str]) -> Iterator[_CounterRow]:
    for line in lines:
        match = _SEPARATED.match(line)
        if match:
            first = (match["rest"] or "").split(match["sep"])[0]
            # With -r, a column with a percent sign follows the event; without it,
            # the run time does.
            yield _CounterRow(
                match["event"],
                match["value"],
                match["unit"],
                first.removesuffix("%") if first.endswith("%") else None,
            )


def _text_rows(lines: Iterable[str]) -> Iterator[_CounterRow]:
    for line in lines:
        seconds = _SECONDS.match(line)
        stderr = _STDERR.search(seconds["rest"] if seconds else line)
        if seconds:
            name = "seconds-" + seconds["what"].removeprefix("time ")
            # The clock is never grouped, so its only separator is the decimal sign,
            # whatever follows it.
            yield _CounterRow(
                name, seconds["value"].replace(",", "."), "s", stderr[1] if stderr else None
            )
            continue
        match = _TEXT.match(line)
        if match:
            value = match["value"] if match["value"] in _MISSING else plain_number(match["value"])
            yield _CounterRow(
                match["event"], value, match["unit"] or "", stderr[1] if stderr else None
            )


def _json_rows(lines: Iterable[str]) -> Iterator[_CounterRow]:
    # Fields are picked one by one: under a locale with a decimal comma perf's lines are not valid
    # JSON.
    for line in lines:
        value, fields = _JSON_VALUE.search(line), dict(_JSON_FIELD.findall(line))
        if value is None or not fields.get("event"):
            continue
        variance = _JSON_VARIANCE.search(line)
        yield _CounterRow(
            _unescape(fields["event"]),
            value[1],
            fields.get("unit", ""),
            variance[1] if variance else None,
        )


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def plain_number(text: str) -> str:
    """Convert a number that perf printed for people to Python's form: `28 866 491`,
    `327577,471718`, `1.234.567`, `1,234.50`.

    perf prints counts without decimals and scaled values with two or six, and groups by three:
    so a lone separator with exactly three digits after it groups, and any other last one is the
    decimal sign.
    """
    text = re.sub(f"[{_GROUP}]", "", text)
    signs = [char for char in text if char in ".,"]
    if not signs:
        return text
    last = signs[-1]
    whole, _, decimals = text.rpartition(last)
    grouped = signs.count(last) > 1 or (len(signs) == 1 and len(decimals) == 3)
    if grouped:
        return text.replace(".", "").replace(",", "")
    return whole.replace(".", "").replace(",", "") + "." + decimals


def _collect(rows: Iterable[_CounterRow]) -> dict[str, Count]:
    counts: dict[str, Count] = {}
    seen: set[str] = set()
    for row in rows:
        if row.event in seen:
            raise ParseError(
                f"perf stat gives the event {row.event[:100]!r} twice;"
                " only one total of each can be read"
            )
        seen.add(row.event)
        if row.value.startswith("<"):
            continue
        hybrid = _HYBRID.fullmatch(row.event)
        name = (f"{hybrid[1]}:{hybrid[2]}" if hybrid[2] else hybrid[1]) if hybrid else row.event
        count = Count(
            _number(row.value, row.event),
            row.unit,
            _number(row.stderr_pct, row.event) if row.stderr_pct else None,
        )
        # Two halves have no common standard error that could be derived from theirs alone.
        counts[name] = (
            Count(counts[name].value + count.value, count.unit) if name in counts else count
        )
    return counts


def _number(text: str, event: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) >= 1e300:
        raise ParseError(
            f"perf stat gives {text[:40]!r} for {event[:100]!r}, which is not a number"
        )
    return value
