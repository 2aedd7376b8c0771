"""Read samples as people have them: typed (`1,2;3,4` is two boots of two runs each), or a file of JSON, CSV or TSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.stats.rows import BootRuns

Sides = tuple[list[BootRuns], list[BootRuns]]
MOST_VALUES: Final = 1_000_000
_GAPS: Final = ("", "-", "na", "n/a", "null", "none")
_HOW: Final = "write '1,2;3,4': commas between runs, semicolons between boots, a point for decimals"
_JSON_FORM: Final = '{"base": [[1, 2], [3, 4]], "head": [[5, 6], [7, 8]]}: a list of boots a side, each a list of its runs'
_TABLE_FORM: Final = "a line a run with the columns side (base or head), boot and value, or a line a boot with the columns base and head"


class BadSamples(ValueError):
    """What was given is not samples; the message says which part and what it should look like."""


def parse_boots(text: str) -> list[BootRuns]:
    """Commas between the runs of a boot, semicolons between boots; the n-th boot gets k = n, counted from 0."""
    if not text.strip():
        raise BadSamples(
            "no samples: write the runs of a boot with commas between them and boots with semicolons, such as '1,2;3,4'"
        )
    return [
        BootRuns(
            k=k, values=tuple(_number(part, f"boot {k + 1}", _HOW) for part in boot.split(","))
        )
        for k, boot in enumerate(text.strip().rstrip(";").split(";"))
    ]


def parse_file(text: str, form: str) -> Sides:
    """(base, head) of a file; `form` is json, csv or tsv. A gap (null, an empty cell) is a run that gave no value. Raises BadSamples."""
    if not text.strip():
        raise BadSamples(f"the file is empty; give {_JSON_FORM}; or {_TABLE_FORM}")
    sides = (
        _from_json(text) if form == "json" else _from_table(text, "\t" if form == "tsv" else ",")
    )
    for name, boots in zip(("base", "head"), sides, strict=True):
        if not any(b.values for b in boots):
            raise BadSamples(f"there is no value of the {name}")
    return sides


def form_of(name: str, text: str) -> str:
    """json, csv or tsv: by the end of the file's name, else by what the text looks like."""
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
        raise BadSamples(f"this is no JSON ({error}); give {_JSON_FORM}") from None
    if not isinstance(given, Mapping) or not {"base", "head"} <= given.keys():
        raise BadSamples(f"the JSON has no base and head; give {_JSON_FORM}")
    return _json_side(given["base"], "base"), _json_side(given["head"], "head")


def _json_side(given: Any, side: str) -> list[BootRuns]:
    if not isinstance(given, list):
        raise BadSamples(f"{side} is no list; give {_JSON_FORM}")
    return [
        _boot(k, _json_runs(boot, side, k), f"{side}, boot {k + 1}") for k, boot in enumerate(given)
    ]


def _json_runs(boot: Any, side: str, k: int) -> list[Any]:
    """A boot is the list of its runs, or one number."""
    runs = boot if isinstance(boot, list) else [boot]
    for run in runs:
        if run is not None and (isinstance(run, bool) or not isinstance(run, int | float | str)):
            raise BadSamples(
                f"{side}, boot {k + 1}: {json.dumps(run)[:40]} is not a number; give {_JSON_FORM}"
            )
    return runs


def _refuse_constant(name: str) -> float:
    raise BadSamples(f"{name} is not a finite number; write null for what was not measured")


def _from_table(text: str, separator: str) -> Sides:
    try:
        rows = [
            row
            for row in csv.reader(text.splitlines(), delimiter=separator)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise BadSamples(f"this is no table ({error}); give {_TABLE_FORM}") from None
    if not rows:
        raise BadSamples(f"there is no cell with anything in it; give {_TABLE_FORM}")
    names = [cell.strip().lower() for cell in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) > len(names):
            raise BadSamples(
                f"line {number} has {len(row)} columns, the first line {len(names)}; a decimal comma is read as two columns"
            )
    lines = [dict(zip(names, row, strict=False)) for row in rows[1:]]
    if {"side", "value"} <= set(names):
        return _long(lines, "base"), _long(lines, "head")
    if {"base", "head"} <= set(names):
        return _wide(lines, "base"), _wide(lines, "head")
    raise BadSamples(f"the first line names {', '.join(names)[:80]}; give {_TABLE_FORM}")


def _long(lines: Sequence[Mapping[str, str]], side: str) -> list[BootRuns]:
    """One line a run. Boots in the order of their first line; without a column `boot` each line is a boot of its own."""
    runs: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=2):
        name = line["side"].strip().lower()
        if name not in ("base", "head"):
            raise BadSamples(f"line {number}: side is {name[:40]!r}; it must be base or head")
        if name == side:
            runs.setdefault(line.get("boot", str(number)).strip(), []).append(line.get("value", ""))
    if runs and all(key.isdecimal() and len(key) < 16 for key in runs):
        if len({int(key) for key in runs}) < len(runs):
            raise BadSamples(f"{side}: the same boot is written in two ways, such as 1 and 01")
        if any("boot" in line for line in lines):
            return [_boot(int(key), values, f"{side}, boot {key}") for key, values in runs.items()]
    return [
        _boot(k, values, f"{side}, boot {key[:40]}") for k, (key, values) in enumerate(runs.items())
    ]


def _wide(lines: Sequence[Mapping[str, str]], side: str) -> list[BootRuns]:
    """One line a boot of each side; runs of a boot with spaces between them."""
    return [
        _boot(k, line.get(side, "").split(), f"{side}, line {k + 2}")
        for k, line in enumerate(lines)
        if line.get(side, "").strip()
    ]


def _boot(k: int, runs: Sequence[Any], where: str) -> BootRuns:
    if len(runs) > MOST_VALUES:
        raise BadSamples(f"{where}: more than {MOST_VALUES} values")
    there = [
        run
        for run in runs
        if run is not None and not (isinstance(run, str) and run.strip().lower() in _GAPS)
    ]
    return BootRuns(
        k=k,
        values=tuple(
            _number(run, where, "leave a gap empty, and write a point for decimals")
            for run in there
        ),
        lost=len(runs) - len(there),
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
        raise BadSamples(
            f"{where}: {shown} is not a finite number; leave out what was not measured"
        )
    return value
