"""The HTTP server under the application: limits on heads and connections, and whose word about a client's address counts."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0  # until the head of a request has come
STALL_SECONDS: Final = 60.0  # in which some of an answer must be taken
HEAD_BYTES: Final = 32 << 10
STOP_SECONDS: Final = (
    4  # after SIGTERM, for what is being answered; workers bring again what was cut
)
IDLE_SECONDS: Final = 15  # until a connection between two requests is closed


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 by h11. A head that does not come in time and an answer that is not taken end the connection: uvicorn itself waits for ever."""

    _timer: asyncio.TimerHandle | None = None
    _look_again: asyncio.TimerHandle | None = None
    _stuck: bool = False  # at the last look

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._watch()
        self._look()

    def resume_writing(self) -> None:
        self._stuck = False  # some of the answer was taken
        super().resume_writing()

    def _look(self) -> None:
        """Every now and then: what could not be written, or not be closed, since the last look is given up."""
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
    """`proxies`: comma-separated addresses and networks whose X-Forwarded-For and X-Forwarded-Proto are believed; empty: nobody's."""
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
