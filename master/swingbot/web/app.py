"""The web application (Starlette): pages, JSON, plots and raw results. Read-only.

Everything is rendered on the server. Pages are complete without scripts, and the headers allow only
those of `static/`: text from a kernel, a patch or a mail is shown as text, whatever it contains.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swingbot.core.model.cursor import BadCursor
from swingbot.core.model.document_version import HEADER, VERSION
from swingbot.core.model.ids import BadId
from swingbot.core.model.lookup import NotFound
from swingbot.service.ports import RequestError
from swingbot.service.visible import NotLimited

from .http.error_response import failure
from .http.fair_threads import PAGE_THREADS
from .http.render import Renderer
from .http.snapshot_reader import SnapshotReader
from .pages.feeds import Feeds
from .pages.kinds import Pages
from .pages.person import PersonPages
from .pages.posted import PostedCommits
from .pages.raw import RawPages
from .pages.reproduction import Kits
from .pages.search import SearchPages
from .pages.table import TablePages
from .ports import (
    DatabaseAway,
    DatabaseBusy,
    Engine,
    PageSettings,
    ReadModels,
    StoredFiles,
)

STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    HEADER: str(VERSION),
}


class SafeHeaders:
    """Adds the headers above to every response that does not set its own.

    What was asked for with a token or a session is for that client alone. 401 says how to
    authenticate (RFC 9110, section 15.5.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        private = not {"authorization", "cookie"}.isdisjoint(Headers(scope=scope))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if message["status"] == HTTPStatus.UNAUTHORIZED:
                    headers.setdefault("www-authenticate", "Bearer")
                if private:
                    rules = headers.get("cache-control", "no-cache").split(", ")
                    rules = ["private", *(rule for rule in rules if rule != "public")]
                    headers["cache-control"] = ", ".join(rules)
            await send(message)

        await self._app(scope, receive, with_headers)


def make_app(
    settings: PageSettings,
    engine: Engine,
    read: ReadModels,
    stored: StoredFiles,
    extra_routes: Sequence[BaseRoute] = (),
    unit: Callable[[str], str | None] = lambda metric: None,
    kits: Kits | None = None,
) -> Starlette:
    """Return the application, without /healthz, /metrics and what changes anything.

    `read` is the module `swingbot_db.read`. `extra_routes` come first. `unit` returns the unit of a
    metric. `kits` makes boots reproducible elsewhere.
    """
    source, renderer = SnapshotReader(engine, read), Renderer(settings)
    pages = Pages(source, renderer, stored, kits)
    raw = RawPages(source, renderer, stored.open, unit)
    routes: list[BaseRoute] = [
        *extra_routes,
        *TablePages(source, renderer, stored.kernels, kits=kits is not None).routes(),
        *Feeds(source, settings.web_url).routes(),
        *SearchPages(source, renderer).routes(),
        *PersonPages(source, renderer).routes(),
        *PostedCommits(source).routes(),
        Route("/", pages.overview),
        Route("/status.json", pages.overview),
        Route("/robots.txt", _robots),
        Route("/favicon.ico", _icon),
        Mount("/static", StaticFiles(directory=STATIC), name="static"),
        Route("/raw/{id}/{path:path}", raw.file),
        Route("/raw/{id}", raw.listing),
        Route("/plot/{id}/history.svg", pages.history_plot),
        Route("/plot/{id}.svg", pages.bisection_plot),
        Route("/variant/{id}", pages.variant),
        Route("/{kind}/{id}", pages.one),
        Route("/{plural}", pages.listing),
    ]
    handlers = {
        NotFound: _failure(renderer, HTTPStatus.NOT_FOUND),
        BadId: _failure(renderer, HTTPStatus.BAD_REQUEST),
        BadCursor: _failure(renderer, HTTPStatus.BAD_REQUEST),
        RequestError: _failure(renderer, HTTPStatus.BAD_REQUEST),
        NotLimited: _failure(renderer, HTTPStatus.SERVICE_UNAVAILABLE),
        DatabaseAway: _failure(
            renderer,
            HTTPStatus.SERVICE_UNAVAILABLE,
            "The database is temporarily unavailable. Try again in a moment.",
        ),
        DatabaseBusy: _failure(
            renderer,
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Too many pages are being read. Try again in a moment.",
        ),
        HTTPException: _failure(renderer, None),
        Exception: _failure(
            renderer,
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "This page could not be rendered. This is a bug in swingbot; see its log for details.",
        ),
    }
    app = Starlette(
        routes=routes,
        middleware=[Middleware(SafeHeaders)],
        exception_handlers=handlers,
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False  # it redirects to whatever host the request names
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = PAGE_THREADS
    yield


def _failure(
    renderer: Renderer, status: HTTPStatus | None, sentence: str | None = None
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return a handler that answers with one sentence: `sentence`, or the exception's message."""

    async def handle(request: Request, error: Exception) -> Response:
        code, words = (
            (error.status_code, error.detail)
            if isinstance(error, HTTPException)
            else (status or 500, sentence or str(error))
        )
        if isinstance(error, HTTPException) and words == HTTPStatus(code).phrase:
            words = {
                404: "This page does not exist.",
                405: "This page is read-only. Use the command line to make changes.",
            }.get(code, words)
        more = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        # the response to an unexpected error is created outside of the middleware
        return failure(renderer, request, int(code), words, _HEADERS | more)

    return handle


async def _icon(request: Request) -> Response:
    """Where browsers look for the icon of what is not a page: a plot, or JSON."""
    return FileResponse(STATIC / "icon.svg")


async def _robots(request: Request) -> Response:
    return PlainTextResponse("User-agent: *\nDisallow: /\n")
