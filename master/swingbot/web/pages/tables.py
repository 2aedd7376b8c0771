"""`/report/r4/lkp.txt`, `/experiment/e3/table.csv`: numbers as printed by `swingbot show`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.service.ports import RequestError

from ..http.csv_attachment import csv_attachment
from ..ports import Connection, Engine

Printed = Callable[[Connection, str, str], str]


def routes(engine: Engine, printed: Printed, forms: Mapping[str, Collection[str]]) -> list[Route]:
    """Tables of each kind in text `forms`, and an experiment's table as a CSV file.

    `printed` returns the text of an id in one of the `forms` of its kind. It raises RequestError
    for an object without numbers.
    """

    def text_of(kind: str, id: str, form: str) -> str:
        if kind == "experiment":
            ids.read(id, kind)
        try:
            with engine.connect() as conn:
                return printed(conn, id, form)
        except RequestError as error:
            raise HTTPException(404, f"{error}") from error

    def table(request: Request) -> Response:
        kind, form = request.path_params["kind"], request.path_params["form"]
        if kind not in forms:
            raise HTTPException(404, f"Kinds with tables are {', '.join(forms)}.")
        if form not in forms[kind]:
            names = ", ".join(f"{name}.txt" for name in forms[kind])
            raise HTTPException(404, f"Tables of this kind are {names}.")
        text = text_of(kind, request.path_params["id"], form)
        return PlainTextResponse(text, headers={"cache-control": "no-cache"})

    def spreadsheet(request: Request) -> Response:
        id = ids.show("experiment", ids.read(request.path_params["id"], "experiment")[1])
        return csv_attachment(id, text_of("experiment", id, "csv"))

    return [
        Route("/{kind}/{id}/{form}.txt", table),
        Route("/experiment/{id}/table.csv", spreadsheet),
    ]
