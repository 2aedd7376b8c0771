"""Generations of a backup: their names, their manifest, and which ones newer ones replace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

FORMAT: Final = 2  # 1: made before the first release, by other migrations
_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:=+\\-]{0,254}")


class BadBackup(ValueError):
    """The directory is not a backup, or has an unknown format; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One table: `sha256` and `size` are those of the compressed file, `rows` the number
    written.
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MailFile:
    """One mail of the Maildir: its folder ('new' or 'cur'), its file name, and its SHA-256."""

    folder: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a generation.

    `artifacts` is the number of entries in its list; `secrets` are files that are not in it.
    """

    format: int
    taken_at: str
    revision: str
    server: str
    tables: tuple[TableFile, ...]
    sequences: Mapping[str, int]
    artifacts: int
    artifact_bytes: int
    refs: Mapping[str, str]
    letters: tuple[MailFile, ...]
    secrets: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def generation_name(at: datetime) -> str:
    """`20260102T030405Z`: the names sort by time."""
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def is_generation(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def is_plain(name: str) -> bool:
    """Return True if a file name stays within its directory."""
    return _PLAIN.fullmatch(name) is not None


def check_format(found: object, where: str) -> None:
    """Raise BadBackup unless this program reads format `found`."""
    if found != FORMAT:
        raise BadBackup(
            f"{where} has backup format {found!r}, but this version only reads format {FORMAT}: its"
            " results are restored by the version of swingbot that made it; use another directory"
            " for new backups"
        )


def read_manifest(document: Any, where: str) -> Manifest:
    """Check the manifest in `document`, parsed JSON. Raises BadBackup.

    No entry of the result names a file outside the backup.
    """
    try:
        check_format(document["format"], where)
        manifest = Manifest(
            **{
                **document,
                "tables": tuple(
                    TableFile(**{**row, "columns": tuple(row["columns"])})
                    for row in document["tables"]
                ),
                "letters": tuple(MailFile(**row) for row in document["letters"]),
                "secrets": tuple(document["secrets"]),
            }
        )
        datetime.fromisoformat(manifest.taken_at)
        sound = (
            all(
                is_plain(table.name) and _SHA256.fullmatch(table.sha256)
                for table in manifest.tables
            )
            and all(
                letter.folder in ("new", "cur")
                and is_plain(letter.name)
                and _SHA256.fullmatch(letter.sha256)
                for letter in manifest.letters
            )
            and all(isinstance(number, int) for number in manifest.sequences.values())
            and all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in manifest.refs.values())
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadBackup):
            raise
        raise BadBackup(
            f"{where} is not the manifest of a backup ({error}); take another generation"
        ) from None
    if not sound:
        raise BadBackup(f"{where} names files that cannot be in a backup; take another generation")
    return manifest


def too_many(names: Sequence[str], keep: int) -> list[str]:
    """The oldest generations beyond the `keep` latest."""
    ordered = sorted(name for name in names if is_generation(name))
    return ordered[: max(0, len(ordered) - keep)]
