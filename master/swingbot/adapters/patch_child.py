"""`python -m swingbot.adapters.patch_child MEMORY SECONDS ANSWER`: the child of patch_reader."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import IO, Any

from swingbot.adapters.reader_child import serve
from swingbot.core.patchset.model import SeriesError, SeriesPatch
from swingbot.core.patchset.read import read_file


def _answer(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    try:
        series = read_file(document["name"], file.read(), stack=document["stack"])
    except SeriesError as error:
        return {"wrong": str(error)}
    return {**asdict(series), "patches": list(map(_patch, series.patches))}


def _patch(patch: SeriesPatch) -> dict[str, Any]:
    date = patch.date.isoformat() if patch.date else None
    return {**asdict(patch), "date": date, "diff": patch.diff.decode("latin-1")}


if __name__ == "__main__":
    serve(_answer, *map(int, sys.argv[1:4]))
