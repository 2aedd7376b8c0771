"""Read a job file and its includes as one text."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from swingbot_jobs.language.include import include
from swingbot_jobs.limits import JOB_DIRECTORIES, YAML_CHARACTERS
from swingbot_jobs.yaml_lines import JobError, read_documents


def read_job(path: Path, roots: Sequence[Path] = ()) -> str:
    """Return the text of a job file with all includes resolved. Raises JobError, or OSError if
    `path` is unreadable.

    Includes are searched for as LKP does: in the directory of the including file, in the directory
    above the nearest `jobs/` (LKP_SRC, for its own files), in each of `roots`, and then anywhere
    below `jobs/` and `roots`.
    """
    files = {path.name: path}

    def find(file: str, by: str) -> tuple[str, str] | None:
        match = _find(file, files[by].parent, roots)
        if match is None:
            return None
        name = file if files.get(file, match) == match else str(match)
        files[name] = match
        return name, _read(match, name)

    return include(_read(path, path.name), path.name, find)


def shipped(directory: Path) -> list[str]:
    """Return the file names of the job files in `directory`."""
    return sorted(path.name for path in directory.glob("*.yaml"))


def read_all(directory: Path) -> dict[str, str]:
    """Return the texts of the job files in `directory` by file name, without unreadable ones."""
    texts = {}
    for path in sorted(directory.glob("*.yaml")):
        with contextlib.suppress(JobError, OSError):
            texts[path.name] = read_job(path, [directory])
    return texts


def read_suite(name: str, directory: Path) -> tuple[str, ...]:
    """Return the names of the job files in the suite `name`, a list in `directory`/suites.

    Raises JobError.
    """
    suites = {path.stem: path for path in sorted((directory / "suites").glob("*.yaml"))}
    if name not in suites:
        raise JobError(f"suite {name[:80]!r} does not exist; known are {', '.join(suites)}")
    [listed] = read_documents(_read(suites[name], f"{name}.yaml"), f"{name}.yaml", JobError)
    if not isinstance(listed.content, tuple) or any(item.text is None for item in listed.items):
        raise JobError(f"{listed.where}: a suite is a list of job files")
    return tuple(item.text or "" for item in listed.items)


def _read(path: Path, name: str) -> str:
    with path.open("rb") as file:
        content = file.read(4 * YAML_CHARACTERS + 1)
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise JobError(f"{name}:1: not valid UTF-8 text") from None
    if len(text) > YAML_CHARACTERS:
        raise JobError(f"{name}:1: the file has more than {YAML_CHARACTERS} characters")
    return text


def _find(file: str, start: Path, roots: Sequence[Path]) -> Path | None:
    if file.startswith(("/", "./", "../")):
        path = start / file
        return path if path.is_file() else None
    above = next(
        (
            directory
            for directory in (start.absolute(), *start.absolute().parents)
            if directory.name == "jobs"
        ),
        None,
    )
    flat = [start, *([above.parent] if above else []), *roots]
    for directory in flat:
        if (directory / file).is_file():
            return directory / file
    deep = [*([above] if above else []), *roots]
    return next((path for directory in deep for path in _below(directory, file)), None)


def _below(directory: Path, file: str) -> Iterator[Path]:
    for place, directories, _ in itertools.islice(os.walk(directory), JOB_DIRECTORIES):
        directories.sort()
        if (Path(place) / file).is_file():
            yield Path(place) / file
