"""Reader of `perf stat -I`: counts by interval, with the rates and ratios that LKP derives.

The arithmetic is LKP's to the last digit, because readers of `perf-stat.i.*`,
`ps.*` and `overall.*` know it:

- an interval ends where the time stamp moves by more than 10 ms; its length is the time between
  the ends of two intervals;
- the last interval is incomplete when perf is stopped, so it never counts;
  but `ps.*` divides by its time, and so is about 1/N too low;
- `i.*` is a rate or ratio of each interval, `overall.*` a ratio of sums:
  the mean of the former is not the latter;
- misses are divided by loads + misses (TLB, nodes), by references (cache),
  or by instructions (branches);
- both halves of a hybrid CPU add up under one name, as they do with -a; of a task each is
  extrapolated to the whole interval, so those with a share below 100 are refused without -a.

LKP counts `<not counted>` as 0; here it is missing, and so are the sums of an event that some
interval lacks. LKP mistakes a unit (`msec`) for an event;
here the event is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.reading.perf_stat import RUNNING, UNITS
from swingbot_jobs.reading.result import ParseError, Samples

SAME_INTERVAL: Final = 0.01  # seconds

_STAMP: Final = re.compile(r"\s*(\d{1,9}\.\d{1,9})(?=[^\w.])")
_VALUE: Final = re.compile(r"\d{1,20}(?:\.\d{1,9})?")
_EVENT: Final = re.compile(r"[A-Za-z][\w.:@/=,-]{0,200}")
# A raw code is the PMU's own.
_HYBRID: Final = re.compile(r"(?!cpu_\w+/(?:r[\da-f]+|[^/=]*=[^/]*)/)[\w.-]+/([^/]+)/(\w*)")
_UNIT: Final = re.compile(r"[^\d\s]{0,16}")
_RATE: Final = re.compile(r"[A-Z]\S{1,20}")
_JSON_FIELD: Final = re.compile(
    r'"(interval|counter-value|unit|event|pcnt-running|metric-value|metric-unit|socket)"'
    r'\s*:\s*"?([^",}]*)"?'
)
_BY_PART: Final = re.compile(r'"(?:cpu|core|die|cluster|cache|node|thread|cgroup)"\s*:')
_BEHIND: Final = re.compile(r"[#(\[\d].*")  # what may stand behind an event: its cgroup may not

_SYSTEM_WIDE: Final = re.compile(r"^\S*perf stat .*-a\b", re.MULTILINE)
_HALF: Final = re.compile(
    r"(?:cpu_(?:core|atom|lowpower)|armv\d\w{0,60}|apple_\w{1,60})/[\w.,=-]{1,60}/\w*"
    r'(?:[,;|\t ]\d{1,20}[,;|\t ]|[^\n]{0,80}\(|"[^\n]{0,80}"pcnt-running" : )'
    r"(?!100)\d{1,2}[.,]\d\d\b"
)

# Units of sensor readings, which are not counts over the interval.
_GAUGES: Final = frozenset({"'C", "\u00b0C", "rpm", "V", "A", "W", "%"})

Sums = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Line:
    time: float
    event: str
    value: float
    socket: str = ""
    rate: tuple[str, float] | None = None  # perf's own metric, such as (GHz, 2.5)
    gauge: bool = False
    running: float = 100.0  # percent of the interval in which the event had a counter


@dataclass(slots=True)
class _Interval:
    sums: Sums = field(default_factory=dict)
    rates: Sums = field(default_factory=dict)
    gauges: Sums = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intervals:
    """LKP's metrics of one output: one value per interval in `series` (keys `i.*` and `time`),
    one for all intervals in `whole`; and the lowest running share, in percent, of each event that
    perf extrapolated.
    """

    series: Mapping[str, list[float]]
    whole: Mapping[str, float]
    running_pct: Mapping[str, float]


def read_intervals(text: str) -> Intervals:
    """Parse the output.

    Raises ParseError without a complete interval: perf ran for less than two,
    or the output has another form.
    """
    if len(text) > limits.PERF_CHARACTERS:
        raise ParseError(
            f"the perf stat output has {len(text)} characters, more than {limits.PERF_CHARACTERS}"
        )
    if _HALF.search(text) and not _SYSTEM_WIDE.search(text):
        raise ParseError(
            "perf stat extrapolated each half of a hybrid CPU to whole intervals; only those of"
            " all CPUs (-a) add up"
        )
    series: dict[str, list[float]] = {}
    sums: Sums = {}
    shares: Sums = {}
    previous = ended = time = (
        0.0  # end of the interval before this one, end of this one so far, time of the newest line
    )
    now = _Interval()
    count = 0
    for line in _lines(text):
        ended, time = time, line.time
        if time - ended > SAME_INTERVAL:
            if (now.sums or now.gauges) and ended > previous:
                count += 1
                _end(now, previous, ended, series, sums)
            now, previous = _Interval(), ended
        _add(now, line)
        if line.running < 100:
            shares[line.event] = min(line.running, shares.get(line.event, 100.0))
        if count > limits.PERF_STAT_INTERVALS or len(now.sums) > limits.PERF_STAT_EVENTS:
            raise ParseError(
                f"perf stat printed more than {limits.PERF_STAT_INTERVALS} intervals,"
                f" or more than {limits.PERF_STAT_EVENTS} events in one"
            )
    if not series or ended <= 0:
        raise ParseError(
            "no complete interval of perf stat -I: the last one never counts, so there must be two"
        )
    counted = {key: value for key, value in sums.items() if len(series[f"i.{key}"]) == count}
    return Intervals(series, _whole(counted, ended), shares)


def samples(intervals: Intervals) -> Samples:
    """Return the mean over the intervals that have a value (`i.*`), and the metrics of all
    intervals.
    """
    means = {
        key: [sum(values) / len(values)]
        for key, values in intervals.series.items()
        if key != "time" and values
    }
    shares = {f"{RUNNING}i.{key}": [value] for key, value in intervals.running_pct.items()}
    return means | {key: [value] for key, value in intervals.whole.items()} | shares


def _end(
    now: _Interval, previous: float, ended: float, series: dict[str, list[float]], sums: Sums
) -> None:
    length = ended - previous
    values = {"time": ended} | {f"i.{key}": value for key, value in now.gauges.items()}
    values |= {f"i.{key}": value / length for key, value in now.sums.items()}
    values |= {f"i.{key}": value for key, value in ratios(now.sums).items()}
    values |= {f"i.metric.{key}": value for key, value in now.rates.items()}
    for key, value in values.items():
        series.setdefault(key, []).append(value)
    for key, value in now.sums.items():
        sums[key] = sums.get(key, 0.0) + value


def _whole(sums: Mapping[str, float], seconds: float) -> dict[str, float]:
    values = {f"ps.{key}": value / seconds for key, value in sums.items()}
    if sums.get("instructions"):
        values["total.instructions"] = sums["instructions"]
    return values | {f"overall.{key}": value for key, value in ratios(sums).items()}


def _add(now: _Interval, line: _Line) -> None:
    if line.gauge:
        now.gauges[f"{line.socket}.{line.event}" if line.socket else line.event] = line.value
        return
    for key in (line.event, f"{line.socket}.{line.event}") if line.socket else (line.event,):
        now.sums[key] = now.sums.get(key, 0.0) + line.value
    if line.rate:
        key = f"{line.socket}.{line.rate[0]}" if line.socket else line.rate[0]
        now.rates[key] = now.rates.get(key, 0.0) + line.rate[1]


# --- ratios ---------------------------------------------------------------------------------------


def ratios(sums: Mapping[str, float]) -> dict[str, float]:
    """Return miss rates in percent, ipc, cpi, MPKI and cycles or instructions between misses.

    A ratio that would divide by 0 is missing.
    """
    values: dict[str, float] = {}
    for key, value in sums.items():
        if "-misses" in key:
            values |= _of_misses(sums, key, value)
        elif "cpu-cycles" in key:
            stem = key[: key.rindex("cpu-cycles")]
            instructions = sums.get(f"{stem}instructions", 0.0)
            if instructions and value:
                values |= {f"{stem}ipc": instructions / value, f"{stem}cpi": value / instructions}
    return values


def _of_misses(sums: Mapping[str, float], key: str, misses: float) -> dict[str, float]:
    stem = key[: key.rindex("-misses")]
    rates: dict[str, float] = {}
    for suffix in ("s", "-references", "-instructions"):
        if tried := sums.get(stem + suffix, 0.0):
            rates[f"{stem}-miss-rate%"] = (
                misses * 100.0 / (tried + misses if suffix == "s" else tried)
            )
            break
    if not misses:
        return rates
    kind = next((kind for kind in ("iTLB-load", "cache") if stem.endswith(kind)), "")
    before = stem.removesuffix(kind)
    instructions, cycles = (
        sums.get(f"{before}instructions", 0.0),
        sums.get(f"{before}cpu-cycles", 0.0),
    )
    if kind == "iTLB-load" and instructions:
        rates[f"{before}instructions-per-iTLB-miss"] = instructions / misses
    elif kind == "cache":
        rates |= {f"{before}cycles-between-cache-misses": cycles / misses} if cycles else {}
        rates |= {f"{before}MPKI": misses / instructions * 1000} if instructions else {}
    return rates


# --- lines ----------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[_Line]:
    """Yield every count from `-x ,` output, aligned text or `-j`; uncounted events are left out."""
    for raw in text.splitlines():
        if len(raw) > limits.PERF_STAT_LINE_CHARACTERS:
            continue
        counts = _json_line(raw) if raw.startswith("{") else _plain_line(raw)
        if counts is not None:
            yield counts


def _plain_line(raw: str) -> _Line | None:
    stamp = _STAMP.match(raw)
    if stamp is None:
        return None
    rest = raw[stamp.end() :]
    if rest.startswith((",", ";", "|", "\t")) and rest.count(rest[0]) >= 7:
        return _separated(float(stamp[1]), rest[1:].split(rest[0]))
    return _aligned(float(stamp[1]), rest.lstrip())


def _separated(time: float, fields: list[str]) -> _Line | None:
    socket = ""
    if re.fullmatch(r"S\d{1,4}", fields[0]) and len(fields) > 8:
        socket, fields = fields[0], fields[2:]  # --per-socket: the socket and how many CPUs it has
    while fields[2].count("/") == 1 and len(fields) > 3:  # commas between the slashes of an event
        fields = [*fields[:2], ",".join(fields[2:4]), *fields[4:]]
    value, unit, event, behind, running, own, own_unit = [*fields, "", "", "", ""][:7]
    return _of_all(_line(time, value, unit, event, (own_unit, own), socket, running), behind)


def _aligned(time: float, text: str) -> _Line | None:
    """`VALUE [UNIT] EVENT ...`: the old blank-separated output, and text for people,
    where `#` precedes perf's own metric.
    """
    words = text.split()
    if len(words) < 2:
        return None
    value = words[0].replace(",", "")
    unit = words[1] if len(words) > 2 and _EVENT.fullmatch(words[2]) else ""
    if unit not in UNITS and text.startswith(f"{words[0]}  "):  # one blank is before a unit
        unit = ""
    rest = words[2 if unit else 1 :]
    more = [word for word in rest[1:] if word != "#"]
    rate = more[-2:] if "#" in words else more[2:]
    event, own = rest[0] if rest else "", (rate[1], rate[0]) if len(rate) == 2 else None
    share = re.search(r"[\[(](\d{1,3}\.\d+)%[\])]", " ".join(rest))
    running = share[1] if share else (rest[2] if rest[2:] and "#" not in words else "")
    return _of_all(_line(time, value, unit, event, own, "", running), rest[1] if rest[1:] else "")


def _of_all(line: _Line | None, behind: str) -> _Line | None:
    """Return the line of an event behind which there is no cgroup. Raises ParseError if one is."""
    if line and behind and not _BEHIND.fullmatch(behind):
        raise ParseError("this is perf stat output by cgroup; only totals can be read")
    return line


def _json_line(raw: str) -> _Line | None:
    fields = {name: value.strip() for name, value in _JSON_FIELD.findall(raw)}
    if not _VALUE.fullmatch(fields.get("interval", "")):
        return None
    if _BY_PART.search(raw):
        raise ParseError("this is perf stat output by CPU or cgroup; only sockets can be read")
    rate = (fields.get("metric-unit", ""), fields.get("metric-value", ""))
    value, unit, event, socket, running = (
        fields.get(key, "") for key in ("counter-value", "unit", "event", "socket", "pcnt-running")
    )
    return _line(float(fields["interval"]), value, unit, event, rate, socket, running)


def _line(
    time: float,
    value: str,
    unit: str,
    event: str,
    rate: tuple[str, str] | None,
    socket: str,
    running: str,
) -> _Line | None:
    # A decimal comma beside commas between fields puts half a number where the unit is.
    if not _VALUE.fullmatch(value) or not _EVENT.fullmatch(event) or not _UNIT.fullmatch(unit):
        return None
    hybrid = _HYBRID.fullmatch(event)
    name = (hybrid[1] if hybrid else event).partition("_IMC")[0]
    if hybrid and hybrid[2]:
        name += f":{hybrid[2]}"
    if unit == "Bytes":
        name += "_Bytes"
    own = (
        (rate[0], float(rate[1]))
        if rate and _RATE.fullmatch(rate[0]) and _VALUE.fullmatch(rate[1])
        else None
    )
    share = float(running) if re.fullmatch(r"\d{1,3}\.\d+", running) else 100.0
    return _Line(time, name, float(value), socket, own, unit in _GAUGES, share)
