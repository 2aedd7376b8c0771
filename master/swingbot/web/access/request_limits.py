"""Limits on processor time, size, duration and concurrency of requests, the same for every client.

This module knows nothing of a request's meaning. `web/access/read_access.py` and the forms decide
what it may do.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swingbot.core.access.rates import UNLIMITED, Rate

from .. import limits
from ..http.error_response import failure
from ..http.fair_threads import THREADS, Charged, FairThreads, client_of
from ..http.render import Renderer

Limit = Callable[[str, str], int]  # method, path -> maximum body size in bytes


def rate_of(per_minute: int) -> Rate:
    """The setting web.write_rate as a token bucket."""
    if not per_minute:
        return UNLIMITED
    return Rate(per_second=per_minute / 60, burst=max(1, per_minute // 4))


def budget_of(seconds_per_minute: float) -> Rate:
    """The setting web.rate, of processor seconds, as a token bucket."""
    if not seconds_per_minute:
        return UNLIMITED
    return Rate(per_second=seconds_per_minute / 60, burst=seconds_per_minute)


class Traffic:
    """Requests of all clients that are not known, for /metrics."""

    def __init__(self, most: int) -> None:
        """`most`: concurrent requests; further ones are answered with 503."""
        self.most, self.open = most, 0
        self.refused: Counter[int] = Counter()  # by status, since the start

    @contextmanager
    def one_more(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


class RequestLimits:
    """`limit` gives the maximum body size for an address, in bytes.

    `known` selects requests that are not counted (workers with a valid token).
    """

    def __init__(
        self,
        app: ASGIApp,
        renderer: Renderer,
        threads: FairThreads,
        limit: Limit,
        known: Callable[[HTTPConnection], bool],
        traffic: Traffic | None = None,
    ) -> None:
        """`threads` work for pages and acts, and charge it to the client; what a request takes on
        the event loop is charged here.

        `traffic` has the maximum number of concurrent requests, and counts them.
        """
        self._app, self._renderer, self._threads = app, renderer, threads
        self._limit, self._known = limit, known
        self._traffic = traffic or Traffic(200)
        self._at_once: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        limit = self._limit(scope["method"], scope["path"])
        known = self._known(request)
        # The health check has a thread and a database connection of its own, and all requests of a
        # second share an answer. It is charged, but a client that shares its address with a heavy
        # reader still gets it.
        counted = not known and scope["path"] != "/healthz"
        refused = self._announced(request, limit)
        if refused is None and not known:
            too_often = self._too_often(request)
            refused = (too_often or self._too_many(request)) if counted else None
        if refused is not None:
            self._traffic.refused[refused.status_code] += 1
            answer = failure(
                self._renderer, request, refused.status_code, refused.detail, refused.headers
            )
            await answer(scope, receive, send)
            return
        with ExitStack() as stack:
            client = client_of(request)
            if counted:
                stack.enter_context(self._traffic.one_more())
                stack.enter_context(_one_more(self._at_once, client))
            if known:
                await self._app(scope, _measured(receive, limit), send)
                return
            scope[THREADS] = self._threads
            await Charged(
                self._app(scope, _measured(receive, limit), send),
                functools.partial(self._threads.charge, client),
            )

    def _too_often(self, request: HTTPConnection) -> HTTPException | None:
        client = client_of(request)
        wait = self._threads.wait(client)
        if wait > 0:
            return HTTPException(
                429,
                "Requests from your address took too much processor time; wait a moment.",
                headers={"retry-after": str(math.ceil(wait))},
            )
        self._threads.charge(client, limits.REQUEST_SECONDS)
        return None

    def _too_many(self, request: HTTPConnection) -> HTTPException | None:
        """Requests that wait for their turn or their reader take places, not processor time.

        A client has at most as many as a share of the free ones, so some are free for others
        (dynamic thresholds, Choudhury and Hahne 1998).
        """
        mine, free = self._at_once[client_of(request)], self._traffic.most - self._traffic.open
        if free <= 0:
            return _wait_for(503, f"{self._traffic.most} requests")
        if mine * limits.PLACES_SHARE >= free:
            return _wait_for(429, f"{mine} requests from your address")
        return None

    def _announced(self, request: HTTPConnection, limit: int) -> HTTPException | None:
        """Refuse a request by its head; the connection is closed, so the body is not read."""
        length = request.headers.get("content-length", "0")
        pieces = "transfer-encoding" in request.headers
        if pieces and "content-length" in request.headers:
            return _malformed(400, "Content-Length and Transfer-Encoding exclude each other.")
        if _head_bytes(request.scope) > limits.HEAD_BYTES:
            return _malformed(
                431, f"The request head exceeds the limit of {limits.HEAD_BYTES} bytes."
            )
        if "\0" in request.scope["path"] or b"\0" in unquote_to_bytes(
            request.scope["query_string"]
        ):
            return _malformed(400, "NUL characters are not allowed in an address.")
        if (length.isdigit() and (len(length) > 18 or int(length) > limit)) or (
            pieces and limit == 0
        ):
            return HTTPException(413, _too_large(limit), headers={"connection": "close"})
        return None


def _wait_for(status: int, what: str) -> HTTPException:
    return HTTPException(
        status, f"{what} are in progress; wait for them to finish.", headers={"retry-after": "1"}
    )


@contextmanager
def _one_more(counter: Counter[str], client: str) -> Iterator[None]:
    counter[client] += 1
    try:
        yield
    finally:
        counter[client] -= 1
        if not counter[client]:
            del counter[client]


def _malformed(status: int, why: str) -> HTTPException:
    return HTTPException(status, why, headers={"connection": "close"})


def _head_bytes(scope: Scope) -> int:
    return (
        len(scope["raw_path"])
        + len(scope["query_string"])
        + sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
    )


def _too_large(limit: int) -> str:
    return (
        f"The request body exceeds the limit of {limit} bytes."
        if limit
        else "This address accepts no request body."
    )


def _measured(receive: Receive, limit: int) -> Receive:
    """Receive the body, up to `limit` bytes, in time. Its reader gets HTTPException 413 or 408."""
    size, whole = 0, False
    end = asyncio.get_running_loop().time() + (
        limits.BODY_SECONDS if limit <= limits.FORM_BYTES else limits.UPLOAD_SECONDS
    )

    async def measured() -> Message:
        nonlocal size, whole
        if whole:
            return await receive()  # waits for a disconnect for as long as the response takes
        try:
            async with asyncio.timeout_at(
                min(end, asyncio.get_running_loop().time() + limits.PIECE_SECONDS)
            ):
                message = await receive()
        except TimeoutError:
            raise HTTPException(
                408, "The request body arrived too slowly.", headers={"connection": "close"}
            ) from None
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > limit:
            raise HTTPException(413, _too_large(limit), headers={"connection": "close"})
        return message

    return measured
