"""`/report/r4/lkp.txt`, `/experiment/e3/table.csv`: numbers as printed by `swingbot show`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from itertools import chain

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.service.ports import RequestError

from ..http.csv_attachment import CSV, csv_headers
from ..http.fair_threads import PiecesResponse
from ..ports import Connection, Engine

Shown = Callable[..., str]
Printed = Callable[[Connection, str, str], str]
CsvPieces = Callable[[Callable[[], AbstractContextManager[Connection]], str], Iterator[str]]


def routes(
    engine: Engine, shown: Shown, printed: Printed, csv_pieces: CsvPieces, forms: Collection[str]
) -> list[Route]:
    """Tables in text `forms`, and as a CSV file.

    `shown` returns a table as `swingbot show` prints it, `printed` the text of an id in one of the
    `forms`, `csv_pieces` the lines of its CSV. They raise RequestError for an object without
    numbers.
    """

    def id_of(request: Request) -> str:
        kind, id = (request.path_params[name] for name in ("kind", "id"))
        if kind not in ids.WITH_NUMBERS:
            raise HTTPException(404, f"Kinds with tables are {', '.join(ids.WITH_NUMBERS)}.")
        ids.read(id, kind)
        return str(id)

    def table(request: Request) -> Response:
        id, form = id_of(request), request.path_params["form"]
        if form not in forms:
            names = ", ".join(f"{name}.txt" for name in forms)
            raise HTTPException(404, f"Tables are {names}.")
        try:
            with engine.connect() as conn:
                text = printed(conn, id, form)
        except RequestError as error:
            raise HTTPException(404, f"{error}") from error
        return PlainTextResponse(text, headers={"cache-control": "no-cache"})

    def spreadsheet(request: Request) -> Response:
        id = id_of(request)
        pieces = csv_pieces(engine.connect, id)
        try:
            first = next(pieces)
        except RequestError as error:
            raise HTTPException(404, f"{error}") from error
        return PiecesResponse(chain([first], pieces), media_type=CSV, headers=csv_headers(id))

    def for_terminal(request: Request) -> Response:
        id = id_of(request)
        if request.path_params["kind"] not in ids.TABLES:
            raise HTTPException(404, f"Kinds with this text are {', '.join(ids.TABLES)}.")
        with engine.connect() as conn:
            text = shown(conn, id, counters="counters" in request.query_params)
        return PlainTextResponse(text, headers={"cache-control": "no-cache"})

    return [
        Route("/{kind}/{id}/show.txt", for_terminal),
        Route("/{kind}/{id}/{form}.txt", table),
        Route("/{kind}/{id}/table.csv", spreadsheet),
    ]
