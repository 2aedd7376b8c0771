"""Read samples from text, from a JSON, CSV or TSV file, or from the output of `perf stat`.

As text, `1,2;3,4` stands for two boots of two runs each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from swingbot.core import limits
from swingbot.core.stats.rows import BootRuns, Repeats
from swingbot.core.stats.table_cells import read_cells
from swingbot_jobs.reading.perf_stat import read_perf_stat, read_repetitions
from swingbot_jobs.reading.result import ParseError

Sides = tuple[list[BootRuns], list[BootRuns]]
GAPS: Final = ("", "-", "na", "n/a", "null", "none")
_HOW: Final = "write '1,2;3,4': commas between runs, semicolons between boots, a decimal point"
_ERROR: Final = "error_pct is the standard error of the mean in percent of the mean"
_JSON_FORM: Final = (
    '{"base": [[1, 2], [3, 4]], "head": [[5, 6], [7, 8]]}: a list of boots for each side, each'
    " a list of its runs"
)
_TABLE_FORM: Final = (
    "one line per run with the columns side (base or head), boot and value, or one line per boot"
    " with the columns base and head; a column time (base_time and head_time) gives the time of a"
    " boot"
)


class BadSamples(ValueError):
    """The input is not samples; the message says where and gives the expected form."""


def parse_boots(text: str) -> list[BootRuns]:
    """Read runs separated by commas and boots separated by semicolons; boots are numbered from
    0."""
    if not text.strip():
        raise BadSamples(
            "no samples: separate the runs of a boot with commas and boots with semicolons, such as"
            " '1,2;3,4'"
        )
    return [
        BootRuns(
            k=k, values=tuple(_number(part, f"boot {k + 1}", _HOW) for part in boot.split(","))
        )
        for k, boot in enumerate(text.strip().rstrip(";").split(";"))
    ]


def parse_file(text: str, form: str) -> Sides:
    """Return (base, head) from a file; `form` is json, csv or tsv.

    A gap (null, an empty cell) is a run without a value. Raises BadSamples.
    """
    if not text.strip():
        raise BadSamples(f"the file is empty; give {_JSON_FORM}; or {_TABLE_FORM}")
    sides = _from_json(text) if form == "json" else _from_table(text, form)
    for name, boots in zip(("base", "head"), sides, strict=True):
        if not any(b.values for b in boots):
            raise BadSamples(f"the {name} has no values")
    return sides


def in_turns(sides: Sides, order: str) -> Sides:
    """Assign the order in which the boots ran.

    `order` has one `b` or `h` per boot, such as `bhhb`. Raises BadSamples.
    """
    letters = [c for c in order.lower() if not c.isspace() and c not in ",;"]
    if not set(letters) <= {"b", "h"}:
        raise BadSamples(
            f"the order {order[:40]!r} must be the letters b (base) and h (head), one per boot,"
            " such as bhhb"
        )
    places: dict[str, list[float]] = {"b": [], "h": []}
    for at, letter in enumerate(letters):
        places[letter].append(float(at))
    return (
        _placed(sides[0], places["b"], "base"),
        _placed(sides[1], places["h"], "head"),
    )


def _placed(boots: Sequence[BootRuns], at: Sequence[float], side: str) -> list[BootRuns]:
    if len(boots) != len(at):
        raise BadSamples(
            f"the order has {len(at)} boots of {side}, but there are {len(boots)}; write one"
            " letter for each"
        )
    ordered = sorted(boots, key=lambda boot: boot.k)
    return [replace(boot, at=place) for boot, place in zip(ordered, at, strict=True)]


def parse_perf(texts: Sequence[str], event: str | None, repetitions: int | None) -> list[BootRuns]:
    """Return one boot per output of `perf stat`, with or without `-r N`.

    `event` selects the counter; None means the only one. `repetitions` is N, which the output of
    `-x` and `-j` does not contain. Raises BadSamples.
    """
    return [
        _of_perf(k, text, event, repetitions, f"output {k} of perf stat")
        for k, text in enumerate(texts, start=1)
    ]


def _of_perf(k: int, text: str, event: str | None, repetitions: int | None, where: str) -> BootRuns:
    try:
        counts = read_perf_stat(text)
    except ParseError as error:
        raise BadSamples(f"{where}: {error}") from None
    name = event or (next(iter(counts)) if len(counts) == 1 else None)
    if name not in counts:
        known = ", ".join(sorted(counts)) or "none"
        asked = f"no event {event[:40]!r}" if event else "more than one event"
        raise BadSamples(f"{where} has {asked}; give --event, one of: {known[:400]}")
    count = counts[name]
    if count.stderr_pct is None:
        return BootRuns(k=k, values=(count.value,))
    runs = read_repetitions(text) or repetitions
    if runs is None or runs < 2:
        raise BadSamples(
            f"{where} does not say how many runs it averages; give --repetitions N as in"
            " perf stat -r N"
        )
    return BootRuns(
        k=k,
        values=(count.value,),
        repeats=Repeats(runs=runs, error=count.stderr_pct / 100.0),
    )


def lowest_share(texts: Sequence[str], event: str | None) -> float:
    """Return the lowest running share of the event, in percent, in outputs that `parse_perf` took.

    Below 100 perf extrapolated the count.
    """
    counts = [read_perf_stat(text) for text in texts]
    return min(one.running_pct for each in counts for k, one in each.items() if event in (None, k))


def lone_zeros(boots: Sequence[BootRuns]) -> int:
    """Return how many runs are 0, where no other is below half of the others' median."""
    values = [value for boot in boots for value in boot.values]
    others = sorted(value for value in values if value != 0)
    alone = bool(others) and 2 * others[0] > others[len(others) // 2]
    return len(values) - len(others) if alone else 0


def form_of(name: str, text: str) -> str:
    """Return json, csv or tsv, by the suffix of the file name or else by the content."""
    end = name.rpartition(".")[2].lower()
    if end in ("json", "csv", "tsv"):
        return end
    if text.lstrip()[:1] in ("{", "["):
        return "json"
    return "tsv" if "\t" in text.lstrip().partition("\n")[0] else "csv"


def _from_json(text: str) -> Sides:
    try:
        given = json.loads(text, parse_constant=_refuse_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadSamples(f"the input is not valid JSON ({error}); give {_JSON_FORM}") from None
    if not isinstance(given, Mapping) or not {"base", "head"} <= given.keys():
        raise BadSamples(f"the JSON has no base and head; give {_JSON_FORM}")
    sides = _json_side(given["base"], "base"), _json_side(given["head"], "head")
    _all_or_none(sides)
    order = given.get("order")
    if order is None:
        return sides
    if not isinstance(order, str):
        raise BadSamples('the order must be a string of the letters b and h, such as "bhhb"')
    return in_turns(sides, order)


def _json_side(given: Any, side: str) -> list[BootRuns]:
    if not isinstance(given, list):
        raise BadSamples(f"{side} is not a list; give {_JSON_FORM}")
    return [_json_boot(boot, side, k) for k, boot in enumerate(given)]


def _json_boot(given: Any, side: str, k: int) -> BootRuns:
    """Read a boot: its runs, {"runs": [1, 2], "time": 3}, or a mean.

    A mean is {"mean": 1.5, "runs": 10, "error_pct": 0.3}.
    """
    where = f"{side}, boot {k + 1}"
    if not isinstance(given, Mapping) or not {"runs", "mean"} & given.keys():
        return _boot(k, _json_runs(given, side, k), where)
    at = given.get("time")
    if "mean" not in given:
        boot = _boot(k, _json_runs(given["runs"], side, k), where)
    else:
        runs, error = given.get("runs"), given.get("error_pct")
        if (
            isinstance(runs, bool)
            or not isinstance(runs, int)
            or not 2 <= runs <= limits.STATS_VALUES
        ):
            raise BadSamples(f"{where}: with a mean, runs must be a number of at least 2")
        pct = _number(error if isinstance(error, int | float | str) else "", where, _ERROR)
        if pct < 0:
            raise BadSamples(f"{where}: error_pct must not be negative")
        boot = replace(
            _boot(k, _json_runs(given["mean"], side, k), where),
            repeats=Repeats(runs=runs, error=pct / 100.0),
        )
        if len(boot.values) != 1:
            raise BadSamples(f"{where}: mean must be a single number")
    return boot if at is None else replace(boot, at=_time(at, where))


def _all_or_none(sides: Sides) -> None:
    boots = [boot for side in sides for boot in side]
    if any(b.at is None for b in boots) and any(b.at is not None for b in boots):
        raise BadSamples("some boots have a time and others do not; give it for all or for none")


def _time(given: Any, where: str) -> float:
    """Parse a number or an ISO 8601 time (UTC unless it has a time zone)."""
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given.strip())
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise BadSamples(f"{where}: the time must be a number or a date such as 2026-11-23T08:30")
    return _number(given, where, "a time is a number or a date such as 2026-11-23T08:30")


def _json_runs(boot: Any, side: str, k: int) -> list[Any]:
    """Return the runs of a boot, given as a list or a single number."""
    runs = boot if isinstance(boot, list) else [boot]
    for run in runs:
        if run is not None and (isinstance(run, bool) or not isinstance(run, int | float | str)):
            raise BadSamples(
                f"{side}, boot {k + 1}: {json.dumps(run)[:40]} is not a number; give {_JSON_FORM}"
            )
    return runs


def _refuse_constant(name: str) -> float:
    raise BadSamples(f"{name} is not a finite number; write null for a missing value")


def _from_table(text: str, form: str) -> Sides:
    try:
        rows = read_cells(text, form, words=("side", "boot"))
    except ValueError as error:
        raise BadSamples(f"{error}; give {_TABLE_FORM}") from None
    if not rows:
        raise BadSamples(f"all cells are empty; give {_TABLE_FORM}")
    names = rows[0]
    lines = [dict(zip(names, row, strict=False)) for row in rows[1:]]
    if {"side", "value"} <= set(names):
        sides = _long(lines, "base"), _long(lines, "head")
        _all_or_none(sides)
        return sides
    if {"base", "head"} <= set(names):
        sides = _wide(lines, "base"), _wide(lines, "head")
        _all_or_none(sides)
        return sides
    raise BadSamples(f"the first line names {', '.join(names)[:80]}; give {_TABLE_FORM}")


def _long(lines: Sequence[Mapping[str, str]], side: str) -> list[BootRuns]:
    """Read one run per line.

    Boots are in the order of their first lines. Without a column `boot`, each line is a boot.
    """
    runs: dict[str, list[str]] = {}
    times: dict[str, float] = {}
    for number, line in enumerate(lines, start=2):
        name = line["side"].strip().lower()
        if name not in ("base", "head"):
            raise BadSamples(f"line {number}: side is {name[:40]!r}; it must be base or head")
        if name == side:
            key = line.get("boot", str(number)).strip()
            runs.setdefault(key, []).append(line.get("value", ""))
            at = line.get("time", "").strip()
            if at:  # time of the boot's first run
                times.setdefault(key, _time(at, f"line {number}"))
    if runs and all(key.isdecimal() and len(key) < 16 for key in runs):
        if len({int(key) for key in runs}) < len(runs):
            raise BadSamples(f"{side}: the same boot has two spellings, such as 1 and 01")
        if any("boot" in line for line in lines):
            return [
                replace(_boot(int(key), values, f"{side}, boot {key}"), at=times.get(key))
                for key, values in runs.items()
            ]
    return [
        replace(_boot(k, values, f"{side}, boot {key[:40]}"), at=times.get(key))
        for k, (key, values) in enumerate(runs.items())
    ]


def _wide(lines: Sequence[Mapping[str, str]], side: str) -> list[BootRuns]:
    """Read one boot of each side per line, with spaces between its runs."""
    boots = []
    for k, line in enumerate(lines):
        if line.get(side, "").strip():
            boot, at = (
                _boot(k, line[side].split(), f"{side}, line {k + 2}"),
                line.get(f"{side}_time", ""),
            )
            boots.append(
                replace(boot, at=_time(at, f"{side}, line {k + 2}")) if at.strip() else boot
            )
    return boots


def _boot(k: int, runs: Sequence[Any], where: str) -> BootRuns:
    if len(runs) > limits.STATS_VALUES:
        raise BadSamples(f"{where}: more than {limits.STATS_VALUES} values")
    values = [
        run
        for run in runs
        if run is not None and not (isinstance(run, str) and run.strip().lower() in GAPS)
    ]
    return BootRuns(
        k=k,
        values=tuple(
            _number(run, where, "leave gaps empty, and use a decimal point") for run in values
        ),
        lost=len(runs) - len(values),
    )


def _number(given: str | float, where: str, how: str) -> float:
    if isinstance(given, str) and not given.strip():
        raise BadSamples(f"{where}: a run has no value; {how}")
    shown = repr(given.strip()[:40]) if isinstance(given, str) else f"{given!r:.40}"
    try:
        value = float(given)
    except ValueError:
        raise BadSamples(f"{where}: {shown} is not a number; {how}") from None
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise BadSamples(f"{where}: {shown} is not a finite number; leave out missing values")
    return value
