"""Manifest of a backup, and the paths of the files in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

FORMAT: Final = 3  # 1 and 2: made before the first release
_TABLE: Final = re.compile(r"[a-z_]{1,63}")
_FILE: Final = re.compile(
    r"database/[a-z_]+\.copy\.zst|artifacts/[0-9a-f]{2}/[0-9a-f]{62}\.(?:zst|gone)"
    r"|(?:mail/new|mail/cur|mirror\.git(?:/[a-z0-9]+)*)/[A-Za-z0-9_][A-Za-z0-9_.,:=+-]{0,254}"
)
_SUM: Final = re.compile(r"([0-9a-f]{64})  (.+)")


class BadBackup(ValueError):
    """The directory is not a whole backup, or of an unknown format; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedTable:
    """One table: its columns in the order of the dump, and the number of rows written."""

    name: str
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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_manifest(document: Any, where: str) -> Manifest:
    """Check the manifest in `document`, parsed JSON. Raises BadBackup."""
    try:
        if document["format"] != FORMAT:
            raise BadBackup(
                f"{where} has backup format {document['format']!r}, but this version only reads"
                f" format {FORMAT}: its results are restored by the version of swingbot that made"
                " it"
            )
        tables = tuple(
            DumpedTable(**{**row, "columns": tuple(row["columns"])}) for row in document["tables"]
        )
        manifest = Manifest(**{**document, "tables": tables, "secrets": tuple(document["secrets"])})
        datetime.fromisoformat(manifest.taken_at)
        sound = all(_TABLE.fullmatch(table.name) for table in tables) and all(
            isinstance(number, int) for number in manifest.sequences.values()
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadBackup):
            raise
        raise BadBackup(
            f"{where} is not the manifest of a backup ({error}); use another backup"
        ) from None
    if not sound:
        raise BadBackup(f"{where} names tables that cannot be in a backup; use another backup")
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
