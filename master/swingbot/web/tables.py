"""`/report/r4/lkp.txt`, `/experiment/e3/table.csv`: numbers as `swingbot show --format` prints them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.service.ports import RequestError

from .ports import Connection, Engine

Printed = Callable[[Connection, str, str], str]


def routes(engine: Engine, printed: Printed, forms: Mapping[str, Collection[str]]) -> list[Route]:
    """The forms of each kind as text, and an experiment's table as a CSV file.

    `printed` gives the text of an id in one of its kind's `forms`. It raises RequestError for what
    has no numbers.
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
            raise HTTPException(404, f"There are tables of {', '.join(forms)}.")
        if form not in forms[kind]:
            names = ", ".join(f"{name}.txt" for name in forms[kind])
            raise HTTPException(404, f"Tables of this kind are {names}.")
        text = text_of(kind, request.path_params["id"], form)
        return PlainTextResponse(text, headers={"cache-control": "no-cache"})

    def spreadsheet(request: Request) -> Response:
        id = ids.show("experiment", ids.read(request.path_params["id"], "experiment")[1])
        text = text_of("experiment", id, "csv")
        headers = {
            "cache-control": "no-cache",
            "content-disposition": f'attachment; filename="{id}.csv"',
        }
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    return [
        Route("/{kind}/{id}/{form}.txt", table),
        Route("/experiment/{id}/table.csv", spreadsheet),
    ]
