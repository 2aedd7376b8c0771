"""Error responses: one sentence on a page, or a problem document (RFC 9457) to programs."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from .render import Renderer

PROBLEM: Final = "application/problem+json"
_BY_PROGRAMS = ("/artifacts/", "/attempts/", "/metrics")


def wants_json(request: HTTPConnection) -> bool:
    """Return True if the client is a program, judged by path, Accept header and content type."""
    if request.url.path.endswith(".json") or request.url.path.startswith(_BY_PROGRAMS):
        return True
    return any(
        request.headers.get(name, "").startswith(("application/json", "text/event-stream"))
        for name in ("accept", "content-type")
    )


def problem(
    status: int, sentence: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return a problem document; `more` are its own members."""
    facts = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": int(status)}
    document = {**facts, "detail": sentence, **more}
    return JSONResponse(document, status, headers, media_type=PROBLEM)


def failure(
    renderer: Renderer,
    request: HTTPConnection,
    status: int,
    sentence: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    if wants_json(request):
        return problem(status, sentence, headers)
    page = renderer.page(
        "error.html",
        status=status,
        phrase=HTTPStatus(status).phrase,
        sentence=sentence,
        code=status,
    )
    page.headers.update(headers or {})
    return page
