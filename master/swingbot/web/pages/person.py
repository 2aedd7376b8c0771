"""`/person/NAME`: the requests of a person. One's own page exists even without any."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.model.lookup import NotFound

from ..http.render import READER, Renderer
from ..http.snapshot_reader import SnapshotReader
from ..ports import Row

_TABLES: Final = 50  # of a page
_NOTHING: Final[Row] = dict.fromkeys(
    ("tables", "bisections", "sent", "open_tables", "open_bisections"), ()
)


class PersonPages:
    def __init__(self, source: SnapshotReader, renderer: Renderer) -> None:
        self._source, self._renderer = source, renderer

    def routes(self) -> list[Route]:
        return [Route("/person/{name}", self.page)]

    def page(self, request: Request) -> Response:
        """Raises NotFound, BadCursor."""
        name, after = request.path_params["name"], request.query_params.get("after", "")
        reader = READER.get()
        own = reader is not None and reader.person is not None and reader.person.who == name
        following = None
        try:
            with self._source.reading() as conn:
                document = self._source.read.person(conn, name, _TABLES, after)
            if document["tables"].next:
                query = urlencode({"after": document["tables"].next})
                following = f"/person/{quote(name, safe='')}?{query}"
        except NotFound:
            if not own:
                raise
            document = {"who": name, **_NOTHING}
        return self._renderer.page(
            "person.html",
            refresh=request if document["open_tables"] or document["open_bisections"] else None,
            this=document,
            own=own,
            first=not after,
            following=following,
        )
