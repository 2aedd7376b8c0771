"""Raw results at `/raw/<id>/`: what the programs wrote, byte for byte, and every sample as CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from swingbot.core.model.lookup import NotFound

from .ports import ArtifactPath, Row
from .render import Renderer
from .source import Source

COLUMNS = ("role", "boot", "testbox", "k", "commit", "booted_at", "origin", "unit_job", "run", "metric", "seq", "value")
MADE = ("manifest.json", "samples.csv", "samples.json")
_TEXT = (".log", ".map", ".txt", "config")


def samples_csv(samples: Sequence[Row]) -> str:
    """Samples with a header line; a name that a spreadsheet would take for a formula is quoted by an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sample in samples:
        writer.writerow([_cell(sample.get(column)) for column in COLUMNS])
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


class RawPages:
    def __init__(self, source: Source, renderer: Renderer, artifact: ArtifactPath) -> None:
        self._source, self._renderer, self._artifact = source, renderer, artifact

    def listing(self, request: Request) -> Response:
        return RedirectResponse(f"/raw/{request.path_params['id']}/")

    def file(self, request: Request) -> Response:
        id, path = request.path_params["id"], request.path_params["path"]
        with self._source.reading() as conn:
            manifest = self._source.read.raw_manifest(conn, id)
            samples = self._source.read.samples(conn, id) if path.startswith("samples.") else []
        if path == "":
            stored = [file | {"stored": self._stored(file["sha256"])} for file in manifest["files"]]
            return self._renderer.page("raw.html", this=manifest, files=stored)
        if path in MADE:
            return _made(path, manifest, samples)
        return self._stored_file(manifest, path)

    def _stored(self, sha256: str) -> bool:
        try:
            return self._artifact(sha256).is_file()
        except ValueError:
            return False

    def _stored_file(self, manifest: Row, path: str) -> Response:
        found = next((file for file in manifest["files"] if file["path"] == path), None)
        if found is None:
            raise NotFound(f"{manifest['id']} has no file {path!r}; /raw/{manifest['id']}/ lists those it has")
        if not self._stored(found["sha256"]):
            raise HTTPException(404, f"{path} of {manifest['id']} is known, but it is no longer in the artifact store (sha256 {found['sha256']}).")
        name = path.rsplit("/", 1)[-1]
        if name.endswith(_TEXT):
            return FileResponse(self._artifact(found["sha256"]), media_type="text/plain; charset=utf-8")
        if name.endswith(".json"):
            return FileResponse(self._artifact(found["sha256"]), media_type="application/json")
        return FileResponse(self._artifact(found["sha256"]), media_type="application/octet-stream", filename=name)


def _made(path: str, manifest: Row, samples: list[Row]) -> Response:
    if path == "samples.csv":
        headers = {"content-disposition": f'attachment; filename="{manifest["id"]}-samples.csv"'}
        return Response(samples_csv(samples), media_type="text/csv; charset=utf-8", headers=headers)
    return JSONResponse(manifest if path == "manifest.json" else samples)
