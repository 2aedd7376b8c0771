"""Read patches from files and directories, up to the maximum size of a series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from swingbot.core.limits import SERIES_BYTES, SERIES_MAILS
from swingbot.core.patchset.model import (
    PatchFile,
    PatchSource,
    SeriesError,
)
from swingbot.core.patchset.quilt import parse_series_file
from swingbot.core.text.plain import cut

SUFFIXES: Final = (".patch", ".diff", ".eml")


def patch_sources(paths: Sequence[Path]) -> list[PatchSource]:
    """Return a source for each path: a patch or mailbox, a quilt directory, or a directory of
    patches.

    Raises SeriesError, which names the file, if one is unreadable or too large.
    """
    budget = _Budget()
    return [_source(path, budget) for path in paths]


class _Budget:
    """Counts bytes, so that no file is read beyond the limit of a series."""

    def __init__(self) -> None:
        self._left = SERIES_BYTES

    def read(self, path: Path, name: str) -> PatchFile:
        try:
            with path.open("rb") as file:
                data = file.read(self._left + 1)
        except OSError as error:
            raise SeriesError(f"{name}: {error.strerror}") from None
        if len(data) > self._left:
            raise SeriesError(f"{name}: the patches exceed {SERIES_BYTES >> 20} MiB")
        self._left -= len(data)
        return PatchFile(name=name, data=data)


def _source(path: Path, budget: _Budget) -> PatchSource:
    name = cut(path.name or str(path), 120)
    if not path.is_dir():
        return PatchSource(name=name, files=(budget.read(path, name),))
    if (path / "series").is_file():
        return PatchSource(name=name, files=tuple(_quilt(path, budget)), ordered=True)
    files = sorted(file for file in _listing(path) if file.is_file())
    patches = [file for file in files if file.suffix in SUFFIXES]
    if not patches:
        raise SeriesError(
            f"{name}: the directory has no `series` file and no {', '.join(SUFFIXES)} file"
        )
    return PatchSource(
        name=name,
        files=tuple(budget.read(_within(path, file.name), cut(file.name, 120)) for file in patches),
        ignored=tuple(cut(file.name, 120) for file in files if file.suffix not in SUFFIXES),
    )


def _listing(path: Path) -> Iterable[Path]:
    try:
        files = list(path.iterdir())
    except OSError as error:
        raise SeriesError(f"{path.name}: {error.strerror}") from None
    if len(files) > SERIES_MAILS:
        raise SeriesError(f"{path.name}: the directory has more than {SERIES_MAILS} files")
    return files


def _quilt(path: Path, budget: _Budget) -> Iterator[PatchFile]:
    series = budget.read(_within(path, "series"), f"{path.name}/series")
    try:
        names = parse_series_file(series.data)
    except SeriesError as error:
        raise SeriesError(f"{series.name}: {error}") from None
    yield from (budget.read(_within(path, name), cut(name, 120)) for name in names)


def _within(directory: Path, name: str) -> Path:
    """Return the regular file `name`, unless a symbolic link leads out of `directory`."""
    try:
        path = (directory / name).resolve(strict=True)
    except (OSError, RuntimeError):
        raise SeriesError(f"{name}: not found in {directory.name}") from None
    if not path.is_relative_to(directory.resolve()) or not path.is_file():
        raise SeriesError(f"{name}: not a regular file in {directory.name}")
    return path
