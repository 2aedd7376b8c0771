"""Threads of pages, shared among clients by processor time.

A client has one thread at a time; further calls of it wait. A thread that becomes free goes to the
client that has used the least processor time lately, so that a crowd of one client at a dear page
delays only itself.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, request_response

from swingbot.core.access.rates import Buckets, client_key

T = TypeVar("T")
_OVER: Final = object()


class PiecesResponse(StreamingResponse):
    """Sends what `pieces` yields; each piece is computed when the one before was sent."""

    def __init__(self, pieces: Iterator[Any], **more: Any) -> None:
        super().__init__(pieces, **more)
        self.pieces = pieces


class FairThreads:
    """`spent` has a bucket for each client, of processor seconds."""

    def __init__(
        self, threads: int, spent: Buckets, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._limiter, self._free = anyio.CapacityLimiter(threads), threads
        self._spent, self._now = spent, now
        self._running: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def run(self, client: str, call: Callable[..., T], *args: object) -> T:
        """Call in a thread when it is the turn of `client`, and charge what the call takes."""
        await self._turn(client)
        seconds = [0.0]
        try:
            return await to_thread.run_sync(_timed, seconds, call, *args, limiter=self._limiter)
        finally:
            self._spent.charge(client, seconds[0], self._now())
            self._end(client)

    async def each(self, client: str, pieces: Iterator[T]) -> AsyncIterator[T]:
        """Yield the pieces; each has a turn of its own, so a slow reader keeps no thread."""
        while (piece := await self.run(client, next, pieces, _OVER)) is not _OVER:
            yield piece

    async def _turn(self, client: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._start()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.get(client, deque()).remove(turn)
                if not self._waiting[client]:
                    del self._waiting[client]
            else:  # it had just begun
                self._end(client)
            raise

    def _end(self, client: str) -> None:
        self._running.remove(client)
        self._free += 1
        if client in self._waiting:  # behind those that used as little
            self._waiting[client] = self._waiting.pop(client)
        self._start()

    def _start(self) -> None:
        """Begin as many turns as there are free threads, those of the thriftiest clients first."""
        while self._free and (ready := [c for c in self._waiting if c not in self._running]):
            client = min(ready, key=lambda one: self._spent.debt(one, self._now()))
            turns = self._waiting[client]
            turn = turns.popleft()
            if not turns:
                del self._waiting[client]
            if not turn.cancelled():
                self._running.add(client)
                self._free -= 1
                turn.set_result(None)


def _timed(seconds: list[float], call: Callable[..., T], *args: object) -> T:
    began = time.thread_time()
    try:
        return call(*args)
    finally:
        seconds[0] = time.thread_time() - began


def share(routes: Iterable[BaseRoute], threads: FairThreads) -> None:
    """Let each endpoint that blocks run in `threads`, and its pieces too."""
    for route in routes:
        if isinstance(route, Route) and not inspect.iscoroutinefunction(route.endpoint):
            route.app = request_response(_shared(route.endpoint, threads))


def _shared(endpoint: Callable[[Request], Response], threads: FairThreads) -> Callable[..., Any]:
    async def shared(request: Request) -> Response:
        client = client_key(request.client.host if request.client else "")
        response = await threads.run(client, endpoint, request)
        if isinstance(response, PiecesResponse):
            response.body_iterator = threads.each(client, response.pieces)
        return response

    return shared
