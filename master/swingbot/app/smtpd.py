"""The embedded mail server: delivers every message to the Maildir and never relays.

By default it accepts mail only from this machine. A duplicate message is delivered twice, so that
it is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiosmtpd.smtp import SMTP, Envelope, Session

from swingbot.adapters import maildir
from swingbot.adapters.part_heartbeat import PartHeartbeat, beat_forever

if TYPE_CHECKING:
    from swingbot.app.settings import Settings

HOST = "127.0.0.1"
LARGEST_MAIL = 1024 * 1024  # bytes; swingbot's own mails are below 10 KB
log = logging.getLogger(__name__)


class Deliver:
    """Handles DATA: the message is on disk, or the client must retry later."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = (
            envelope.content
            if isinstance(envelope.content, bytes)
            else (envelope.content or "").encode()
        )
        try:
            letter = await asyncio.to_thread(maildir.deliver, self._path, content)
        except OSError as error:
            log.error("mail not delivered to %s: %s; the sender will retry", self._path, error)
            return f"451 cannot store mail now: {error.strerror}"
        log.info("delivered %s for %s", letter.name, ", ".join(envelope.rcpt_tos))
        return "250 delivered"


async def run(path: Path, port: int, stop: asyncio.Event, host: str = HOST) -> None:
    """Serve on `host`:`port` until `stop` is set. Raises OSError if the port is in use."""
    factory = partial(
        SMTP,
        Deliver(path),
        data_size_limit=LARGEST_MAIL,
        hostname="swingbot.localdomain",
        ident="swingbot",
    )
    server = await asyncio.get_running_loop().create_server(factory, host, port)
    async with server:
        log.info("mail for %s:%d goes to %s", host, port, path)
        await stop.wait()


async def _until_signal(path: Path, port: int, host: str, heart: PartHeartbeat) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    beats = asyncio.create_task(beat_forever(heart))
    try:
        await run(path, port, stop, host)
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)


def serve(settings: Settings, host: str = HOST, port: int | None = None) -> None:
    """Run the mail server until SIGTERM or SIGINT. Raises OSError if the port is in use."""
    heart = PartHeartbeat(settings.state, "smtpd")
    asyncio.run(_until_signal(settings.maildir, port or settings.smtp_port, host, heart))
