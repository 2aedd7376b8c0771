"""Threads of pages, kits and planning, shared among clients by processor time.

A client has one thread of each pool at a time; further calls of it wait. All pools charge the same
budget. A thread that becomes free goes to the client that used the least processor time recently,
so many requests of one client for an expensive page delay only that client.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, request_response

from swingbot.core.access.rates import Buckets, client_key

# Each may hold two connections to the database; those that find none in the pool wait for one.
PAGE_THREADS: Final = 8

T = TypeVar("T")
_OVER: Final = object()


class PiecesResponse(StreamingResponse):
    """Sends what `pieces` yields; each piece is computed when the one before was sent."""

    def __init__(self, pieces: Iterator[Any], **more: Any) -> None:
        super().__init__(pieces, **more)
        self.pieces = pieces


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    client: str
    begun: asyncio.Future[None]


class FairThreads:
    """`spent` has a bucket for each client, of processor seconds; `seconds` returns those that the
    calling thread took until now.
    """

    def __init__(
        self,
        threads: int,
        spent: Buckets,
        now: Callable[[], float] = time.monotonic,
        seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._limiter, self._free = anyio.CapacityLimiter(threads), threads
        self._spent, self._now, self._seconds = spent, now, seconds
        self._running: set[str] = set()
        self._waiting: dict[str, deque[_Turn]] = {}

    async def run(
        self, client: str, call: Callable[..., T], *args: object, person: str | None = None
    ) -> T:
        """Call in a thread when it is the turn of `client`, and charge what the call takes.

        With `person`, the calls of a person, not of a client, follow each other.
        """
        whose = client if person is None else person
        await self._turn(client, whose)
        taken = 0.0

        def timed() -> T:
            nonlocal taken
            began = self._seconds()
            try:
                return call(*args)
            finally:
                taken = self._seconds() - began

        try:
            return await to_thread.run_sync(timed, limiter=self._limiter)
        finally:
            self._spent.charge(client, taken, self._now())
            self._end(whose)

    async def each(self, client: str, pieces: Iterator[T]) -> AsyncIterator[T]:
        """Yield the pieces; each has a turn of its own, so a slow reader keeps no thread."""
        while (piece := await self.run(client, next, pieces, _OVER)) is not _OVER:
            yield piece

    async def _turn(self, client: str, whose: str) -> None:
        turn = _Turn(client, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(whose, deque()).append(turn)
        self._start()
        try:
            await turn.begun
        except asyncio.CancelledError:
            if not turn.begun.cancelled():  # it had just begun
                self._end(whose)
            elif turn in (turns := self._waiting.get(whose, deque())):  # not passed over yet
                turns.remove(turn)
                if not turns:
                    del self._waiting[whose]
            raise

    def _end(self, whose: str) -> None:
        self._running.remove(whose)
        self._free += 1
        if whose in self._waiting:  # behind those that used as little
            self._waiting[whose] = self._waiting.pop(whose)
        self._start()

    def _start(self) -> None:
        """Start a turn on each free thread, for the clients with the least processor time first."""
        while self._free and (ready := [w for w in self._waiting if w not in self._running]):
            whose = min(ready, key=self._debt)
            turns = self._waiting[whose]
            turn = turns.popleft()
            if not turns:
                del self._waiting[whose]
            if not turn.begun.cancelled():
                self._running.add(whose)
                self._free -= 1
                turn.begun.set_result(None)

    def _debt(self, whose: str) -> float:
        return self._spent.debt(self._waiting[whose][0].client, self._now())


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
