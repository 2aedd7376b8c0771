"""Raw results of a service elsewhere. What it names is written below the directory given, only."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from swingbot.adapters.limits import RESULT_ANSWER_BYTES
from swingbot.app.raw_export import FileMissing, Row
from swingbot.app.remote.connection import Connection, CutOff
from swingbot.app.remote.login import Login
from swingbot.app.remote.no_answer import ServiceError
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw import tables
from swingbot.service.limits import METRIC_CHARACTERS
from swingbot.service.ports import RequestError
from swingbot_jobs import codec

_LINE_CHARACTERS: Final = 1 << 20  # of samples.csv; swingbot's own have a few hundred
# An export has the values of a run and the names of all metrics in memory. A service reads so many
# bytes of a boot's values, each with a comma.
_RUN_VALUES: Final = RESULT_ANSWER_BYTES // 2
_NAMES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedFile:
    path: str
    sha256: str
    size: codec.Count


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedRun:
    unit_job: str
    run: int
    status: str
    result_root: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedDigest:
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedBoot:
    id: str
    k: object
    commit: object
    testbox: object
    roles: tuple[str, ...]
    runs: tuple[_ExportedRun, ...]
    facts: Mapping[str, object] | None
    files: Mapping[str, _ExportedDigest] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExportedManifest:
    """What an export uses of a manifest."""

    id: str
    kind: str
    files: tuple[_ExportedFile, ...]
    boots: tuple[_ExportedBoot, ...]


class HttpRaw:
    """Implements `RawResults`; each method also raises ServiceError."""

    def __init__(self, login: Login) -> None:
        self._url, self._service = login.url, Connection(login)

    def manifest(self, id: str) -> Row:
        ids.read(id)
        found = self._service.json(_ExportedManifest, f"/raw/{id}/manifest.json")
        known = codec.typed(_ExportedManifest, found, ignore_unknown=True)
        self._check_inside(file.path for file in known.files)
        self._check_inside(boot.id for boot in known.boots)
        roots = (run.result_root for boot in known.boots for run in boot.runs)
        self._check_inside(filter(None, roots))
        manifest: Row = found
        return manifest

    def _check_inside(self, paths: Iterable[str]) -> None:
        """Raises ServiceError for a path that is not relative, or leads elsewhere."""
        bad = next((path for path in paths if not _is_inside(path)), None)
        if bad is not None:
            raise ServiceError(f"{self._url} names a file outside of the directory: {bad[:200]!r}")

    def content(self, id: str, file: Row) -> Iterator[bytes]:
        path, size = file["path"], 0
        try:
            for piece in self._service.pieces(f"/raw/{id}/{quote(path)}"):
                size += len(piece)
                if size > file["size"]:
                    raise FileMissing("it is larger than the manifest says")
                yield piece
        except CutOff as error:
            raise FileMissing(str(error)) from None
        except (NotFound, RequestError) as error:
            before = f"{path} of {id}: "
            if not str(error).startswith(before):
                raise
            raise FileMissing(str(error).removeprefix(before)) from None

    def samples(self, id: str) -> Iterator[Mapping[str, Any]]:
        try:
            lines = _lines(self._service.pieces(f"/raw/{id}/samples.csv"))
            for row in _fitting(tables.read_samples(lines)):
                self._check_inside(filter(None, [row["result_root"]]))
                yield row
        except ValueError as error:
            if isinstance(error, RequestError | NotFound):
                raise
            raise ServiceError(f"samples.csv of {self._url} cannot be read: {error}") from None


def _is_inside(path: str) -> bool:
    """Return True for a relative path that leads nowhere else."""
    if not path.isprintable() or "\\" in path:
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _fitting(samples: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return the samples. Raises ValueError for more than a service has of a run, or in all."""
    names: set[str] = set()
    last, values = None, 0
    for row in samples:
        run = (row["boot"], row["unit_job"], row["run"])
        last, values = run, values + 1 if run == last else 1
        if values > _RUN_VALUES:
            raise ValueError(f"a run has more than {_RUN_VALUES} values")
        names.add(row["metric"] or "")
        if len(names) > _NAMES or not 0 < len(row["metric"] or "") <= METRIC_CHARACTERS:
            raise ValueError(
                f"it has more than {_NAMES} metrics, or one without a name of at most"
                f" {METRIC_CHARACTERS} characters"
            )
        yield row


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Return the lines of UTF-8 text with their ends. Raises ValueError for one that is too
    long.
    """
    decoder, rest = codecs.getincrementaldecoder("utf-8")(), ""
    for piece in pieces:
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (f"{line}\n" for line in lines)
        if len(rest) > _LINE_CHARACTERS:
            raise ValueError(f"a line has more than {_LINE_CHARACTERS} characters")
    if rest:
        yield rest
