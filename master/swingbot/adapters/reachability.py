"""Track whether workers could reach the web service: their silence means nothing until that is
certain.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

CONNECT_SECONDS: Final = 3.0
# If called less often than this, the service may have been unreachable in between, so the time
# starts again.
GAP_SECONDS: Final = 60.0


class Reachability:
    """Seconds for which every call of this found `url` accepting connections; each call tries once
    more.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        self._address = (
            parts.hostname or "127.0.0.1",
            parts.port or (443 if parts.scheme == "https" else 80),
        )
        self._clock, self._since, self._last = clock, 0.0, float("-inf")

    def __call__(self) -> float:
        now = self._clock()
        if now - self._last > GAP_SECONDS:
            self._since = now
        with (
            contextlib.suppress(OSError),
            socket.create_connection(self._address, timeout=CONNECT_SECONDS),
        ):
            self._last = now
            return now - self._since
        self._last = float("-inf")
        return 0.0
