"""The embedded mail server: delivers every message of the loop to the Maildir and never relays.

It accepts mail only from who knows its key. Otherwise any user of the host could fill the disk, or
deliver a mail with the Message-ID of a report, which the loop would then take for sent. A duplicate
message is delivered twice, so that it is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiosmtpd.smtp import MISSING, SMTP, AuthResult, Envelope, Session

from swingbot.adapters import local_mail, maildir
from swingbot.adapters.part_heartbeat import PartHeartbeat, beat_forever
from swingbot.app import limits
from swingbot.core.limits import MAIL_BYTES

if TYPE_CHECKING:
    from swingbot.app.settings import Settings

HOST = "127.0.0.1"
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


class DeliverOwn(Deliver):
    """Delivers mail of clients that know `key`; the others cannot name a sender."""

    def __init__(self, path: Path, key: bytes) -> None:
        super().__init__(path)
        self._key = key

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 5.7.0 only swingbot itself delivers mail here"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def auth_X__SWINGBOT(self, server: SMTP, args: list[str]) -> AuthResult:
        asked = local_mail.challenge()
        answer = await server.challenge_auth(asked)
        if answer is MISSING:  # the client has its error already
            return AuthResult(success=False, handled=True)
        known = isinstance(answer, bytes) and local_mail.proves(self._key, asked, answer)
        return AuthResult(success=known, handled=False)


class LocalServer(SMTP):
    """Limits the connections of clients that have not proved that they know the key."""

    _strangers: dict[LocalServer, None]

    def __init__(self, strangers: dict[LocalServer, None], handler: object, **options: Any) -> None:
        super().__init__(handler, **options)
        self._strangers = strangers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._strangers[self] = None  # a dict keeps their order
        for other in list(self._strangers):
            if other.session is not None and other.session.authenticated:
                self._strangers.pop(other)
        while len(self._strangers) > limits.SMTP_STRANGERS:
            oldest = next(iter(self._strangers))
            self._strangers.pop(oldest)
            if isinstance(oldest.transport, asyncio.WriteTransport):
                oldest.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._strangers.pop(self, None)
        super().connection_lost(error)


async def run(path: Path, port: int, stop: asyncio.Event, host: str, key: bytes) -> None:
    """Serve on `host`:`port` until `stop` is set. Raises OSError if the port is in use."""
    factory = partial(
        LocalServer,
        {},
        DeliverOwn(path, key),
        data_size_limit=MAIL_BYTES,
        hostname="swingbot.localdomain",
        ident="swingbot",
        timeout=limits.SMTP_IDLE_SECONDS,
        auth_require_tls=False,  # the key itself is never sent
        auth_exclude_mechanism=("LOGIN", "PLAIN"),
    )
    server = await asyncio.get_running_loop().create_server(factory, host, port)
    async with server:
        log.info("mail for %s:%d goes to %s", host, port, path)
        await stop.wait()


async def _until_signal(path: Path, port: int, host: str, key: bytes, heart: PartHeartbeat) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    beats = asyncio.create_task(beat_forever(heart))
    try:
        await run(path, port, stop, host, key)
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)


def serve(settings: Settings, host: str = HOST, port: int | None = None) -> None:
    """Run the mail server until SIGTERM or SIGINT. Raises OSError if the port is in use or the key
    cannot be read.
    """
    key = local_mail.make_key(settings.mail_key)
    heart = PartHeartbeat(settings.state, "smtpd")
    asyncio.run(_until_signal(settings.maildir, port or settings.smtp_port, host, key, heart))
