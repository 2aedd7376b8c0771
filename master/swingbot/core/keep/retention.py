"""Retention of the artifact store: a rule for each class of files, and what is always kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

CLASSES: Final = ("kernels", "debug", "rootfs", "results", "logs", "kits", "records", "orphans")
# Files by the name that a worker gives them. Others are small records of measurements and always
# stay.
_BY_NAME: Final[Mapping[str, str]] = {
    "bzImage": "kernels",
    "vmlinux": "debug",
    "System.map": "debug",
    "objects.json": "debug",
    "functions.json.gz": "debug",
    "handed-on.cpio": "rootfs",
    "results.tar": "results",
    "console.log": "logs",
    "build.log": "logs",
    "qemu.log": "logs",
}
# An upload comes before the outcome that names it; after a day without one it is an orphan.
ORPHAN_DAYS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReference:
    """One reference to a file: its name there, its last use, and why it must stay (None: age
    alone).
    """

    sha256: str
    name: str
    used: datetime
    held: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A stored file: `key` is its SHA-256, or its path for a kit; `size` in bytes on the disk."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """The decision about one file.

    `why` says why it stays or goes. `note` answers later requests for it; empty if there can be
    none.
    """

    file: StoredFile
    kind: str
    used: datetime
    goes: bool
    why: str
    note: str = ""


@dataclass(slots=True, kw_only=True)
class ClassTotal:
    """Totals of one class: all files, those that go, and why the rest stays."""

    days: float
    files: int = 0
    size: int = 0
    oldest: datetime | None = None
    goes: int = 0
    goes_size: int = 0
    stays: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "days": self.days,
            "files": self.files,
            "bytes": self.size,
            "oldest": self.oldest and self.oldest.isoformat(timespec="seconds"),
            "goes_files": self.goes,
            "goes_bytes": self.goes_size,
            "stays": self.stays,
        }


def class_of(name: str) -> str:
    return _BY_NAME.get(name.removeprefix("server."), "records")  # of a cluster's server too


def merged(named: Iterable[FileReference]) -> dict[str, list[FileReference]]:
    """References by file: one a class, with its latest use and a reason to stay, if any."""
    references: dict[str, dict[str, FileReference]] = {}
    for one in named:
        of_file = references.setdefault(one.sha256, {})
        kind = class_of(one.name)
        other = of_file.get(kind)
        of_file[kind] = (
            one
            if other is None
            else replace(other, used=max(other.used, one.used), held=other.held or one.held)
        )
    return {sha256: list(of_file.values()) for sha256, of_file in references.items()}


def judge(
    files: Iterable[StoredFile],
    named: Mapping[str, Sequence[FileReference]],
    days: Mapping[str, float],
    now: datetime,
) -> list[RetentionDecision]:
    """Decide about each stored file.

    `days`: how long a class is kept after its last use; 0: forever.
    """
    return [_judge(file, named.get(file.key, ()), days, now) for file in files]


def _judge(
    file: StoredFile, named: Sequence[FileReference], days: Mapping[str, float], now: datetime
) -> RetentionDecision:
    if not named:
        goes = now - file.modified > timedelta(days=ORPHAN_DAYS)
        return RetentionDecision(
            file=file,
            kind="orphans",
            used=file.modified,
            goes=goes,
            why="no outcome names it" if goes else "new: its outcome may still come",
        )
    kind = min((class_of(one.name) for one in named), key=CLASSES.index)
    used = max(one.used for one in named)
    stays = next((why for one in named if (why := _stays(one, file, days, now))), None)
    if stays is not None:
        return RetentionDecision(file=file, kind=kind, used=used, goes=False, why=stays)
    return gone(file, kind, used, days, now)


def gone(
    file: StoredFile, kind: str, used: datetime, days: Mapping[str, float], now: datetime
) -> RetentionDecision:
    """The decision to delete a file, with the note for later requests."""
    note = (
        f"pruned on {now:%Y-%m-%d} by the rule retention.{kind}_days = {days[kind]:g}:"
        f" last used on {used:%Y-%m-%d}"
    )
    return RetentionDecision(
        file=file, kind=kind, used=used, goes=True, why=f"older than {days[kind]:g} days", note=note
    )


def _stays(
    named: FileReference, file: StoredFile, days: Mapping[str, float], now: datetime
) -> str | None:
    """Why this reference keeps the file, or None. Equal reasons have equal words, to be counted."""
    if named.held is not None:
        return (
            named.held if named.held.startswith(("incident", "tree")) else "somebody waits for it"
        )
    limit = days.get(class_of(named.name), 0.0)
    if limit <= 0:
        return "kept for ever"
    if now - max(named.used, file.modified) <= timedelta(days=limit):
        return f"younger than {limit:g} days"
    return None


def totals(
    verdicts: Iterable[RetentionDecision], days: Mapping[str, float]
) -> dict[str, ClassTotal]:
    """Return totals by class, in the order of CLASSES."""
    found = {
        kind: ClassTotal(days=ORPHAN_DAYS if kind == "orphans" else days.get(kind, 0.0))
        for kind in CLASSES
    }
    for one in verdicts:
        total = found[one.kind]
        total.files += 1
        total.size += one.file.size
        total.oldest = one.used if total.oldest is None else min(total.oldest, one.used)
        if one.goes:
            total.goes += 1
            total.goes_size += one.file.size
        else:
            why = (
                "reported in an incident"
                if one.why.startswith("incident")
                else "base or tip of a watched tree"
                if one.why.startswith("tree")
                else one.why
            )
            total.stays[why] = total.stays.get(why, 0) + 1
    return found
