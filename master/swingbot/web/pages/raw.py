"""Raw results of a request at `/raw/<id>/`.

Files are sent byte for byte, with checksums; samples as CSV, a few boots at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from swingbot.core.model.artifact import ArtifactError, Gone, missing_words
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw import tables

from ..http.fair_threads import PiecesResponse
from ..http.file_response import stored
from ..http.render import Renderer
from ..http.snapshot_reader import SnapshotReader
from ..ports import OpenArtifact, Row

MADE: Final = (
    "manifest.json",
    "samples.csv",
    "runs.csv",
    "facts.csv",
    "SHA256SUMS",
)
_BLOCK: Final = 64 << 10  # characters of a piece of a response
_TEXT: Final = (".log", ".map", ".txt", "config", ".sh", "SHA256SUMS")
_SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


class RawPages:
    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        artifact: OpenArtifact,
        unit: Callable[[str], str | None],
    ) -> None:
        self._source, self._renderer, self._artifact, self._unit = source, renderer, artifact, unit

    def listing(self, request: Request) -> Response:
        return RedirectResponse(f"/raw/{request.path_params['id']}/")

    def file(self, request: Request) -> Response:
        """The listing of a request, one of its files, or a table derived from it."""
        id, path = request.path_params["id"], request.path_params["path"]
        with self._source.reading() as conn:
            manifest = self._source.read.raw_manifest(conn, id)
        if path == "":
            files = [
                file | {"stored": not (why := self._missing(file["sha256"])), "missing": why}
                for file in manifest["files"]
            ]
            return self._renderer.page("raw.html", this=manifest, files=files)
        return self._made(path, manifest) if path in MADE else self._file(request, manifest, path)

    def _missing(self, sha256: str) -> str:
        """Why a file is not available; empty if it is."""
        try:
            self._artifact(sha256).close()
            return ""
        except Gone as error:
            return str(error)
        except (OSError, ValueError, ArtifactError):
            return "not in the store"

    def _file(self, request: Request, manifest: Row, path: str) -> Response:
        entry = next((file for file in manifest["files"] if file["path"] == path), None)
        if entry is None:
            raise NotFound(
                f"{manifest['id']} has no file {path!r}; /raw/{manifest['id']}/ lists its files"
            )
        try:
            content = self._artifact(entry["sha256"])
        except (FileNotFoundError, ArtifactError) as error:
            why = missing_words(error, entry["sha256"])
            lost = isinstance(error, FileNotFoundError) and not isinstance(error, Gone)
            raise HTTPException(
                404 if lost else 410, f"{path} of {manifest['id']}: {why}"
            ) from None
        media_type, headers = _kind(path.rsplit("/", 1)[-1])
        return stored(request, content, entry["sha256"], media_type, headers)

    def _made(self, path: str, manifest: Row) -> Response:
        if path == "manifest.json":
            return JSONResponse(manifest)
        if path == "SHA256SUMS":
            return PlainTextResponse(
                sums((file["sha256"], file["path"]) for file in manifest["files"])
            )
        lines = {
            "samples.csv": lambda: tables.csv_lines(
                tables.SAMPLES, tables.with_units(self._samples(manifest["id"]), self._unit)
            ),
            "runs.csv": lambda: tables.csv_lines(tables.RUNS, tables.run_rows(manifest["boots"])),
            "facts.csv": lambda: tables.csv_lines(
                tables.FACTS, tables.fact_rows(manifest["boots"])
            ),
        }[path]()
        headers = {"content-disposition": f'attachment; filename="{manifest["id"]}-{path}"'}
        return PiecesResponse(_blocks(lines), media_type="text/csv; charset=utf-8", headers=headers)

    def _samples(self, id: str) -> Iterator[Row]:
        for page in self._source.read.sample_pages(self._source.reading, id):
            yield from page


def sums(files: Iterable[tuple[str, str]]) -> str:
    """Lines for `sha256sum -c`, from (sha256, path)."""
    return "".join(f"{sha256}  {path}\n" for sha256, path in files)


def _kind(name: str) -> tuple[str, dict[str, str]]:
    """Media type and headers: text is displayed as text, anything else is downloaded."""
    if name.endswith(".json"):
        return "application/json", dict(_SAFE)
    if name.endswith(_TEXT):
        return "text/plain; charset=utf-8", dict(_SAFE)
    return "application/octet-stream", _SAFE | {
        "Content-Disposition": f'attachment; filename="{name}"'
    }


def _blocks(lines: Iterator[str]) -> Iterator[str]:
    """Join lines: each piece of a response has a cost."""
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield "".join(block)
            block, size = [], 0
    yield "".join(block)
