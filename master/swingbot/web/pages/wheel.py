"""`/install`: the wheel with which people use this service from their own machines."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.model.lookup import NotFound

from ..http import file_response
from ..http.render import Renderer


class NoWheel(NotFound):
    """The service offers no wheel; the message says why, and what its operator can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    name: str
    content: bytes
    sha256: str


def routes(renderer: Renderer, offered: Callable[[], Wheel], reading: str) -> list[Route]:
    """`offered` raises NoWheel. `reading` is the setting web.read: whether curl needs a token."""

    def show(request: Request) -> Response:
        try:
            wheel, why = offered(), ""
        except NoWheel as error:
            wheel, why = None, str(error)
        return renderer.page("install.html", wheel=wheel, why=why, token=reading == "token")

    def file(request: Request) -> Response:
        wheel, name = offered(), request.path_params["name"]
        if name != wheel.name:
            raise NotFound(f"the wheel is /install/{wheel.name}, not {name[:80]}")
        return file_response.stored(
            request, io.BytesIO(wheel.content), wheel.sha256, "application/zip"
        )

    return [Route("/install", show), Route("/install/{name}", file)]
