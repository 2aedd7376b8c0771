"""Job files on disk: a file and what it includes, as one text."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from swingbot_jobs.language.include import include
from swingbot_jobs.yaml_lines import MAX_CHARACTERS, JobError

MAX_DIRECTORIES: Final = 5000  # of a recursive search: more is a whole disk, not a tree of jobs


def read_job(path: Path, roots: Sequence[Path] = ()) -> str:
    """The text of a job file with all includes in it, which needs no other file. Raises JobError, or OSError if `path` can't be read.

    An include is looked for as LKP does: beside the file that wants it, from the directory above the nearest `jobs/`
    (LKP_SRC, for its own files), from each of `roots`, and then anywhere below `jobs/` and `roots`.
    """
    files = {path.name: path}

    def find(wanted: str, by: str) -> tuple[str, str] | None:
        found = _find(wanted, files[by].parent, roots)
        if found is None:
            return None
        name = wanted if files.get(wanted, found) == found else str(found)
        files[name] = found
        return name, _read(found, name)

    return include(_read(path, path.name), path.name, find)


def _read(path: Path, name: str) -> str:
    with path.open("rb") as file:
        content = file.read(4 * MAX_CHARACTERS + 1)
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise JobError(f"{name}:1: not text in UTF-8") from None
    if len(text) > MAX_CHARACTERS:
        raise JobError(f"{name}:1: the file has more than {MAX_CHARACTERS} characters")
    return text


def _find(wanted: str, beside: Path, roots: Sequence[Path]) -> Path | None:
    if wanted.startswith(("/", "./", "../")):
        path = beside / wanted
        return path if path.is_file() else None
    above = next(
        (
            directory
            for directory in (beside.absolute(), *beside.absolute().parents)
            if directory.name == "jobs"
        ),
        None,
    )
    flat = [beside, *([above.parent] if above else []), *roots]
    for directory in flat:
        if (directory / wanted).is_file():
            return directory / wanted
    deep = [*([above] if above else []), *roots]
    return next((path for directory in deep for path in _below(directory, wanted)), None)


def _below(directory: Path, wanted: str) -> Iterator[Path]:
    for place, directories, _ in itertools.islice(os.walk(directory), MAX_DIRECTORIES):
        directories.sort()
        if (Path(place) / wanted).is_file():
            yield Path(place) / wanted
