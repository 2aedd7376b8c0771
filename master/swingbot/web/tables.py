"""`/report/r4/lkp.txt`: the numbers of a comparison, bisection, incident or report as `swingbot show --format` prints them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from swingbot.service.ports import RequestError

from .ports import Connection, Engine

KINDS = ("comparison", "bisection", "incident", "report")


def routes(
    engine: Engine, printed: Callable[[Connection, str, str], str], forms: Collection[str]
) -> list[Route]:
    """The one route. `printed` gives the text of an id in one of `forms`; it raises RequestError for what has no numbers."""

    def table(request: Request) -> Response:
        kind, form = request.path_params["kind"], request.path_params["form"]
        if kind not in KINDS or form not in forms:
            raise HTTPException(
                404,
                f"There are tables of {', '.join(KINDS)}, as {', '.join(f'{name}.txt' for name in forms)}.",
            )
        try:
            with engine.connect() as conn:
                return PlainTextResponse(
                    printed(conn, request.path_params["id"], form),
                    headers={"cache-control": "no-cache"},
                )
        except RequestError as error:
            raise HTTPException(404, f"{error}") from error

    return [Route("/{kind}/{id}/{form}.txt", table)]
