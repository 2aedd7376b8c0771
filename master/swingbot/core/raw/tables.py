"""Raw results as CSV: columns, types and format; `docs/raw-results.md` describes them too.

RFC 4180 with a header and `\\n`; UTF-8. An empty cell is NA; a value is a decimal number that reads
back as the same double; there is no NaN and no infinity, because such a measurement has no row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from swingbot_jobs.language.program import Program, find_metric

Type = Literal["string", "integer", "double", "time"]
Row = Mapping[str, Any]


class CsvColumn(NamedTuple):
    """`type` as R and pandas read it: `time` is ISO 8601 in UTC, as a string."""

    name: str
    type: Type
    describe: str


SAMPLES: Final = (
    CsvColumn(
        "result_root",
        "string",
        "path of the run's files: LKP's result root and the run's number; empty for old runs",
    ),
    CsvColumn("commit", "string", "40 hex digits of the commit whose kernel was booted"),
    CsvColumn(
        "side",
        "string",
        "base or head of a comparison, commit N of a bisection; several are joined by '+'",
    ),
    CsvColumn(
        "boot", "string", "id of the boot: runs of one boot are not independent of each other"
    ),
    CsvColumn(
        "k",
        "integer",
        "the k-th boot of this kernel; boots of equal k and purpose were perturbed alike",
    ),
    CsvColumn("testbox", "string", "machine"),
    CsvColumn("unit_job", "string", "what was run, with its parameters in LKP's order"),
    CsvColumn("run", "integer", "number of the run within its boot and unit job, from 0"),
    CsvColumn("metric", "string", "name as LKP has it: <program>.<metric>"),
    CsvColumn("unit", "string", "unit of the value; empty: a plain number, or not known"),
    CsvColumn("seq", "integer", "place among several values of one metric in one run, from 0"),
    CsvColumn("value", "double", "what was measured; always a finite number"),
    CsvColumn("origin", "string", "measured, replayed or simulated"),
    CsvColumn("booted_at", "time", "when the boot's results came, UTC"),
    CsvColumn("purpose", "string", "what the boot was for: k counts the boots of one purpose"),
)


def _as_in_samples(*names: str) -> tuple[CsvColumn, ...]:
    return tuple(
        column._replace(describe="as in samples.csv")
        for name in names
        for column in SAMPLES
        if column.name == name
    )


RUNS: Final = (
    *_as_in_samples("result_root", "commit", "side", "boot", "k", "testbox", "unit_job", "run"),
    CsvColumn(
        "status",
        "string",
        "ok; or failed, missing, invalid (demands not met), warmup: these have no samples",
    ),
    CsvColumn("reason", "string", "why it is not ok, or a remark"),
    CsvColumn("seconds", "double", "how long the run took, by the guest's clock"),
    CsvColumn(
        "parser",
        "string",
        "hash of the parser that read the samples; empty: not recorded",
    ),
    *_as_in_samples("purpose"),
)
FACTS: Final = (
    *_as_in_samples("boot"),
    CsvColumn("fact", "string", "name of a property of this boot"),
    CsvColumn("value", "string", "as the testbox reported it"),
)
METRICS: Final = (
    *_as_in_samples("metric", "unit"),
    CsvColumn(
        "better",
        "string",
        "higher, lower, or empty for a number that is neither good nor bad by itself",
    ),
    CsvColumn("class", "string", "benchmark, time, counter or profile"),
    CsvColumn("describe", "string", "what is measured"),
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(columns: Iterable[CsvColumn], rows: Iterable[Row]) -> Iterator[str]:
    """The header, then a line a row; rows may have more keys than there are columns."""
    columns = tuple(columns)
    yield _line([column.name for column in columns])
    for row in rows:
        yield _line([csv_cell(row.get(column.name)) for column in columns])


def read_samples(lines: Iterable[str]) -> Iterator[Row]:
    """Return the rows of samples.csv as they were written. Raises ValueError."""
    reader = csv.reader(lines, strict=True)
    try:
        names = [column.name for column in SAMPLES]
        if next(reader, None) != names:
            raise ValueError("its columns are not those of this version")
        for cells in reader:
            yield {
                column.name: _value(column.type, cell)
                for column, cell in zip(SAMPLES, cells, strict=True)
            }
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _value(type_: Type, cell: str) -> Any:
    if cell == "":
        return None
    if type_ in ("integer", "double"):
        return int(cell) if type_ == "integer" else float(cell)
    return cell[1:] if cell[0] == "'" and cell[1:].startswith(_FORMULA) else cell


def _line(cells: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def csv_cell(value: Any) -> Any:
    """Text that a spreadsheet would read as a formula gets an apostrophe; no id or metric needs
    one.
    """
    if isinstance(value, float):
        return repr(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def with_units(rows: Iterable[Row], unit: Callable[[str], str | None]) -> Iterator[Row]:
    """Samples with the unit of their metric."""
    for row in rows:
        yield {**row, "unit": unit(row["metric"])}


def run_rows(boots: Iterable[Row]) -> Iterator[Row]:
    """Rows of runs.csv from a manifest's boots."""
    for boot in boots:
        side = "+".join(boot["roles"])
        for run in boot["runs"]:
            yield {
                "commit": boot["commit"],
                "side": side,
                "boot": boot["id"],
                "k": boot["k"],
                "purpose": boot.get("purpose"),
                "testbox": boot["testbox"],
                **run,
            }


def fact_rows(boots: Iterable[Row]) -> Iterator[Row]:
    """Rows of facts.csv from a manifest's boots; an unknown fact has no row."""
    for boot in boots:
        for name, value in sorted((boot["facts"] or {}).items()):
            if value is not None:
                yield {"boot": boot["id"], "fact": name, "value": str(value)}


def unit_of(programs: Mapping[str, Program], metric: str) -> str | None:
    """The unit from the program's meta.yaml; None for a plain number and for an unknown metric."""
    found = find_metric(programs, metric)
    return (found.unit or None) if found else None


def metric_rows(programs: Mapping[str, Program], metrics: Iterable[str]) -> Iterator[Row]:
    """Rows of metrics.csv."""
    for name in sorted(metrics):
        found = find_metric(programs, name)
        known = (
            {
                "unit": found.unit,
                "better": found.better,
                "class": found.klass,
                "describe": found.describe,
            }
            if found
            else {}
        )
        yield {"metric": name, **known}
