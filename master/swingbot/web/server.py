"""The HTTP server under the application: limits on heads and connections, and whose word about a client's address counts."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0  # until the head of a request has come
HEAD_BYTES: Final = 32 << 10
STOP_SECONDS: Final = 4  # after SIGTERM, for what is being answered; workers bring again what was cut
IDLE_SECONDS: Final = 15  # until a connection between two requests is closed


class PatientProtocol(H11Protocol):
    """HTTP/1.1 by h11, but a head that does not come in time ends the connection (uvicorn itself waits for ever)."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
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


def config(app: ASGIApp, *, host: str, port: int, proxies: str, connections: int, **more: Any) -> uvicorn.Config:
    """`proxies`: comma-separated addresses and networks whose X-Forwarded-For and X-Forwarded-Proto are believed; empty: nobody's."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PatientProtocol,
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
