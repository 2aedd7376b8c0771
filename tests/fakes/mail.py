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
    """Settings of a brain that mails at once, on a free port for the local mail server (three above
    the web service's).
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1] - 3
    return {
        "SWINGBOT_PATHS_STATE": str(state),
        "SWINGBOT_DB_URL": db_url,
        "SWINGBOT_WEB_PORT": str(port),
        "SWINGBOT_MAIL_RELEASE": "release",
    }
