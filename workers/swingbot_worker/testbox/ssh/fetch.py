"""Download results from the kernel under test, which serves them to a client with the boot's
secret.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_worker import InfraError

CONNECT_SECONDS = 5.0
# Total time for the results, so that a slow guest cannot block the driver forever.
ALL_SECONDS = 600.0
_HEAD = re.compile(rb"swingbot ([\x21-\x7e]{1,200}) (\d{1,12})\n")


class NotServing(Exception):
    """Results are not being served now; `idle` if an SSH server answers instead."""

    def __init__(self, idle: bool) -> None:
        super().__init__()
        self.idle = idle


def fetch(host: str, port: int, token: str, secret: str, target: Path) -> None:
    """Write the results to `target`. Raises NotServing, or InfraError if they are too large."""
    try:
        with (
            socket.create_connection((host, port), timeout=CONNECT_SECONDS) as link,
            link.makefile("rb") as stream,
        ):
            link.sendall(secret.encode() + b"\n")
            head = stream.readline(300)
            if head.startswith(b"SSH-"):
                raise NotServing(True)
            match = _HEAD.fullmatch(head)
            if match is None or match[1] != token.encode():
                raise NotServing(False)
            size = int(match[2])
            if size > RESULT_ARCHIVE_BYTES:
                raise InfraError(
                    f"The kernel under test offers {size >> 20} MiB of results; the limit is "
                    f"{RESULT_ARCHIVE_BYTES >> 20} MiB."
                )
            link.settimeout(60.0)
            _copy(stream.read1, size, target)
            link.sendall(b"taken\n")
    except OSError:
        raise NotServing(False) from None


def _copy(read: Callable[[int], bytes], size: int, target: Path) -> None:
    give_up = time.monotonic() + ALL_SECONDS
    with target.open("wb") as out:
        while size > 0:
            data = read(min(size, 1 << 16))
            if not data or time.monotonic() > give_up:
                raise ConnectionError("cut off")
            out.write(data)
            size -= len(data)
