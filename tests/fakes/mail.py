"""The embedded mail server in a process of its own, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swingbot.app.settings import Settings
from tests.buildbot.ports import free_ports


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
