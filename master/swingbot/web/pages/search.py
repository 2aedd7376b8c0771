"""`/search?q=`: what matches a few words, and how much more; an id leads to its page at once."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader


class SearchPages:
    def __init__(self, source: SnapshotReader, renderer: Renderer) -> None:
        self._source, self._renderer = source, renderer

    def routes(self) -> list[Route]:
        return [Route("/search", self.show), Route("/search.json", self.show)]

    def show(self, request: Request) -> Response:
        asked = request.query_params
        with self._source.reading() as conn:
            try:
                document = self._source.read.search(
                    conn, asked.get("q", ""), asked.get("kind", ""), asked.get("after", "")
                )
            except ValueError as error:
                raise HTTPException(400, f"{error}") from error
        if is_json(request):
            return JSONResponse(document)
        if one := document["object"]:
            return RedirectResponse(f"/{one['kind']}/{one['id']}", status_code=303)
        return self._renderer.page(
            "search.html",
            this=document,
            query=document["query"],
            kind=asked.get("kind", ""),
        )
