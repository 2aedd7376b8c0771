"""`swingbot backup`: create a new generation while the service runs.

The database is copied first, from one snapshot. A file is always created before the row that refers
to it, so files copied afterwards are complete for that snapshot. A lock prevents pruning meanwhile.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from swingbot.adapters import artifacts, maildir, process
from swingbot.adapters.zstd_file import ZstdWriter
from swingbot.app.keep.backup_directory import BackupDirectory, copy_whole, write_json
from swingbot.app.keep.progress import BackupProgress, amount
from swingbot.app.settings import SECTIONS, Settings
from swingbot.core.keep.generation import (
    FORMAT,
    BadBackup,
    MailFile,
    Manifest,
    TableFile,
    generation_name,
    too_many,
)
from swingbot_db import dump, migrate
from swingbot_db.engine import Connection, Engine, snapshot

Announce = Callable[[str], None]
_GIT_SECONDS: Final = 6 * 3600.0


class KeepError(Exception):
    """A backup, restore or retention run failed; the message says what to do."""


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Exclude concurrent backup and retention runs on a state directory. Raises KeepError."""
    with (settings.state / "keep.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeepError(
                f"another backup or retention run is using {settings.state}; wait until it has"
                " finished"
            ) from None
        yield


def backup(
    settings: Settings,
    engine: Engine,
    directory: Path,
    announce: Announce,
    *,
    keep: int,
    link: bool = False,
) -> tuple[str, Manifest]:
    """Create a generation in `directory` and delete the oldest beyond `keep`.

    Raises BadBackup, KeepError, OSError.
    """
    backups = BackupDirectory(directory)
    if settings.state == backups.directory or settings.state in backups.directory.parents:
        raise KeepError(
            f"{backups.directory} is inside the state directory that it would back up;"
            " choose another"
            " directory"
        )
    with alone(settings):
        backups.create()
        name = generation_name(datetime.now(UTC))
        part = backups.generations / f".{name}.part"
        for unfinished in backups.generations.glob(".*.part"):
            shutil.rmtree(unfinished)
        (part / "database").mkdir(parents=True)
        manifest = _database(settings, engine, part / "database", announce)
        count, size = _artifacts(settings, backups, part, announce, link=link)
        manifest = dataclasses.replace(
            manifest,
            artifacts=count,
            artifact_bytes=size,
            refs=_mirror(settings.mirror, backups, name, announce),
            letters=_mail(settings.maildir, backups),
        )
        write_json(part / "manifest.json", manifest.to_json())
        os.sync()
        part.rename(backups.generations / name)
        _forget(backups, keep, announce)
    return name, manifest


# -- the database -------------------------------------------------------------


def _database(settings: Settings, engine: Engine, folder: Path, announce: Announce) -> Manifest:
    with snapshot(engine) as conn:
        migrate.check(conn)
        tables = dump.tables(conn)
        progress = BackupProgress(
            "database", len(tables), sum(table.bytes for table in tables), announce, noun="tables"
        )
        taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        written = []
        for table in tables:
            written.append(_table(conn, table, folder / f"{table.name}.copy.zst"))
            progress.add(table.bytes)
        manifest = Manifest(
            format=FORMAT,
            taken_at=taken_at,
            revision=cast(str, migrate.revision(conn)),
            server=dump.server_version(conn),
            tables=tuple(written),
            sequences=dump.sequences(conn),
            artifacts=0,
            artifact_bytes=0,
            refs={},
            letters=(),
            secrets=_secrets(settings),
            settings=_given(settings),
        )
    announce(
        f"database: {len(written)} tables, {sum(table.rows for table in written)} rows,"
        f" {amount(sum(table.size for table in written))} compressed"
    )
    return manifest


class _Hashing:
    """Writes to a file and computes the sha256 of the content."""

    def __init__(self, file: Any) -> None:
        self._file, self.digest, self.size = file, hashlib.sha256(), 0

    def write(self, chunk: bytes) -> int:
        self.digest.update(chunk)
        self.size += len(chunk)
        return int(self._file.write(chunk))


def _table(conn: Connection, table: dump.DumpTable, target: Path) -> TableFile:
    with target.open("xb") as file:
        hashing = _Hashing(file)
        writer = ZstdWriter(hashing)  # type: ignore[arg-type]  # only write() is used
        rows = dump.write_table(conn, table, writer)
        writer.finish()
    return TableFile(
        name=table.name,
        columns=table.columns,
        rows=rows,
        sha256=hashing.digest.hexdigest(),
        size=hashing.size,
    )


def _secrets(settings: Settings) -> tuple[str, ...]:
    """Files with secrets, which are not copied.

    Paths are relative to the state directory if the file is inside it.
    """
    state = settings.state
    files = [
        file
        for file in (settings.secret_file, *sorted(settings.worker_secrets.glob("*")))
        if file.is_file()
    ]
    return tuple(
        str(file.relative_to(state) if file.is_relative_to(state) else file) for file in files
    )


