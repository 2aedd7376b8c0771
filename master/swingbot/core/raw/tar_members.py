"""The files in a boot's results.tar, unchanged.

It comes from a guest: names, sizes and counts are checked.

`swingbot_jobs.reading.parse` reads the same archive for its numbers.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple

from swingbot.core import limits
from swingbot_jobs.limits import RESULT_FILES

FACTS: Final = "facts"
_NAME: Final = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9+=:.%_@,]{0,254}")


# What tarfile raises for an archive that is not one.
BROKEN: Final = (
    tarfile.TarError,
    zlib.error,
    ValueError,
    OverflowError,
    EOFError,
    LookupError,
    RecursionError,
)


class _SmallReads:
    """An archive of which no more than RAW_FILE_BYTES are read at once: tarfile reads a long name
    as a whole, and its head may say that it has gigabytes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.seek, self.tell = file, file.seek, file.tell

    def read(self, size: int) -> bytes:
        """Raises tarfile.ReadError."""
        if size > limits.RAW_FILE_BYTES:
            raise tarfile.ReadError(f"a head has more than {limits.RAW_FILE_BYTES} bytes")
        return self._file.read(size)


def careful(tar: BinaryIO) -> Any:
    """Return an archive that tarfile opens with mode `r:`, and reads in little memory."""
    return _SmallReads(tar)


class TarMember(NamedTuple):
    """A file of a run, or of the boot (`unit_job` is None). `path` is safe below its directory."""

    unit_job: str | None
    run: int
    path: str
    size: int
    # The content. Raises tarfile.ReadError if the archive is truncated there; to be called before
    # the next member is taken.
    read: Callable[[], bytes]


def members(tar: BinaryIO, note: Callable[[str], None]) -> Iterator[TarMember]:
    """Every file, each name once. `note` gets a sentence about each one that is left out."""
    seen: set[tuple[str, int, str]] = set()
    try:
        with tarfile.open(
            fileobj=careful(tar), mode="r:", ignore_zeros=True, errors="replace"
        ) as archive:
            for _ in range(RESULT_FILES):
                entry = archive.next()
                if entry is None:
                    return
                archive.members = []  # type: ignore[attr-defined]  # or it keeps every header
                if entry.isdir():
                    continue
                found = _member(archive, entry)
                if isinstance(found, str):
                    note(f"{entry.name[:100]!r} was left out: {found}")
                elif (found.unit_job or "", found.run, found.path) in seen:
                    note(f"{entry.name[:100]!r} came twice: the first one was taken")
                else:
                    seen.add((found.unit_job or "", found.run, found.path))
                    yield found
            note(f"results.tar has more than {RESULT_FILES} files: the rest was left out")
    except BROKEN as error:
        note(f"results.tar ends early: {error}")


def _member(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> TarMember | str:
    """The member, or why it is left out."""
    if not entry.isreg() or entry.issparse():
        return "it is not an ordinary file"
    if entry.size > limits.RAW_FILE_BYTES:
        return f"it has {entry.size} bytes, more than {limits.RAW_FILE_BYTES}; results.tar has it"
    parts = PurePosixPath(entry.name).parts
    if not 2 <= len(parts) <= limits.RAW_PATH_PARTS or not all(
        _NAME.fullmatch(part) for part in parts
    ):
        return "its name is not one of a result"

    def read() -> bytes:
        source = archive.extractfile(entry)
        content = source.read() if source else b""
        if len(content) != entry.size:
            raise tarfile.ReadError(
                f"{entry.name[:100]!r} is truncated after {len(content)} of {entry.size} bytes"
            )
        return content

    if parts[0] == FACTS:
        return TarMember(None, 0, "/".join(parts), entry.size, read)
    if len(parts) < 3 or not re.fullmatch(r"0|[1-9][0-9]{0,5}", parts[1]):
        return "its name is not one of a result"
    return TarMember(parts[0], int(parts[1]), "/".join(parts[2:]), entry.size, read)
