"""The README of raw results: the files, the columns, and how to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from swingbot.core.raw import tables

_R_TYPES: Final = {
    "string": "character",
    "integer": "integer",
    "double": "numeric",
    "time": "character",
}
_PANDAS_TYPES: Final = {
    "string": "string",
    "integer": "Int64",
    "double": "float64",
    "time": "string",
}
_SHOWN_NOTES: Final = 50

_TEXT: Final = """\
Raw results of {kind} {id}
{line}

{boots} boots, {runs} runs ({not_ok} of them not ok), {files} files as they came.

  samples.csv   one row per sample: result root, commit, boot, run, metric, unit, value
  runs.csv      one row per run, including runs without a result, and why
  facts.csv     properties of each boot: kernel, CPUs, settings, versions
  metrics.csv   unit, direction and meaning of each metric
  manifest.json the same as one document, with each file's sha256
  result/       a directory for each run, at LKP's result root; `boot` there leads to its boot
  x<number>/    a directory for each boot: console.log, results.tar, the job script, facts.json
  kernels/      configuration, System.map, build log and image of each kernel
  SHA256SUMS    check with: sha256sum -c SHA256SUMS

An empty cell is "not known" (NA). There is no NaN and no infinity: a run without a number has no
row. Nothing missing is 0. Runs of one boot share its memory layout and its frequencies: use the
mean of a boot as one observation.

R:
  samples <- read.csv("samples.csv", na.strings = "", colClasses = c({r}))
  boots <- aggregate(value ~ side + boot + unit_job + metric, samples, mean)

pandas:
  import pandas as pd
  samples = pd.read_csv("samples.csv", keep_default_na=False, na_values=[""], dtype={{{pandas}}})
  boots = samples.groupby(["side", "boot", "unit_job", "metric"], dropna=False)["value"].mean()

Columns
{columns}
"""


def readme(manifest: Mapping[str, Any], notes: Sequence[str]) -> str:
    """The text for a manifest; `notes` say what is missing and why."""
    runs = [run for boot in manifest["boots"] for run in boot["runs"]]
    title = f"Raw results of {manifest['kind']} {manifest['id']}"
    text = _TEXT.format(
        kind=manifest["kind"],
        id=manifest["id"],
        line="=" * len(title),
        boots=len(manifest["boots"]),
        runs=len(runs),
        not_ok=sum(run["status"] != "ok" for run in runs),
        files=len(manifest["files"]),
        r=", ".join(f'{column.name} = "{_R_TYPES[column.type]}"' for column in tables.SAMPLES),
        pandas=", ".join(
            f'"{column.name}": "{_PANDAS_TYPES[column.type]}"' for column in tables.SAMPLES
        ),
        columns="\n".join(
            _table(name, columns)
            for name, columns in (
                ("samples.csv", tables.SAMPLES),
                ("runs.csv", tables.RUNS),
                ("facts.csv", tables.FACTS),
                ("metrics.csv", tables.METRICS),
            )
        ),
    )
    return text + (_notes(notes) if notes else "")


def _table(name: str, columns: Iterable[tables.CsvColumn]) -> str:
    return "\n".join(
        [
            f"  {name}",
            *(f"    {column.name:12} {column.type:8} {column.describe}" for column in columns),
        ]
    )


def _notes(notes: Sequence[str]) -> str:
    shown = [f"  {note}" for note in notes[:_SHOWN_NOTES]]
    more = [f"  and {len(notes) - _SHOWN_NOTES} more"] if len(notes) > _SHOWN_NOTES else []
    return "\n".join(["\nNot here", *shown, *more, ""])
