"""Read access: open, or only with a token; set separately for pages, raw data and metrics."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from swingbot.core.access.roles import Person, Role, group_refusal, may
from swingbot.core.model import ids
from swingbot.core.model.lookup import missing
from swingbot.service.visible import VISIBLE, Visible, everything_visible

from ..http.error_response import failure, wants_json
from ..http.fair_threads import in_turn
from ..http.render import READER, Reader, Renderer
from ..ports import DatabaseAway, DatabaseBusy
from .session import Sessions

# Needed to sign in, or to check that the service is up.
_OPEN: Final = ("/login", "/logout", "/healthz", "/robots.txt", "/favicon.ico", "/docs")
# The style of the sign-in page, the documentation, for those who get a mail, and paths for
# workers, which check the token of an attempt.
_OPEN_UNDER: Final = ("/static/", "/docs/", "/attempts/")
_OF_A_TABLE: Final = re.compile(r"/(?:comparison|experiment)/(?P<id>[ce][0-9]{1,18})/")


def takes_page(accept: str) -> bool:
    """Return True if the client is a browser, judged by its Accept header."""
    return "text/html" in accept


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """The settings web.read, web.raw and web.metrics: `open`, `token`, and for metrics `off`."""

    read: str = "open"
    raw: str = "open"
    metrics: str = "open"

    def of(self, method: str, path: str) -> str:
        """Return the setting that applies to `path`."""
        if (
            path in _OPEN
            or path.startswith(_OPEN_UNDER)
            or (method == "PUT" and path.startswith("/artifacts/"))
        ):
            return "open"
        if path == "/metrics":
            return self.metrics
        if (
            path == "/raw"
            or path.startswith(("/raw/", "/artifacts/"))
            or path.rpartition("/")[2] in ("reproduce.tar.gz", "reproduce.json")
        ):
            return "token" if "token" in (self.read, self.raw) else "open"
        return self.read


class ReadAccess:
    """`worker`: whether a request has the token of an attempt; workers fetch kernels with it.

    `by_group`: whether a method and path answer the token of a person that is limited to testbox
    groups, whose requests see only the rows of these. `is_private`: whether the table with an id is
    private to others than the person of this name.
    """

    def __init__(
        self,
        app: ASGIApp,
        renderer: Renderer,
        sessions: Sessions,
        reading: ReadSettings,
        worker: Callable[[HTTPConnection], bool],
        by_group: Callable[[Person, str, str], bool],
        is_private: Callable[[str, str | None], bool],
    ) -> None:
        self._app, self._renderer, self._sessions, self._reading = (
            app,
            renderer,
            sessions,
            reading,
        )
        self._worker, self._by_group, self._is_private = worker, by_group, is_private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        before = VISIBLE.set(None)
        try:
            refused = (
                await self._refused(HTTPConnection(scope), scope["method"], scope["path"])
                if scope["type"] == "http"
                else None
            )
            if refused is None and scope["type"] == "http":
                refused = await self._for_person(HTTPConnection(scope), scope["method"])
            if refused is None and scope["type"] == "http":
                with everything_visible():
                    READER.set(await self._reader(HTTPConnection(scope), scope["method"]))
            await (refused or self._app)(scope, receive, send)
        finally:
            VISIBLE.reset(before)

    async def _reader(self, request: HTTPConnection, method: str) -> Reader | None:
        """Return who a page greets; None for what is not read as a page."""
        path, query = request.url.path, request.url.query
        if method not in ("GET", "POST") or not takes_page(request.headers.get("accept", "")):
            return None
        person = None
        if self._sessions.given(request):
            with suppress(DatabaseAway, DatabaseBusy):  # the page itself says so
                person = await in_turn(request, self._sessions.signed_in, request)
        return Reader(person=person, here=f"{path}?{query.replace('+', '%20')}" if query else path)

    async def _refused(self, request: HTTPConnection, method: str, path: str) -> Response | None:
        # the list of benchmark metrics
        page = path == "/metrics" and takes_page(request.headers.get("accept", ""))
        takes = self._reading.read if page else self._reading.of(method, path)
        if takes == "open" or (
            takes == "token" and path.startswith("/artifacts/") and self._worker(request)
        ):
            return None
        if takes == "off":
            return failure(self._renderer, request, 404, "Metrics are disabled (web.metrics).")
        try:
            person = await self._sessions.person(request)
        except HTTPException as error:
            return failure(self._renderer, request, error.status_code, error.detail, error.headers)
        if person is not None:
            return self._limited(request, person, method, path)
        # A browser accepts HTML; a program must not mistake the sign-in page for the resource.
        if (
            method == "GET"
            and "text/html" in request.headers.get("accept", "")
            and not wants_json(request)
        ):
            return RedirectResponse(f"/login?next={quote(path)}", status_code=HTTPStatus.SEE_OTHER)
        return failure(
            self._renderer,
            request,
            401,
            "This page requires a token; ask the operator for one.",
        )

    async def _for_person(self, request: HTTPConnection, method: str) -> Response | None:
        """Limit what this request reads to what is public, or private to its person.

        Other requests, and a stream that is read once for all, are refused as if the table that
        they are about did not exist, if it is private to others.
        """
        path = request.url.path
        if VISIBLE.get() is not None or path.startswith(_OPEN_UNDER):
            return None
        name = None
        with suppress(DatabaseAway, DatabaseBusy):  # the page itself says so
            person = await self._sessions.reader(request)
            if person is not None and may(person.role, Role.OPERATOR):
                return None
            name = None if person is None else person.who
        if method in ("GET", "HEAD") and not path.endswith("/progress"):
            VISIBLE.set(Visible(person=name))
            return None
        table = _OF_A_TABLE.match(path)
        if table is None:
            return None
        if await in_turn(request, self._is_private, table["id"], name):
            return failure(self._renderer, request, 404, missing(*ids.read(table["id"])))
        return None

    def _limited(
        self, request: HTTPConnection, person: Person, method: str, path: str
    ) -> Response | None:
        """Limit what this request reads to the groups of its token."""
        if person.groups is None:
            return None
        if not self._by_group(person, method, path):
            return failure(self._renderer, request, 403, group_refusal(person))
        VISIBLE.set(Visible(person=person.who, groups=person.groups, levels=person.levels))
        return None
