"""The HTTP server: limits on heads and connections, and trusted proxies."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from swingbot.core.access.rates import client_key

from .. import limits
from .event_streams import END
from .waiting import WaitingConnections

STOP_SECONDS: Final = (
    4  # after SIGTERM, for responses in progress; workers repeat interrupted uploads
)
TRIM_SECONDS: Final = 0.05  # delay before surplus connections are closed; their heads are read


class SurplusCloser:
    """Closes surplus connections soon after one was opened."""

    def __init__(self, waiting: WaitingConnections) -> None:
        self.waiting, self._scheduled = waiting, False

    def wait(self, connection: ImpatientProtocol) -> None:
        self.waiting.add(connection.client_key, connection)
        self._schedule(connection)

    def _schedule(self, connection: ImpatientProtocol) -> None:
        if not self._scheduled and self.waiting.crowded(len(connection.connections)):
            self._scheduled = True
            connection.loop.call_later(TRIM_SECONDS, self._trim, connection)

    def _trim(self, connection: ImpatientProtocol) -> None:
        self._scheduled = False
        self.waiting.close_surplus(len(connection.connections))


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 by h11, with timeouts.

    A head that does not arrive in time and a response that is not read end the connection;
    uvicorn itself waits forever.
    """

    client_key: str = ""
    _timer: asyncio.TimerHandle | None = None
    _look_again: asyncio.TimerHandle | None = None
    _stuck: bool = False  # at the last check

    def __init__(self, *given: Any, door: SurplusCloser, **more: Any) -> None:
        super().__init__(*given, **more)
        self._door = door

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.client_key = client_key(self.client[0] if self.client else "")
        self._watch()
        self._look()

    def abort(self) -> None:
        """Close the connection at once, whatever was not sent yet."""
        self.transport.abort()

    def shutdown(self) -> None:
        """End a stream as well, which would go on until its client leaves."""
        super().shutdown()
        end: Any = None if self._waits_for_head() else self.scope.get(END)
        if end is not None:
            end()

    def resume_writing(self) -> None:
        self._stuck = False  # the client read some of the response
        super().resume_writing()

    def _look(self) -> None:
        """Check periodically; abort if nothing was written or closed since the last check."""
        stuck = self.flow.write_paused or self.transport.is_closing()
        if stuck and self._stuck:
            self.transport.abort()
            return
        self._stuck = stuck
        self._look_again = self.loop.call_later(limits.STALL_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        # In pieces that end where a head must have: h11 looks at its size only when it is partial.
        while data and not self.transport.is_closing():
            most = (
                limits.HEAD_BYTES - len(self.conn.trailing_data[0]) if self._waits_for_head() else 0
            )
            piece, data = (data[:most], data[most:]) if most > 0 else (data, b"")
            super().data_received(piece)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._waits_for_head() and not self.transport.is_closing():
            self._door.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._door.waiting.remove(self.client_key, self)
        if self._look_again is not None:
            self._look_again.cancel()
        super().connection_lost(exc)

    def _waits_for_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._waits_for_head():
            self._stop()
            self._door.waiting.remove(self.client_key, self)
        elif self._timer is None:
            self._timer = self.loop.call_later(limits.HEAD_SECONDS, self._expire)
            self._door.wait(self)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self._waits_for_head() and not self.transport.is_closing():
            self.transport.close()


def config(
    app: ASGIApp, *, host: str, port: int, proxies: str, connections: int, **more: Any
) -> uvicorn.Config:
    """`proxies`: trusted proxies, comma-separated addresses and networks; empty: none.

    Their X-Forwarded-For and X-Forwarded-Proto are used.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=functools.partial(  # type: ignore[arg-type]  # called with keywords only
            ImpatientProtocol, door=SurplusCloser(WaitingConnections(connections))
        ),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies.strip()),
        forwarded_allow_ips=proxies,
        h11_max_incomplete_event_size=limits.HEAD_BYTES - 1,
        timeout_keep_alive=limits.IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        **more,
    )
