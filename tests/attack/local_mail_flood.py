"""A user of the host delivers mail to the embedded server: much of it, and with forged IDs."""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from swingbot.adapters import maildir
from tests.attack.target import Result, Target, skipped

NAME: Final = "local mail"
WANTED: Final = "no mail of a stranger is stored, and silent connections keep no other client out"
MAILS: Final = 40
CONNECTIONS: Final = 100


def run(target: Target, *, message_id: str = "<r1.first.1@swingbot.localdomain>") -> Result:
    """Send mails of 900 KB with `message_id`; what is stored is counted where `target` has a state
    directory.
    """
    try:
        _connected(target).close()
    except OSError as error:
        return skipped(f"no local mail server at port {target.smtp_port}: {error}")
    before = _stored(target)
    mail = f"Message-ID: {message_id}\r\nSubject: forged\r\n\r\n{'x' * 70}\r\n".encode()
    large = mail + b"x" * 70 * 12_000
    tries: dict[str, Callable[[smtplib.SMTP], object]] = {
        "as it is": lambda client: client.sendmail("bot@example.org", ["dev@example.org"], mail),
        "large": lambda client: client.sendmail("bot@example.org", ["dev@example.org"], large),
        "with a password": lambda client: client.login("swingbot", "swingbot"),
        "without a sender": lambda client: client.data(mail),
    }
    taken = [name for name in list(tries) * (MAILS // len(tries)) if _taken(target, tries[name])]
    greeted = False
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(_connected(target))
        with (
            suppress(OSError, smtplib.SMTPException),
            smtplib.SMTP("127.0.0.1", target.smtp_port, timeout=10) as client,
        ):
            greeted = client.noop()[0] == 250
    stored = _stored(target) - before
    return Result(
        held=not taken and not stored and greeted,
        line=f"{MAILS} tries: {len(taken)} mails taken, {stored} stored;"
        f" answered beside {CONNECTIONS} silent connections: {greeted}",
    )


def _connected(target: Target) -> socket.socket:
    return socket.create_connection(("127.0.0.1", target.smtp_port), timeout=10)


def _stored(target: Target) -> int:
    return len(list(maildir.files(target.state / "maildir"))) if target.state is not None else 0


def _taken(target: Target, attempt: Callable[[smtplib.SMTP], object]) -> bool:
    """Whether the server accepted what `attempt` does."""
    try:
        with smtplib.SMTP("127.0.0.1", target.smtp_port, timeout=10) as client:
            attempt(client)
    except (OSError, smtplib.SMTPException):
        return False
    return True
