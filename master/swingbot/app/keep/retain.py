"""`swingbot retention`: count by class what is there, and let go what the rules allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from swingbot.adapters.artifacts import GONE, Artifacts
from swingbot.app.keep.backup import alone
from swingbot.app.keep.backup_directory import write_json
from swingbot.app.settings import Settings
from swingbot.core.keep.retention import (
    ClassTotal,
    FileReference,
    RetentionDecision,
    StoredFile,
    gone,
    judge,
    merged,
    totals,
)
from swingbot.core.model.artifact import ArtifactError
from swingbot_db.engine import Engine
from swingbot_db.keep import named_artifacts

EVERY: Final = timedelta(days=1)
KITS_DAYS: Final = 30.0  # after a tarball was fetched last; it is made again when it is wanted
_RECORD: Final = "rootfs.json"
_RECORD_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What a run of retention found: by class, how many files were pruned before, and the bytes that are free now (0 in a dry run)."""

    totals: dict[str, ClassTotal]
    pruned_before: int
    freed: int


def days_of(settings: Settings) -> dict[str, float]:
    """Class -> days; 0: for ever."""
    rules = settings.retention
    return {
        "kernels": rules.kernels_days,
        "debug": rules.debug_days,
        "rootfs": rules.rootfs_days,
        "results": rules.results_days,
        "logs": rules.logs_days,
        "kits": KITS_DAYS,
    }


def retain(settings: Settings, engine: Engine, now: datetime, *, really: bool) -> Retained:
    """Judge every file, and with `really` prune those that may go. Raises KeepError while a backup is made, OSError."""
    with alone(settings):
        store = Artifacts(settings.artifacts)
        there, pruned = _there(store)
        days = days_of(settings)
        verdicts = judge(there, _named(engine, store), days, now) + list(
            _kits(settings, days["kits"], now)
        )
        freed = sum(_prune(settings, store, one) for one in verdicts if one.goes) if really else 0
        if really:
            write_json(_stamp(settings), {"at": now.isoformat(timespec="seconds"), "freed": freed})
    return Retained(totals=totals(verdicts, days), pruned_before=pruned, freed=freed)


def due(settings: Settings, now: datetime) -> bool:
    """Whether the daily run is to be made: it is switched on, and the last one is a day ago."""
    if not settings.retention.enabled:
        return False
    try:
        last = datetime.fromisoformat(json.loads(_stamp(settings).read_text())["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return now - last >= EVERY


def _stamp(settings: Settings) -> Path:
    return settings.state / "retention.json"


def _there(store: Artifacts) -> tuple[list[StoredFile], int]:
    """The files of the store, and how many notes of pruned ones there are."""
    found, notes = [], 0
    for file in store.stored():
        if file.path.endswith(GONE):
            notes += 1
        else:
            found.append(
                StoredFile(
                    key=file.sha256,
                    size=file.size,
                    modified=datetime.fromtimestamp(file.modified, UTC),
                )
            )
    return found, notes


def _named(engine: Engine, store: Artifacts) -> dict[str, list[FileReference]]:
    """All namings; a root file system is named by the record of it that its boots brought."""
    with engine.connect() as conn:
        named = list(named_artifacts(conn))
    records: dict[str, list[FileReference]] = {}
    for one in named:
        if one.name == _RECORD:
            records.setdefault(one.sha256, []).append(one)
    for sha256, namings in records.items():
        archive = _archive(store, sha256)
        if archive is not None:
            named += [
                FileReference(sha256=archive, name="handed-on.cpio", used=one.used, held=one.held)
                for one in namings
            ]
    return merged(named)


def _archive(store: Artifacts, sha256: str) -> str | None:
    """The sha256 of the root file system that a record tells of."""
    try:
        with store.open(sha256) as file:
            document = json.loads(file.read(_RECORD_BYTES))
        return str(document["archive"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ArtifactError):
        return None


def _kits(settings: Settings, days: float, now: datetime) -> Iterator[RetentionDecision]:
    """Tarballs of kits: whoever asks for one that went gets it made again."""
    for path in (settings.state / "reproductions").glob("*.tar.gz"):
        found = path.stat()
        modified = datetime.fromtimestamp(found.st_mtime, UTC)
        file = StoredFile(key=str(path), size=found.st_size, modified=modified)
        if days > 0 and now - modified > timedelta(days=days):
            yield gone(file, "kits", modified, {"kits": days}, now)
        else:
            yield RetentionDecision(
                file=file,
                kind="kits",
                used=modified,
                goes=False,
                why=f"younger than {days:g} days" if days > 0 else "kept for ever",
            )


def _prune(settings: Settings, store: Artifacts, verdict: RetentionDecision) -> int:
    if verdict.kind == "kits":
        Path(verdict.file.key).unlink(missing_ok=True)
        return verdict.file.size
    return store.prune(verdict.file.key, verdict.note)
