"""The HTTP server: limits on heads and connections, and trusted proxies."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0  # timeout for the head of a request
STALL_SECONDS: Final = 60.0  # timeout for a client that reads none of the response
HEAD_BYTES: Final = 32 << 10
STOP_SECONDS: Final = (
    4  # after SIGTERM, for responses in progress; workers repeat interrupted uploads
)
IDLE_SECONDS: Final = 15  # timeout of an idle connection


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 by h11, with timeouts.

    A head that does not arrive in time and a response that is not read end the connection;
    uvicorn itself waits forever.
    """

    _timer: asyncio.TimerHandle | None = None
    _look_again: asyncio.TimerHandle | None = None
    _stuck: bool = False  # at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._watch()
        self._look()

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
        self._look_again = self.loop.call_later(STALL_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        if self._look_again is not None:
            self._look_again.cancel()
        super().connection_lost(exc)

    def _waits_for_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._waits_for_head():
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._expire)

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
        http=ImpatientProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies.strip()),
        forwarded_allow_ips=proxies,
        limit_concurrency=connections,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        **more,
    )
