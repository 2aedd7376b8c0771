"""Server-sent events (WHATWG HTML, section 9.2) about objects that change.

An object is read once a second for all who follow it, however many they are: a stream takes a
place, but no thread and no connection to the database. An event is a whole state with a digest as
its id, so one that reconnects with `Last-Event-ID` gets what changed meanwhile, also from a service
that was started again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from .. import limits
from ..ports import DatabaseError
from .fair_threads import FairThreads, client_of, in_turn

HEARTBEAT_SECONDS: Final = 15.0  # until a comment, so that proxies leave a silent stream open
# Then the client reconnects, and its token, which may have been revoked, is checked again.
STREAM_SECONDS: Final = 600.0
READ_SECONDS: Final = 1.0  # pause between two rounds of reading
PAUSES: Final = 9  # the pause is at least this many times the duration of the round before it
# Key of the call that ends a stream in the scope of its request; `server.py` calls it.
END: Final = "swingbot.end"
_TYPE: Final = "text/event-stream"
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEvent:
    """A state: `data` is a line of JSON; nothing follows the `last` one."""

    id: str
    data: str
    last: bool

    def __str__(self) -> str:
        return f"id: {self.id}\ndata: {self.data}\n\n"


@dataclass(slots=True, eq=False)
class _Stream:
    client: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def end(self) -> None:
        self.ended = True
        self.woken.set()


@dataclass(slots=True, eq=False)
class _Topic:
    """An object that is followed, and its latest state."""

    event: StateEvent
    streams: list[_Stream] = field(default_factory=list)

    def tell(self, event: StateEvent) -> None:
        if event.id != self.event.id:
            self.event = event
            for stream in self.streams:
                stream.woken.set()

    def end(self) -> None:
        for stream in self.streams:
            stream.end()


class EventStreams:
    """`read` returns the state of an object. It runs in one of `threads`, which charge it to a
    client that follows the object.
    """

    def __init__(self, read: Callable[[str], StateEvent], threads: FairThreads) -> None:
        self._read, self._threads = read, threads
        self._topics: dict[str, _Topic] = {}
        self._people: Counter[str] = Counter()  # streams of each
        self._reading: asyncio.Task[None] | None = None

    async def answer(self, request: Request, id: str, who: str | None) -> Response:
        """Return a stream about `id`; 204, which ends reconnecting, where nothing follows what the
        client has seen.

        `who` is the person, or None. Raises what `read` raises, and HTTPException 429 once the
        response begins.
        """
        topic = self._topics.get(id)
        event = topic.event if topic else await in_turn(request, self._read, id)
        seen = request.headers.get("last-event-id", "")
        if event.last and event.id == seen:
            return Response(status_code=204)
        if request.method == "HEAD":
            return Response(media_type=_TYPE)
        return _EventsResponse(self, id, event, seen, who or client_of(request))

    @contextmanager
    def following(self, id: str, event: StateEvent, whose: str, client: str) -> Iterator[_Stream]:
        """Yield a new stream about `id`. Raises HTTPException 429."""
        if self._people[whose] >= limits.PERSON_STREAMS:
            raise _too_many(f"You follow {self._people[whose]} tables and bisections")
        if self._people.total() >= limits.STREAMS:
            raise _too_many(f"{self._people.total()} streams are open")
        topic = self._topics.setdefault(id, _Topic(event))
        stream = _Stream(client)
        topic.streams.append(stream)
        self._people[whose] += 1
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_on())
        try:
            yield stream
        finally:
            topic.streams.remove(stream)
            if not topic.streams:
                del self._topics[id]
            self._people -= Counter((whose,))

    async def events(self, id: str, stream: _Stream, seen: str) -> AsyncIterator[str]:
        """Yield the states of `id` except the one that was `seen`, and comments between them."""
        topic, loop = self._topics[id], asyncio.get_running_loop()
        end = loop.time() + STREAM_SECONDS
        text = ":\n\n"  # the first bytes say that the stream works
        while True:
            stream.woken.clear()
            if (event := topic.event).id != seen:
                seen, text = event.id, str(event)
            if text:
                yield text
            if event.last or stream.ended or loop.time() > end:
                return
            text = ""
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await stream.woken.wait()
            except TimeoutError:
                text = ":\n\n"

    async def _read_on(self) -> None:
        """Read what is followed until nothing is. If that fails, the streams about it end: their
        clients reconnect, and get the reason.
        """
        loop = asyncio.get_running_loop()
        while self._topics:
            begun = loop.time()
            for id, topic in list(self._topics.items()):
                if not topic.streams:
                    continue
                try:
                    topic.tell(await self._threads.run(topic.streams[0].client, self._read, id))
                except DatabaseError:
                    topic.end()
                except Exception:
                    _log.exception("reading %s failed", id)
                    topic.end()
            took = loop.time() - begun
            await asyncio.sleep(max(READ_SECONDS, PAUSES * took))


class _EventsResponse(Response):
    """A stream from when it is sent until it ends: one that is never sent takes no place."""

    def __init__(
        self, streams: EventStreams, id: str, event: StateEvent, seen: str, whose: str
    ) -> None:
        super().__init__()
        self._streams, self._id, self._event, self._seen = streams, id, event, seen
        self._whose = whose

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = client_of(Request(scope))
        with self._streams.following(self._id, self._event, self._whose, client) as stream:
            scope[END] = stream.end
            events = StreamingResponse(
                self._streams.events(self._id, stream, self._seen),
                media_type=_TYPE,
                headers={"cache-control": "no-store", "x-accel-buffering": "no"},
            )
            await events(scope, receive, send)


def _too_many(what: str) -> HTTPException:
    return HTTPException(
        429,
        f"{what}; close one, or ask for progress.json from time to time.",
        headers={"retry-after": "60"},
    )
