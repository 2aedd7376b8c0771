"""`swingbot backup`: copy everything that must not be lost to a new directory.

    DIR/database/<table>.copy.zst    rows, all from one snapshot
    DIR/artifacts/ab/cdef....zst     raw results by content
    DIR/mirror.git                   refs and objects of the mirror
    DIR/mail/new, DIR/mail/cur       copies of mails
    DIR/SHA256SUMS                   all files above, as `sha256sum --check` reads them
    DIR/manifest.json                written last: without it, a backup is not whole

The service keeps running. The database is copied first. A file is always created before the row
that refers to it, so files copied afterwards are complete for that snapshot. A lock prevents
pruning meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from swingbot.adapters import artifacts, git_limits, maildir, private_file, process
from swingbot.adapters.zstd_file import ZstdWriter
from swingbot.app.keep.progress import CopyProgress, amount
from swingbot.app.keep.verify import MANIFEST, SUMS, sums
from swingbot.app.settings import Settings
from swingbot.core.keep.manifest import FORMAT, DumpedTable, Manifest
from swingbot_db import dump, migrate
from swingbot_db.engine import Connection, Engine, snapshot
from swingbot_jobs import codec

Announce = Callable[[str], None]
_GIT_SECONDS: Final = 6 * 3600.0
_ODD: Final = re.compile(r"^[^A-Za-z0-9_]|[^A-Za-z0-9_.,:=+-]")


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


def write_json(target: Path, document: object) -> None:
    private_file.write(
        target, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode(), 0o644
    )


def backup(settings: Settings, engine: Engine, directory: Path, announce: Announce) -> Manifest:
    """Fill `directory`, which must be empty or not exist. Raises KeepError, OSError."""
    directory = directory.absolute()
    if settings.state == directory or settings.state in directory.parents:
        raise KeepError(
            f"{directory} is inside the state directory that it would back up; choose another"
        )
    with alone(settings):
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise KeepError(f"{directory} is not empty; choose a new directory for each backup")
        directory.chmod(0o700)  # will contain mails and results of embargoed work
        dumped = _database(engine, directory / "database", announce)
        _artifacts(settings.artifacts, directory / "artifacts", announce)
        _mirror(settings.mirror, directory / "mirror.git", announce)
        _mail(settings.maildir, directory / "mail")
        listed = sums(directory, announce)
        (directory / SUMS).write_text("".join(f"{sha}  {path}\n" for path, sha in listed.items()))
        manifest = Manifest(
            **dumped,
            format=FORMAT,
            secrets=_secrets(settings),
            files=len(listed),
            size=sum((directory / path).stat().st_size for path in listed),
        )
        os.sync()
        write_json(directory / MANIFEST, codec.plain(manifest))
    return manifest


def _database(engine: Engine, folder: Path, announce: Announce) -> dict[str, Any]:
    """Dump all tables; return the manifest's entries about them."""
    folder.mkdir()
    with snapshot(engine) as conn:
        migrate.check(conn)
        tables = dump.tables(conn)
        progress = CopyProgress(
            "database", len(tables), sum(table.bytes for table in tables), announce, noun="tables"
        )
        taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        dumped = []
        for table in tables:
            rows = _table(conn, table, folder / f"{table.name}.copy.zst")
            dumped.append(DumpedTable(name=table.name, columns=table.columns, rows=rows))
            progress.add(table.bytes)
        revision, sequences = cast(str, migrate.revision(conn)), dump.sequences(conn)
    announce(f"database: {len(dumped)} tables, {sum(table.rows for table in dumped)} rows")
    return {
        "taken_at": taken_at,
        "revision": revision,
        "tables": tuple(dumped),
        "sequences": sequences,
    }


def _table(conn: Connection, table: dump.DumpTable, target: Path) -> int:
    with target.open("xb") as file:
        writer = ZstdWriter(file)
        rows = dump.write_table(conn, table, writer)
        writer.finish()
    return rows


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


def _artifacts(source: Path, target: Path, announce: Announce) -> None:
    stored = list(artifacts.ArtifactDirectory(source).stored())
    size = sum(file.size for file in stored)
    progress = CopyProgress("artifacts", len(stored), size, announce)
    for file in stored:
        copy(source / file.path, target / file.path)
        progress.add(file.size)
    announce(f"artifacts: {len(stored)} files, {amount(size)}")


def copy(source: Path, target: Path) -> None:
    """Copy the content of a file; directories are made as needed. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _mirror(mirror: Path, target: Path, announce: Announce) -> None:
    if not mirror.exists():
        announce("mirror: none yet")
        return
    announce(f"mirror: {fetch_all(mirror, target)} refs")


def fetch_all(source: Path, target: Path) -> int:
    """Make the bare repository `target` with all refs of `source`; return their number.

    Raises KeepError.
    """
    _git("init", "--quiet", "--bare", "--template=", str(target))
    fetch = ("fetch", "--quiet", "--no-tags", "--no-auto-gc", str(source), "+refs/*:refs/*")
    _git("-C", str(target), *fetch)
    _git("-C", str(target), "pack-refs", "--all")  # a ref's name is not always one of a file
    return len(_git("-C", str(target), "for-each-ref", "--format=%(refname)").splitlines())


def _git(*arguments: str) -> str:
    done = process.run(["git", *arguments], timeout=_GIT_SECONDS, within=git_limits.WHOLE_HISTORY)
    if done.rc != 0:
        verb = arguments[2] if arguments[0] == "-C" else arguments[0]
        raise KeepError(f"git {verb}: {(done.err.strip().splitlines() or ['failed'])[-1]}")
    return done.out


def _mail(folder: Path, target: Path) -> None:
    for path in maildir.files(folder):
        if path.name.startswith("."):
            continue  # not a mail
        name = _ODD.sub("_", path.name)  # only such names are restored
        with suppress(FileNotFoundError):  # moved or deleted by a mail reader
            copy(path, target / path.parent.name / name)
