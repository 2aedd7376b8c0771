"""`swingbot retention`: count stored files by class and delete expired ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from swingbot.adapters.artifacts import GONE, ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.app.keep.backup import alone, write_json
from swingbot.app.keep.forget import needed
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
from swingbot.core.raw.boot_record import read_record
from swingbot.service.clock_watch import SteadyClock
from swingbot.service.limits import RECORD_BYTES
from swingbot.service.ports import GitError
from swingbot_db.engine import Engine
from swingbot_db.keep import expire_names, named_artifacts

EVERY: Final = timedelta(days=1)
LONG: Final = timedelta(days=30)  # without a run: the service was off, or the clock is wrong
KITS_DAYS: Final = 30.0  # since a tarball was last fetched; it is rebuilt on demand
_RECORD: Final = "rootfs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """Result of a run: totals by class, names of metrics that expired, files pruned earlier, bytes
    freed (0: dry run).
    """

    totals: dict[str, ClassTotal]
    names: int
    pruned_before: int
    freed: int


def days_of(settings: Settings) -> dict[str, float]:
    """Class -> days; 0: forever."""
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
    """Classify every file and, with `really`, delete expired ones.

    Raises KeepError during a backup, OSError.
    """
    with alone(settings):
        store = ArtifactDirectory(settings.artifacts)
        stored, pruned = _stored(store)
        days = days_of(settings)
        verdicts = judge(stored, _named(engine, store), days, now) + list(
            _kits(settings, days["kits"], now)
        )
        freed = sum(_prune(settings, store, one) for one in verdicts if one.goes) if really else 0
        if really:
            write_json(_stamp(settings), {"at": now.isoformat(timespec="seconds"), "freed": freed})
            with suppress(GitError):  # requests are under way: tomorrow
                mirror = Mirror(settings.mirror)
                for commit in mirror.sent():
                    if not needed(engine, commit):
                        mirror.forget(commit)
                mirror.remove_forgotten(partial(needed, engine))
        names = _expire_names(engine, days["kernels"], now, really=really)
    return Retained(totals=totals(verdicts, days), names=names, pruned_before=pruned, freed=freed)


def _expire_names(engine: Engine, days: float, now: datetime, *, really: bool) -> int:
    """Names of metrics that are no longer reported go with the kernels that reported them."""
    if days <= 0:
        return 0
    with engine.connect() as conn:
        names = expire_names(conn, now - timedelta(days=days))
        if really:
            conn.commit()
    return names


def due(settings: Settings, now: datetime, clock: SteadyClock) -> bool:
    """Return True if daily retention is enabled and the last run was at least a day ago.

    `clock` watches the clock of `now`. If it was set, or was perhaps set while no process looked,
    every file may look old: then a day passes first, in which an operator can set it right.
    """
    if not settings.retention.enabled or clock.since_step() < EVERY.total_seconds():
        return False
    try:
        last = datetime.fromisoformat(json.loads(_stamp(settings).read_text())["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return True
    if now - last > LONG and clock.steady() < EVERY.total_seconds():
        return False
    return now - last >= EVERY or last > now  # the clock was ahead when it ran


def _stamp(settings: Settings) -> Path:
    return settings.state / "retention.json"


def _stored(store: ArtifactDirectory) -> tuple[list[StoredFile], int]:
    """Files in the store, and the number of notes about pruned ones."""
    files, notes = [], 0
    for file in store.stored():
        if file.path.endswith(GONE):
            notes += 1
        else:
            files.append(
                StoredFile(
                    key=file.sha256,
                    size=file.size,
                    modified=datetime.fromtimestamp(file.modified, UTC),
                )
            )
    return files, notes


def _named(engine: Engine, store: ArtifactDirectory) -> dict[str, list[FileReference]]:
    """References to each file; a boot's `rootfs.json` refers to its root file system."""
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


def _archive(store: ArtifactDirectory, sha256: str) -> str | None:
    """The sha256 of the root file system that a record refers to."""
    try:
        with store.open(sha256) as file:
            document = read_record(file.read(RECORD_BYTES))
        return str(document["archive"])
    except (OSError, ValueError, KeyError, TypeError, ArtifactError):
        return None


def _kits(settings: Settings, days: float, now: datetime) -> Iterator[RetentionDecision]:
    """Decisions about tarballs of kits, which are rebuilt on demand."""
    for path in settings.reproductions.glob("*.tar.gz"):
        stat = path.stat()
        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        file = StoredFile(key=str(path), size=stat.st_size, modified=modified)
        if days > 0 and now - modified > timedelta(days=days):
            yield gone(file, "kits", modified, {"kits": days}, now)
        else:
            yield RetentionDecision(
                file=file,
                kind="kits",
                used=modified,
                goes=False,
                why=f"younger than {days:g} days" if days > 0 else "kept forever",
            )


def _prune(settings: Settings, store: ArtifactDirectory, verdict: RetentionDecision) -> int:
    if verdict.kind == "kits":
        Path(verdict.file.key).unlink(missing_ok=True)
        return verdict.file.size
    return store.prune(verdict.file.key, verdict.note)
