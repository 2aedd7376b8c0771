"""`/raw/x12/order.json`: the order behind a boot, so that anyone can repeat the boot by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..ports import Connection, Engine


def routes(engine: Engine, load: Callable[[Connection, str], dict[str, Any]]) -> list[Route]:
    """Return the route; `load` is `swingbot_db.read.boot_order`."""

    def answer(request: Request) -> Response:
        with engine.connect() as conn:
            return JSONResponse(load(conn, request.path_params["id"]))

    return [Route("/raw/{id}/order.json", answer)]
