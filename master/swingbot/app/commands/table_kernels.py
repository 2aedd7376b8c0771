"""The kernels of a table, from the options of a command line or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from swingbot.adapters.patch_files import patch_sources
from swingbot.app.commands.table_options import Given, Options
from swingbot.core.patchset.model import PatchSeries, SeriesError
from swingbot.core.patchset.read import read_series
from swingbot.service.ports import RequestError
from swingbot.service.table.kernels import KernelRequest, NamedKernel, at, ends_of, patched

ReadSeries = Callable[..., PatchSeries]  # core.patchset.read.read_series, or one that keeps more
_PATCHES: Final = (".patch", ".diff", ".mbox", ".mbx")


def kernels_of(
    options: Options, refs: Sequence[str] = (), read: ReadSeries = read_series
) -> KernelRequest:
    """Return the kernels that `refs` and the options name. Raises RequestError.

    The first of `refs` is a range or the base; the others are rows like `--head`.
    """
    range_, base = options.last("range"), options.last("base")
    heads = list(refs)
    if heads and ".." in heads[0]:
        range_ = heads.pop(0)
    elif heads and base is None and range_ is None:
        base = heads.pop(0)
    ends = None if range_ is None else ends_of(range_)
    rows = [*map(at, heads), *rows_of(options, read)]
    if patches := options.all("patch"):
        stack = _read(read, patches[0], [Path(one.text) for one in patches], stack=True)
        rows = patched(rows, stack, ends[1] if ends else base)
    return KernelRequest(range=ends, base=base, rows=rows, paths=options.texts("paths"))


def rows_of(options: Options, read: ReadSeries = read_series) -> list[NamedKernel]:
    """Return the named rows, in the order given. Raises RequestError."""
    several = len(options.all("series")) > 1
    rows = []
    for given in options.all("head", "variant", "series"):
        if given.key == "head":
            rows.append(at(given.text))
        else:
            rows.append(
                _variant(given, read)
                if given.key == "variant"
                else _series(given, read, several=several)
            )
    return rows


def _variant(given: Given, read: ReadSeries) -> NamedKernel:
    """NAME=FILE[,FILE] if the files exist, else NAME=REF."""
    name, sign, value = given.text.partition("=")
    if not sign or not name or not value:
        raise given.wrong("write it as NAME=FILE or NAME=REF")
    paths = [Path(one) for one in value.split(",")]
    absent = [path for path in paths if not path.exists()]
    if not absent:
        return NamedKernel(name=name, series=_read(read, given, paths, stack=True))
    if len(paths) > 1 or "/" in value or absent[0].suffix in _PATCHES:
        raise given.wrong(f"file {absent[0]} does not exist")
    return NamedKernel(name=name, ref=value)


def _series(given: Given, read: ReadSeries, *, several: bool) -> NamedKernel:
    """[NAME=]FILE; of several series each has a name, by default that of its file."""
    path = Path(given.text)
    name, sign, value = given.text.partition("=")
    if sign and not path.exists():
        path = Path(value)
    elif several:
        name = path.stem
    else:
        name = ""
    return NamedKernel(name=name, series=_read(read, given, [path], stack=False), each=True)


def _read(read: ReadSeries, given: Given, paths: Sequence[Path], *, stack: bool) -> PatchSeries:
    try:
        return read(patch_sources(paths), stack=stack)
    except SeriesError as error:
        raise RequestError(f"{given.source}: {error}") from None
