"""The embedded mail server in a process of its own, and one in memory, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from swingbot.app.settings import Settings
from swingbot.core.moderation.send_check import SendRules
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.report.send import Sender
from tests.buildbot.ports import free_ports


@dataclass
class MemoryServer:
    """A mail server that accepts everything, and an archive of what was put into it."""

    authoritative: bool = False
    taken: list[tuple[str, ...]] = field(default_factory=list)  # recipients of each mail
    archived: set[str] = field(default_factory=set)  # Message-IDs
    fault: Exception | None = None  # raised instead

    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> dict[str, str]:
        if self.fault is not None:
            raise self.fault
        self.taken.append(tuple(recipients))
        return {}

    def holds(self, message_id: str) -> bool:
        return message_id in self.archived

    def keep(self, message: bytes) -> None:
        """Keep nothing: a test says what has arrived."""


def memory_sender(
    begin: OpenTransaction, server: MemoryServer | None = None, rules: SendRules | None = None
) -> Sender:
    server = server or MemoryServer()
    return Sender(
        begin=begin,
        turn=lambda: nullcontext(True),
        mailer=server,
        archive=server,
        rules=rules or SendRules(),
    )


@contextmanager
def running_smtpd(settings: Settings) -> Iterator[None]:
    """`swingbot smtpd` on the settings' port, until the block ends."""
    environment = {
        **os.environ,
        "SWINGBOT_PATHS_STATE": str(settings.state),
        "SWINGBOT_WEB_PORT": str(settings.web.port),
    }
    server = subprocess.Popen([sys.executable, "-m", "swingbot.app.cli", "smtpd"], env=environment)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", settings.smtp_port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, "the mail server ended at once"
                time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait(60)


def brain_environment(state: Path, db_url: str) -> dict[str, str]:
    """Settings of a brain that mails at once, on free ports; the local mail server's is three
    above the web service's.
    """
    return {
        "SWINGBOT_PATHS_STATE": str(state),
        "SWINGBOT_DB_URL": db_url,
        "SWINGBOT_WEB_PORT": str(free_ports(4)),
        "SWINGBOT_MAIL_RELEASE": "release",
    }
