"""Reader of `perf stat` output: aligned text, `-x SEP` and `-j`, with or without `-r N`,
in any locale.

swingbot's own runs use LC_ALL=C and `-x,`; the other forms come from elsewhere (a developer's mail,
an older mail of the lists). Only totals are read: interval (`-I`) and per-CPU (`-A`) output is
refused, not misread, and so is a line that begins like a counter and is none.
`<not supported>` and `<not counted>` are missing, never 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.reading.result import ParseError

RUNNING: Final = "running_pct."  # before an event: its running share, kept beside its count
_MISSING: Final = ("<not supported>", "<not counted>")
_INTERVAL: Final = re.compile(
    r'^[ \t]*\d+[.,]\d{9}(?:\W|$)(?!.*seconds)|^\{"interval"', re.MULTILINE
)
_BY_PART: Final = (
    "this is perf stat output by CPU or socket (-A, --per-*), or by cgroup; only totals can be read"
)
_PER_CPU: Final = re.compile(
    r"^[ \t]*(?:CPU\d+|S\d+(?:-[A-Z]+\d+)*|N\d+)[\s,;|]+[\d<]"
    r'|^[ \t]*\{.*"(?:cpu|core|socket|die|cluster|cache|node|thread|cgroup)"\s*:',
    re.MULTILINE,
)
_EVENT: Final = re.compile(r"[A-Za-z][\w.-]*/[^/\n]*/\w*|[A-Za-z][\w.:@-]*")
# value SEP unit SEP event [SEP error%] SEP run time SEP running share [SEP metric SEP unit]:
# the separator is the text between value and unit. perf before 3.17 has no run time and share.
_VALUE: Final = r"^\s*(?P<value><not \w+>|-?\d+(?:[.,]\d+)?)"
_ERROR: Final = r"(?:(?P=sep)(?P<error>\d+(?:[.,]\d+)?)%)?"
_SEPARATED: Final = re.compile(
    rf"{_VALUE}(?P<sep>\s??[^\w\s.<%-]{{1,3}}?\s??|\s)"
    r"(?P<unit>(?:(?!\d|(?P=sep))\S(?:(?!(?P=sep))\S){0,15})?)(?P=sep)(?P<event>[A-Za-z].{0,300}?)"
    rf"{_ERROR}(?P=sep)\d{{1,20}}(?P=sep)(?P<running>\d{{1,3}}[.,]\d\d)(?:(?P=sep).*)?$"
)
_OLD: Final = re.compile(
    rf"{_VALUE}(?P<sep>[,;|\t])(?P<unit>[A-Za-z]*)(?P=sep)(?P<event>[A-Za-z][^\s,;|]*?)"
    rf"{_ERROR}(?P<running>)$"
)
_NUMBER: Final = re.compile(r"\s*(?:<not \w+>|-?\d++(?:[.,]\d++)?+)")
_QUOTED: Final = re.compile(r"^(?:> ?)+")  # in the answer to a mail
_GROUP: Final = "'\u2019\u00a0\u202f "
_UNGROUPED: Final = str.maketrans("", "", _GROUP)
_HEADING: Final = re.compile(
    r"^[ \t]*Performance counter stats for .*?(?:\((\d{1,6}) runs\))?:[ \t]*$", re.MULTILINE
)
_ALL_CPUS: Final = re.compile(r"counter stats for '(?:system wide|CPU\(s\))")
# Not the subsystem of a tracepoint: what stands behind these and a colon is a modifier.
_PLAIN: Final = re.compile(
    r"[^-.\n]*[-.].*|cycles|instructions|branches|faults|cs|migrations|slots|\w+_time"
)
_MODIFIED: Final = re.compile(r"[ukhpPGHSDIWeb]+")
UNITS: Final = frozenset({"msec", "usec", "nsec", "ns", "us", "ms", "Joules", "Bytes", "MiB", "%"})
# What may stand behind an event: perf's own metric, the error of `-r N`, the running share
# (`(25.00%)`; `[25.00%]` and `(scaled from 25.00%)` in older versions).
_RUNNING: Final = re.compile(r"[\[(](?:scaled from)?\s*(\d{1,3}[.,]\d+)%\s*[\])]")
_STDERR: Final = re.compile(r"\+-\s*(\d+(?:[.,]\d+)?)%")
_REST: Final = r"#|\(\s*\+-|[\[(](?:scaled from)?\s*\d+[.,]\d+%|\[\d+ of "
_ALIGNED: Final = 12  # columns in which perf, or a mail without its indent, ends a value
_TEXT: Final = re.compile(
    rf"^\s*(?P<value><not \w+>"
    rf"|-?(?:\d{{1,3}}(?:(?:,\d\d)*,\d{{3}}|(?:[{_GROUP}.,]\d{{3}})+)(?:[.,]\d+)?(?!\d)"
    rf"|\d+(?:[.,]\d+)?))"
    rf"(?P<gap>\s+)(?:(?P<unit>[^\s\d#(\[]\S{{0,15}})\s+)?(?P<event>[A-Za-z]\S*)(?: \(msec\))?"
    rf"(?P<rest>\s+(?:{_REST}).*)?$"
)
_SECONDS: Final = re.compile(
    r"^\s*(?P<value>\d+[.,]\d+)(?:\s+\+-\s*\d+[.,]\d+)?\s+seconds"
    r" (?P<what>time elapsed|user|sys)(?P<rest>(?:\s+\(.*)?)$"
)
_JSON_VALUE: Final = re.compile(r'"counter-value"\s*:\s*"([^"]*)"')
_JSON_FIELD: Final = re.compile(r'"(unit|event)"\s*:\s*"([^"]*)"')
_JSON_NUMBER: Final = re.compile(r'"(variance|pcnt-running)"\s*:\s*(\d+(?:[.,]\d+)?)')
_HYBRID: Final = re.compile(
    r"cpu_(?:core|atom|lowpower)/(?!r[0-9a-f]+/)([^/=]+)/(\w*)"
)  # a raw code is the PMU's own


@dataclass(frozen=True, slots=True)
class Count:
    """One event.

    `stderr_pct` is perf's number after `+-`: the standard error of the mean in percent of it;
    None for a single run. `running_pct` is the share of the time in which the event had a counter:
    below 100 the value is perf's extrapolation from that share.
    """

    value: float
    unit: str
    stderr_pct: float | None = None
    running_pct: float = 100.0


@dataclass(frozen=True, slots=True)
class _CounterRow:
    event: str
    value: str
    unit: str
    stderr_pct: str | None = None
    running_pct: str | None = None


def read_perf_stat(text: str) -> dict[str, Count]:
    """Return counts by perf's event name.

    The PMUs of a hybrid CPU count one event under one name, if their counts add up to the whole
    run (`_whole`), else each under its own.

    Raises ParseError when there is no perf output in `text`, or a form that can't be read without
    guessing. An empty result means that perf printed events but could count none of them.
    """
    if len(text) > limits.PERF_STAT_CHARACTERS:
        raise ParseError(
            f"the perf stat output has {len(text)} characters, more than"
            f" {limits.PERF_STAT_CHARACTERS}"
        )
    lines = [
        _QUOTED.sub("", line.rstrip())
        for line in text.splitlines()
        if len(line) <= limits.PERF_STAT_LINE_CHARACTERS
    ]
    plain = "\n".join(lines)
    if _INTERVAL.search(plain):
        raise ParseError(
            "this is perf stat output by intervals (-I), which perf-stat-interval reads;"
            " only totals of a whole run can be read here"
        )
    if _PER_CPU.search(plain):
        raise ParseError(_BY_PART)
    rows = list(_rows(lines))
    if not rows:
        raise ParseError("no perf stat counters found: neither aligned text, -x nor -j output")
    if len(rows) > limits.PERF_STAT_EVENTS:
        raise ParseError(
            f"perf stat printed {len(rows)} events, more than {limits.PERF_STAT_EVENTS}"
        )
    return _collect(rows, together=_ALL_CPUS.search(plain) is not None)


def read_repetitions(text: str) -> int | None:
    """Return N of `perf stat -r N`.

    None if the output does not contain it, as with `-x` and `-j`.
    """
    match = _HEADING.search(text[: limits.PERF_STAT_CHARACTERS])
    return int(match[1]) if match and match[1] else None


def read_quality(text: str) -> dict[str, object]:
    """Return what qualifies the counts: `runs` of `-r N`, `error_pct` and `running_pct` by event.

    Left out where perf says nothing, and shares of 100.
    """
    counts, runs = read_perf_stat(text), read_repetitions(text)
    qualities: dict[str, object] = {
        "runs": runs,
        "error_pct": {k: one.stderr_pct for k, one in counts.items() if one.stderr_pct is not None},
        "running_pct": {k: one.running_pct for k, one in counts.items() if one.running_pct < 100},
    }
    return {name: value for name, value in qualities.items() if value}


def _rows(lines: list[str]) -> Iterable[_CounterRow]:
    if any(line.lstrip().startswith("{") and _JSON_VALUE.search(line) for line in lines):
        return _json_rows(lines)
    headings = [number for number, line in enumerate(lines) if _HEADING.match(line)]
    if len(headings) > 1:
        raise ParseError(f"{len(headings)} tables of perf stat: only one can be read at a time")
    if headings:
        return _table_rows(lines[headings[0] + 1 :])
    return _separated_rows(lines) or _loose_rows(lines)


# --- -x SEP ---------------------------------------------------------------------------------------


def _separated_rows(lines: Iterable[str]) -> list[_CounterRow]:
    rows: list[tuple[re.Match[str], str]] = []
    others: list[tuple[str, str]] = []
    for line in lines:
        match = _SEPARATED.match(line) or _OLD.match(line)
        if match and _is_event(match["event"], match["sep"]):
            rows.append((match, line))
        elif number := _NUMBER.match(line):
            others.append((line, line[number.end() :]))
    separators = {row["sep"] for row, _ in rows}
    if len(separators) > 1:
        raise ParseError(f"perf stat's columns have {len(separators)} different separators")
    # A row without the share beside rows with it was cut: even its event may be half a name.
    shares = any(row["running"] for row, _ in rows)
    cut = [line for row, line in rows if shares and not row["running"]]
    cut += [
        line
        for line, rest in others
        if any(rest.startswith(sep) and rest.count(sep) > 1 for sep in separators)
    ]
    if cut:
        raise ParseError(f"{cut[0].strip()[:80]!r} is no row of perf stat -x that can be read")
    return [
        _CounterRow(*row.group("event", "value", "unit", "error", "running")) for row, _ in rows
    ]


def _is_event(event: str, separator: str) -> bool:
    """Return whether this is an event, and not one with the cgroup behind it: `cycles@A`."""
    name, _, rest = event.partition(":")
    if separator == ":" and rest and _PLAIN.fullmatch(name) and not _MODIFIED.fullmatch(rest):
        return False
    if separator == "@" and "@" in event:
        return False
    return _EVENT.fullmatch(event) is not None


# --- text -----------------------------------------------------------------------------------------


def _table_rows(lines: Iterable[str]) -> list[_CounterRow]:
    """Return the rows of the table below its heading: counters up to a blank line, then the clock.

    Text around it is somebody's mail.
    """
    rows: list[_CounterRow] = []
    ended = timed = apart = wrapped = False
    for line in lines:
        metric, wrapped = wrapped, line.endswith("#")
        if metric and rows:  # a mailer broke the line before perf's own metric
            rows[-1] = _noted(rows[-1], line)
        elif not line.strip():
            ended = ended or bool(rows)
        elif clock := _SECONDS.match(line):
            ended = timed = True
            rows.append(_clock(clock))
        elif timed:
            break
        elif ended:
            continue
        elif row := _text_row(line):
            apart = False
            rows.append(row)
        elif _NUMBER.match(line):
            raise ParseError(f"{line.strip()[:80]!r} is no row of perf stat that can be read")
        elif line.lstrip()[0] not in "#([":
            words = line.partition("#")[0].split()
            if any(_text_row(" ".join(words[skipped:])) for skipped in (1, 2, 3)):
                raise ParseError(_BY_PART)
            apart = True  # such as `TopdownL1 # 24.1 % tma_backend_bound`: of a group of events
        elif rows and not apart:
            # An event's second metric has a line of its own, and what ends the row is behind it.
            rows[-1] = _noted(rows[-1], line)
    # perf prints no error of 0.
    repeated = any(row.stderr_pct for row in rows)
    return [replace(row, stderr_pct=row.stderr_pct or "0") for row in rows] if repeated else rows


def _loose_rows(lines: Iterable[str]) -> Iterator[_CounterRow]:
    """Yield rows without a heading: only those that are aligned as perf aligns them."""
    for line in lines:
        if clock := _SECONDS.match(line):
            yield _clock(clock)
        elif (match := _TEXT.match(line)) and (row := _text_row(line)):
            aligned = row.unit in UNITS or (not row.unit and len(match["gap"]) > 1)
            if match.end("value") >= _ALIGNED and (aligned or "#" in (match["rest"] or "")):
                yield row


def _text_row(line: str) -> _CounterRow | None:
    match = _TEXT.match(line)
    if match is None or not _EVENT.fullmatch(match["event"]):
        return None
    # One blank ends a value that has a unit. Otherwise, this is an event and its cgroup.
    if match["unit"] and match["unit"] not in UNITS and len(match["gap"]) > 1:
        return None
    value = match["value"] if match["value"] in _MISSING else plain_number(match["value"])
    return _noted(_CounterRow(match["event"], value, match["unit"] or ""), match["rest"] or "")


def _noted(row: _CounterRow, rest: str) -> _CounterRow:
    error, running = _STDERR.search(rest), _RUNNING.search(rest)
    return replace(
        row,
        stderr_pct=error[1] if error else row.stderr_pct,
        running_pct=running[1] if running else row.running_pct,
    )


def _clock(seconds: re.Match[str]) -> _CounterRow:
    # The clock is never grouped, so its only separator is the decimal sign, whatever follows it.
    name = "seconds-" + seconds["what"].removeprefix("time ")
    return _noted(_CounterRow(name, seconds["value"].replace(",", "."), "s"), seconds["rest"])


# --- -j -------------------------------------------------------------------------------------------


def _json_rows(lines: Iterable[str]) -> Iterator[_CounterRow]:
    # Fields are picked one by one: under a locale with a decimal comma perf's lines are not valid
    # JSON.
    for line in lines:
        if line.startswith("{") and not line.rstrip(", ]").endswith("}"):
            raise ParseError(f"{line[-40:]!r} is no end of a line of perf stat -j: it was cut")
        value, fields = _JSON_VALUE.search(line), dict(_JSON_FIELD.findall(line))
        if value is None or not fields.get("event"):
            continue
        numbers = dict(_JSON_NUMBER.findall(line))
        yield _CounterRow(
            _unescape(fields["event"]),
            value[1],
            _unescape(fields.get("unit", "")),
            numbers.get("variance"),
            numbers.get("pcnt-running"),
        )


def _unescape(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


# --- counts ---------------------------------------------------------------------------------------


def plain_number(text: str) -> str:
    """Convert a number that perf printed for people to Python's form: `28 866 491`,
    `327577,471718`, `1.234.567`, `1,234.50`.

    perf prints counts without decimals and scaled values with two or six, and groups by three:
    so a lone separator with exactly three digits after it groups, and any other last one is the
    decimal sign.
    """
    text = text.translate(_UNGROUPED)
    signs = [char for char in text if char in ".,"]
    if not signs:
        return text
    last = signs[-1]
    whole, _, decimals = text.rpartition(last)
    grouped = signs.count(last) > 1 or (len(signs) == 1 and len(decimals) == 3)
    if grouped:
        return text.replace(".", "").replace(",", "")
    return whole.replace(".", "").replace(",", "") + "." + decimals


def _collect(rows: Iterable[_CounterRow], *, together: bool) -> dict[str, Count]:
    counts: dict[str, Count] = {}
    halves: dict[str, dict[str, Count | None]] = {}
    seen: set[str] = set()
    apart: set[str] = set()
    for row in rows:
        if row.event in seen:
            raise ParseError(
                f"perf stat gives the event {row.event[:100]!r} twice;"
                " only one total of each can be read"
            )
        seen.add(row.event)
        count = None if row.value.startswith("<") else _count(row)
        if hybrid := _HYBRID.fullmatch(row.event):
            name = f"{hybrid[1]}:{hybrid[2]}" if hybrid[2] else hybrid[1]
            halves.setdefault(name, {})[row.event] = count
            if row.value == "<not supported>":
                apart.add(name)
        elif count is not None:
            counts[row.event] = count
    for name, each in halves.items():
        whole = None if name in apart else _whole(each, together=together)
        if name in seen:
            raise ParseError(f"perf stat gives {name[:100]!r} beside its PMUs' counts")
        counts |= {name: whole} if whole else {k: one for k, one in each.items() if one}
    return counts


def _whole(halves: Mapping[str, Count | None], *, together: bool) -> Count | None:
    """Return one count of the PMUs of a hybrid CPU; None if they are not a whole.

    PMUs that counted all the time, or on all CPUs (`together`), add up. The counters of a task run
    while it is on a CPU of their kind, and perf extrapolates each to the whole run: where the
    shares add up to the run, the counts times their shares do too.
    """
    found = [half for half in halves.values() if half is not None]
    shares = sum(half.running_pct for half in found)
    if len(halves) < 2 or not found:
        return None
    if len(found) == len(halves) and (together or all(one.running_pct == 100 for one in found)):
        share = min(one.running_pct for one in found)
        return Count(sum(one.value for one in found), found[0].unit, running_pct=share)
    if not 99 <= shares <= 101:
        return None
    # Two halves have no common standard error that could be derived from theirs alone.
    value = sum(half.value * half.running_pct / 100 for half in found)
    if all(half.value.is_integer() for half in found):
        value = float(round(value))
    error = found[0].stderr_pct if len(found) == 1 else None
    return Count(value, found[0].unit, error, min(shares, 100.0))


def _count(row: _CounterRow) -> Count:
    error, running = row.stderr_pct, row.running_pct
    return Count(
        _number(row.value, row.event),
        row.unit,
        _number(error, row.event) if error else None,
        _number(running, row.event) if running else 100.0,
    )


def _number(text: str, event: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not abs(value) < limits.SAMPLE_VALUE:  # also NaN
        raise ParseError(
            f"perf stat gives {text[:40]!r} for {event[:100]!r}, which is not a number below"
            f" {limits.SAMPLE_VALUE:g}"
        )
    return value
