"""Large pages wait in an unlinked file, not in memory, for clients that read them slowly."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Final

import anyio
from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SPOOL_BYTES: Final = 256 << 10  # smaller bodies stay in memory
_PIECE: Final = 64 << 10
_THREADS: Final = 4


class SpooledBodies:
    """Takes a whole body from the application at once, and sends it when that has ended.

    The application's own copy is free by then. Streamed bodies pass unchanged. Files are made in
    `directory`; where they cannot be written, the body is sent from memory.
    """

    def __init__(self, app: ASGIApp, directory: Path) -> None:
        self._app, self._directory = app, directory
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        spooled: list[IO[bytes]] = []

        async def spool(message: Message) -> None:
            body = message.get("body", b"")
            if len(body) > SPOOL_BYTES and not message.get("more_body", False):
                try:
                    spooled.append(
                        await to_thread.run_sync(self._store, body, limiter=self._threads)
                    )
                    return
                except OSError:
                    pass  # the disk is full; memory remains
            await send(message)

        try:
            await self._app(scope, receive, spool)
            for file in spooled:
                await self._send(file, send)
        finally:
            for file in spooled:
                file.close()

    def _store(self, body: bytes) -> IO[bytes]:
        file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115  # outlives this call
        try:
            file.write(body)
            file.seek(0)
        except OSError:
            file.close()
            raise
        return file

    async def _send(self, file: IO[bytes], send: Send) -> None:
        while piece := await to_thread.run_sync(file.read, _PIECE, limiter=self._threads):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
