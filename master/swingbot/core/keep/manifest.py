"""Manifest of a backup, and the paths of the files in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from swingbot_jobs import codec

FORMAT: Final = 3  # 1 and 2: made before the first release
_TABLE: Final = re.compile(r"[a-z_]{1,63}")
_FILE: Final = re.compile(
    r"database/[a-z_]+\.copy\.zst|artifacts/[0-9a-f]{2}/[0-9a-f]{62}\.(?:zst|gone)"
    r"|(?:mail/new|mail/cur|mirror\.git(?:/[a-z0-9-]+)*)/[A-Za-z0-9_][A-Za-z0-9_.,:=+-]{0,254}"
)
_SUM: Final = re.compile(r"([0-9a-f]{64})  (.+)")


class BadBackup(ValueError):
    """The directory is not a whole backup, or of an unknown format; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedTable:
    """One table: its columns in the order of the dump, and the number of rows written."""

    name: Annotated[str, codec.matches(_TABLE, "a table that can be in a backup")]
    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds: `files` of `size` bytes; `secrets` are files that are not in it."""

    format: int
    taken_at: str
    revision: str
    tables: tuple[DumpedTable, ...]
    sequences: Mapping[str, int]
    secrets: tuple[str, ...]
    files: int
    size: int


def read_manifest(document: Any, where: str) -> Manifest:
    """Check the manifest in `document`, parsed JSON. Raises BadBackup."""
    found = document.get("format") if isinstance(document, dict) else None
    if found is not None and found != FORMAT:
        raise BadBackup(
            f"{where} has backup format {found!r}, but this version only reads format {FORMAT}:"
            " its results are restored by the version of swingbot that made it"
        )
    try:
        manifest = codec.typed(Manifest, document)
        datetime.fromisoformat(manifest.taken_at)
    except ValueError as error:
        raise BadBackup(
            f"{where} is not the manifest of a backup ({error}); use another backup"
        ) from None
    return manifest


def read_sums(lines: str, where: str) -> dict[str, str]:
    """Return path -> SHA-256 of the files of a backup, from lines as `sha256sum` writes them.

    No path leads out of the backup. Raises BadBackup.
    """
    sums = {}
    for line in lines.splitlines():
        match = _SUM.fullmatch(line)
        if match is None or _FILE.fullmatch(match[2]) is None:
            raise BadBackup(f"{where}: {line[:160]!r} cannot be in a backup; use another backup")
        sums[match[2]] = match[1]
    return sums