def _given(settings: Settings) -> dict[str, Any]:
    """Settings given explicitly, without the database URL, which may contain a password."""
    values = {
        f"{section}.{field.name}": getattr(getattr(settings, section), field.name)
        for section in SECTIONS
        for field in _fields(settings, section)
    }
    return {
        key: value for key, value in values.items() if key in settings.sources and key != "db.url"
    }


def _fields(settings: Settings, section: str) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(getattr(settings, section))


# -- files --------------------------------------------------------------------


def _artifacts(
    settings: Settings, backups: BackupDirectory, part: Path, announce: Announce, *, link: bool
) -> tuple[int, int]:
    """Copy artifacts missing in the backup; return number and bytes of all files."""
    stored = list(artifacts.ArtifactDirectory(settings.artifacts).stored())
    new = [
        file
        for file in stored
        if not (backups.artifacts / file.path).exists() or file.path.endswith(artifacts.GONE)
    ]
    progress = BackupProgress("artifacts", len(new), sum(file.size for file in new), announce)
    copied = 0
    for file in new:
        if not copy_whole(settings.artifacts / file.path, backups.artifacts / file.path, link=link):
            copied += 1
        progress.add(file.size)
    with (part / "artifacts.list").open("w") as out:
        out.writelines(f"{file.path}\n" for file in stored)
    size = sum(file.size for file in stored)
    how = f"; {copied} could not be linked and were copied" if link and copied else ""
    announce(
        f"artifacts: {len(stored)} files, {amount(size)}; {len(new)} of them new,"
        f" {amount(sum(file.size for file in new))}{how}"
    )
    return len(stored), size


def _mirror(
    mirror: Path, backups: BackupDirectory, name: str, announce: Announce
) -> dict[str, str]:
    """Fetch all refs of the mirror into the backup; return them without the `refs/` prefix."""
    if not mirror.exists():
        announce("mirror: none yet")
        return {}
    if not backups.mirror.exists():
        _git("init", "--quiet", "--bare", str(backups.mirror))
    _git(
        "-C",
        str(backups.mirror),
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-auto-gc",
        str(mirror),
        f"+refs/*:refs/backup/{name}/*",
    )
    fetched = refs(backups.mirror, name)
    announce(f"mirror: {len(fetched)} refs")
    return fetched


def refs(mirror: Path, name: str) -> dict[str, str]:
    """Refs of a generation: name without `refs/` -> commit."""
    prefix = f"refs/backup/{name}/"
    lines = _git(
        "-C", str(mirror), "for-each-ref", "--format=%(objectname) %(refname)", prefix
    ).splitlines()
    return {
        ref.removeprefix(prefix): commit
        for commit, _, ref in (line.partition(" ") for line in lines)
    }


def _git(*arguments: str) -> str:
    done = process.run(["git", *arguments], timeout=_GIT_SECONDS)
    if done.rc != 0:
        verb = arguments[2] if arguments[0] == "-C" else arguments[0]
        raise KeepError(f"git {verb}: {(done.err.strip().splitlines() or ['failed'])[-1]}")
    return done.out


git = _git


def _mail(folder: Path, backups: BackupDirectory) -> tuple[MailFile, ...]:
    mails = []
    for path in maildir.files(folder):
        try:
            content = path.read_bytes()
        except OSError:
            continue  # moved or deleted by a mail reader
        sha256 = hashlib.sha256(content).hexdigest()
        target = backups.letter(sha256)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.with_name(target.name + ".part").write_bytes(content)
            target.with_name(target.name + ".part").replace(target)
        mails.append(MailFile(folder=path.parent.name, name=path.name, sha256=sha256))
    return tuple(mails)


# -- deleting old generations -------------------------------------------------


def _forget(backups: BackupDirectory, keep: int, announce: Announce) -> None:
    """Delete generations beyond the latest `keep`, and files that no other generation uses."""
    old = too_many(backups.names(), keep)
    if not old:
        return
    for name in old:
        shutil.rmtree(backups.generations / name)
        if backups.mirror.exists():
            for ref in refs(backups.mirror, name):
                _git("-C", str(backups.mirror), "update-ref", "-d", f"refs/backup/{name}/{ref}")
    used_files: set[str] = set()
    used_mail: set[str] = set()
    for name in backups.names():
        used_files.update(backups.artifact_list(name))
        used_mail.update(letter.sha256 for letter in backups.manifest(name).letters)
    gone = 0
    for path in [*backups.artifacts.glob("??/*"), *backups.mail.glob("??/*")]:
        named = (
            path.parent.name + "/" + path.name
            if path.is_relative_to(backups.artifacts)
            else path.parent.name + path.name
        )
        if named not in (used_files if path.is_relative_to(backups.artifacts) else used_mail):
            path.unlink()
            gone += 1
    announce(f"deleted old generations {', '.join(old)} and {gone} files that only they used")


__all__ = ["BadBackup", "KeepError", "backup"]
