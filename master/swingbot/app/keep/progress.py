"""Progress and remaining time of a long copy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from swingbot.core.text.numbers import duration

EVERY_SECONDS: Final = 2.0
_ENOUGH: Final = 0.05  # fraction of the bytes before an estimate is meaningful


def amount(size: float) -> str:
    """Format bytes: 512 B, 3.4 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


class CopyProgress:
    """Announces progress at most every two seconds; estimates the remaining time by bytes."""

    def __init__(
        self,
        what: str,
        files: int,
        size: int,
        announce: Callable[[str], None],
        *,
        noun: str = "files",
    ) -> None:
        self._what, self._files, self._bytes, self._announce, self._noun = (
            what,
            files,
            size,
            announce,
            noun,
        )
        self._begin = self._announced = time.monotonic()
        self._done_files = self._done_bytes = 0

    def add(self, size: int) -> None:
        self._done_files += 1
        self._done_bytes += size
        now = time.monotonic()
        if now - self._announced < EVERY_SECONDS:
            return
        self._announced = now
        remaining = (
            (now - self._begin) * max(0, self._bytes - self._done_bytes) / max(1, self._done_bytes)
        )
        estimate = (
            f", about {duration(remaining)} left"
            if self._done_bytes > _ENOUGH * self._bytes
            else ""
        )
        self._announce(
            f"  {self._what}: {self._done_files} of {self._files} {self._noun},"
            f" {amount(self._done_bytes)} of {amount(self._bytes)}{estimate}"
        )
