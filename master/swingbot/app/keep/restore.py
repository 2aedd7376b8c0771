"""`swingbot restore`: create a state directory and a database from a backup.

The old service is not touched, and nothing is started. Attempts that were running at the time of
the backup are repeated. Mail is stopped, because it is unknown which mails were sent afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from swingbot.adapters.git import Mirror
from swingbot.adapters.zstd_file import ZstdReader
from swingbot.app import database, postgres
from swingbot.app.keep import process
from swingbot.app.keep.backup import KeepError, copy, fetch_all, write_json
from swingbot.app.keep.progress import CopyProgress, amount
from swingbot.app.keep.verify import listed_files, load_manifest, verify
from swingbot.app.settings import Settings
from swingbot.core.keep.manifest import BadBackup, Manifest
from swingbot.core.text.numbers import count
from swingbot_db import dump, migrate
from swingbot_db.engine import Engine, make_engine
from swingbot_jobs.borrowed_repository import borrowed

Announce = Callable[[str], None]
_START_SECONDS: Final = 60.0


def restore(
    settings: Settings, directory: Path, announce: Announce, *, check: bool = True
) -> dict[str, Any]:
    """Fill `settings.state` and its database, which must be empty or not exist.

    Returns a summary. Raises BadBackup, KeepError, OSError.
    """
    state, manifest = settings.state, load_manifest(directory)
    _fits(manifest)
    if state.exists() and any(state.iterdir()):
        raise KeepError(f"{state} is not empty; choose a new directory with --state")
    if check and (problems := verify(directory, announce)):
        raise KeepError(
            f"the backup has {count(len(problems), 'problem')}: {'; '.join(problems[:3])}; use"
            " another one, or restore it anyway with --unchecked"
        )
    state.mkdir(parents=True, exist_ok=True)
    with _server(settings) as engine:
        changed = _database(engine, directory, manifest, announce)
    _files(settings, directory, list(listed_files(directory, manifest)), announce)
    done = {
        "taken_at": manifest.taken_at,
        "from_revision": manifest.revision,
        "changed": changed,
        "secrets_to_bring": list(manifest.secrets),
    }
    write_json(state / "restored.json", done)
    return done


def _fits(manifest: Manifest) -> None:
    revisions = migrate.revisions()
    if manifest.revision not in revisions:
        raise BadBackup(
            f"the backup has schema {manifest.revision}, but this version supports only up to"
            f" {revisions[-1]}; restore it with the version of swingbot that created it"
        )


@contextmanager
def _server(settings: Settings) -> Iterator[Engine]:
    """Engine on the empty target database; runs the embedded server meanwhile.

    Raises KeepError, PostgresError.
    """
    with ExitStack() as stack:
        if not settings.db.url:
            postgres.prepare(settings.state)
            argv, log = postgres.argv(settings.state), settings.state / "restore-postgres.log"
            answers = partial(postgres.answers, settings.state)
            stack.enter_context(
                process.running(
                    argv,
                    identity=postgres.identity(),
                    directory=settings.state,
                    log=log,
                    answers=answers,
                    seconds=_START_SECONDS,
                )
            )
            postgres.create_database(settings.state)
        engine = make_engine(database.owner_url(settings))
        stack.callback(engine.dispose)
        with engine.connect() as conn:
            if (used := dump.in_use(conn)) is not None:
                where = postgres.hidden(settings.db.url)
                raise KeepError(
                    f"the database {where} already contains table {used}; create an empty database"
                    " and set db.url to it"
                )
        yield engine


def _database(
    engine: Engine, directory: Path, manifest: Manifest, announce: Announce
) -> Mapping[str, int]:
    files = [directory / "database" / f"{table.name}.copy.zst" for table in manifest.tables]
    sizes = [file.stat().st_size for file in files]
    progress = CopyProgress("database", len(files), sum(sizes), announce, noun="tables")
    with dump.filling(engine, manifest.revision) as conn:
        for table, path, size in zip(manifest.tables, files, sizes, strict=True):
            with path.open("rb") as file, ZstdReader(file) as source:
                rows = dump.read_table(conn, table.name, table.columns, source)
            if rows != table.rows:
                raise KeepError(
                    f"table {table.name} has {rows} rows in the backup instead of {table.rows}; use"
                    " another backup"
                )
            progress.add(size)
        dump.set_sequences(conn, manifest.sequences)
        changed = dump.make_sound(conn, manifest.taken_at)
    migrate.upgrade(engine)
    announce(
        f"database: {len(files)} tables, {sum(table.rows for table in manifest.tables)} rows,"
        f" schema {manifest.revision}"
    )
    return changed


def _files(settings: Settings, directory: Path, listed: list[str], announce: Announce) -> None:
    targets = {"artifacts": settings.artifacts, "mail": settings.maildir}
    for folder in ("tmp", "new", "cur"):
        (settings.maildir / folder).mkdir(parents=True, exist_ok=True)
    settings.artifacts.mkdir(parents=True, exist_ok=True)
    for kind, target in targets.items():
        files = [directory / path for path in listed if path.startswith(f"{kind}/")]
        size = sum(file.stat().st_size for file in files)
        progress = CopyProgress(kind, len(files), size, announce)
        for file in files:
            copy(file, target / file.relative_to(directory / kind))
            progress.add(file.stat().st_size)
        announce(f"{kind}: {len(files)} files, {amount(size)}")
    if (mirror := directory / "mirror.git").exists():
        with borrowed(mirror) as source:
            announce(f"mirror: {fetch_all(source, settings.mirror)} refs")
        Mirror(settings.mirror).mark_again()
