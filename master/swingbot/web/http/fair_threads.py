"""Threads of pages, acts, kits and planning, shared among clients by processor time.

A client has one thread of each pool at a time; further calls of it wait. All pools charge the same
budget. A thread that becomes free goes to the client that used the least processor time recently,
so many requests of one client for an expensive page delay only that client.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio
from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, request_response

from swingbot.core.access.rates import Buckets, client_key

# Each may hold two connections to the database; those that find none in the pool wait for one.
PAGE_THREADS: Final = 8

# Key of the threads in the scope of a request.
THREADS: Final = "swingbot.threads"

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
            self.charge(client, taken)
            self._end(whose)

    def charge(self, client: str, seconds: float) -> None:
        """Let `client` pay for processor time that it took elsewhere too."""
        self._spent.charge(client, seconds, self._now())

    def wait(self, client: str) -> float:
        """Seconds until `client` has paid enough to be served; 0.0: it may ask."""
        return self._spent.wait(client, self._now(), 0.0)

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


class Charged(Awaitable[T]):
    """What the coroutine takes on the event loop; `charge` gets the processor seconds of each step.

    Its threads and the tasks that it starts are not included.
    """

    def __init__(
        self,
        coroutine: Awaitable[T],
        charge: Callable[[float], None],
        seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._coroutine, self._charge, self._seconds = coroutine, charge, seconds

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._coroutine.__await__()
        step: Callable[..., Any] = steps.send
        given: Any = None
        while True:
            began = self._seconds()
            try:
                waits_for = step(given)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self._charge(self._seconds() - began)
            try:
                step, given = steps.send, (yield waits_for)
            except BaseException as error:  # a cancelled task
                step, given = steps.throw, error


def client_of(request: HTTPConnection) -> str:
    """Key that identifies a client; behind a trusted proxy, the address that the proxy gives."""
    return client_key(request.client.host if request.client else "")


async def in_turn(request: HTTPConnection, call: Callable[..., T], *args: object) -> T:
    """Call in a thread of the pages when it is the turn of the client, and charge it.

    An application without request limits has no such threads and charges no client.
    """
    threads: FairThreads | None = request.scope.get(THREADS)
    if threads is None:
        return await run_in_threadpool(call, *args)
    return await threads.run(client_of(request), call, *args)


def in_turns(request: HTTPConnection, response: Response) -> Response:
    """Return the response; each of its pieces is made `in_turn`."""
    threads: FairThreads | None = request.scope.get(THREADS)
    if threads is not None and isinstance(response, PiecesResponse):
        response.body_iterator = threads.each(client_of(request), response.pieces)
    return response


def share(routes: Iterable[BaseRoute]) -> None:
    """Let each endpoint that blocks run in the threads of the pages, and its pieces too."""
    for route in routes:
        if isinstance(route, Route) and not inspect.iscoroutinefunction(route.endpoint):
            route.app = request_response(_shared(route.endpoint))


def _shared(endpoint: Callable[[Request], Response]) -> Callable[..., Any]:
    async def shared(request: Request) -> Response:
        return in_turns(request, await in_turn(request, endpoint, request))

    return shared
