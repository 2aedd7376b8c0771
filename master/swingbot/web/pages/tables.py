"""`/report/r4/lkp.txt`, `/experiment/e3/table.csv`: numbers as printed by `swingbot show`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.service.ports import RequestError

from ..http.csv_attachment import csv_attachment
from ..ports import Connection, Engine

Printed = Callable[[Connection, str, str], str]
_KINDS: Final = (*ids.TABLES, "bisection", "incident", "report")


def routes(engine: Engine, printed: Printed, forms: Collection[str]) -> list[Route]:
    """Tables in text `forms`, and as a CSV file.

    `printed` returns the text of an id in one of the `forms`. It raises RequestError for an object
    without numbers.
    """

    def text_of(request: Request, form: str) -> str:
        kind, id = (request.path_params[name] for name in ("kind", "id"))
        if kind not in _KINDS:
            raise HTTPException(404, f"Kinds with tables are {', '.join(_KINDS)}.")
        if form not in forms:
            names = ", ".join(f"{name}.txt" for name in forms)
            raise HTTPException(404, f"Tables are {names}.")
        ids.read(id, kind)
        try:
            with engine.connect() as conn:
                return printed(conn, id, form)
        except RequestError as error:
            raise HTTPException(404, f"{error}") from error

    def table(request: Request) -> Response:
        text = text_of(request, request.path_params["form"])
        return PlainTextResponse(text, headers={"cache-control": "no-cache"})

    def spreadsheet(request: Request) -> Response:
        return csv_attachment(request.path_params["id"], text_of(request, "csv"))

    return [
        Route("/{kind}/{id}/{form}.txt", table),
        Route("/{kind}/{id}/table.csv", spreadsheet),
    ]
