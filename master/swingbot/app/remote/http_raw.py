"""Raw results of a service elsewhere. What it names is written below the directory given, only."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from swingbot.app.raw_export import FileMissing, Row
from swingbot.app.remote.connection import Connection, CutOff, ServiceError
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw import tables
from swingbot.service.ports import RequestError


class HttpRaw:
    """Implements `RawResults`; each method also raises ServiceError."""

    def __init__(self, login: Login) -> None:
        self._url, self._service = login.url, Connection(login)

    def manifest(self, id: str) -> Row:
        ids.read(id)
        found = self._service.json(f"/raw/{id}/manifest.json")
        try:
            paths = [file["path"] for file in found["files"]]
            paths += [boot["id"] for boot in found["boots"]]
            paths += [
                run["result_root"]
                for boot in found["boots"]
                for run in boot["runs"]
                if run["result_root"]
            ]
            bad = next((path for path in paths if not _is_inside(path)), None)
        except (KeyError, TypeError):
            raise ServiceError(f"{self._url} answers with something else than a manifest") from None
        if bad is not None:
            raise ServiceError(f"{self._url} names a file outside of the directory: {bad!r}")
        manifest: Row = found
        return manifest

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
            yield from tables.read_samples(_lines(self._service.pieces(f"/raw/{id}/samples.csv")))
        except ValueError as error:
            if isinstance(error, RequestError | NotFound):
                raise
            raise ServiceError(f"samples.csv of {self._url} cannot be read: {error}") from None


def _is_inside(path: Any) -> bool:
    """Return True for a relative path that leads nowhere else."""
    if not isinstance(path, str) or not path.isprintable() or "\\" in path:
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Return the lines of UTF-8 text with their ends."""
    decoder, rest = codecs.getincrementaldecoder("utf-8")(), ""
    for piece in pieces:
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (f"{line}\n" for line in lines)
    if rest:
        yield rest
