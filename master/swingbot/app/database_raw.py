"""Raw results of the service on this host, from its database and artifact store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.raw_export import FileMissing, Row
from swingbot.core.model.artifact import ArtifactError, missing_words
from swingbot.core.raw import tables
from swingbot_db import read
from swingbot_db.engine import Engine
from swingbot_jobs.language.program import Program

_CHUNK: Final = 1 << 20


class DatabaseRaw:
    """Implements `RawResults`. `programs` know the units of metrics."""

    def __init__(
        self, engine: Engine, store: ArtifactDirectory, programs: Mapping[str, Program]
    ) -> None:
        self._engine, self._store, self._programs = engine, store, programs

    def manifest(self, id: str) -> Row:
        with self._engine.connect() as conn:
            found: Row = read.raw_manifest(conn, id)
        return found

    def content(self, id: str, file: Row) -> Iterator[bytes]:
        try:
            with self._store.open(file["sha256"]) as stored:
                yield from iter(lambda: stored.read(_CHUNK), b"")
        except (FileNotFoundError, ArtifactError) as error:
            raise FileMissing(missing_words(error, file["sha256"])) from None

    def samples(self, id: str) -> Iterator[Mapping[str, Any]]:
        with self._engine.connect() as conn:
            yield from tables.with_units(
                read.samples(conn, id), lambda metric: tables.unit_of(self._programs, metric)
            )
