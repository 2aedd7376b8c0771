"""Content of a heartbeat file: who wrote it, and when on the monotonic clock of the host.

One line of constant length, so that a writer overwrites it in place, even on a full disk:

    MONOTONIC PID BOOT_ID REPORTER BEGAN STEP

The monotonic clock does not follow changes of the host's date; it starts again at a boot, so the
line also names the boot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FILE: Final = "heartbeat"  # name in the state directory of a worker
BEAT_SECONDS: Final = 2.0  # interval at which each part writes
_NONE: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One heartbeat; `reporter` is the part that wrote it on behalf of another (None: itself).

    `step` is what the part does in a round that `began` then, on the same clock (None: no round).
    """

    monotonic: float
    pid: int
    boot_id: str
    reporter: str | None = None
    began: float = 0.0
    step: str | None = None


def encode(beat: Beat) -> bytes:
    line = (
        f"{beat.monotonic:020.3f} {beat.pid:010d} {beat.boot_id or _NONE:36.36}"
        f" {beat.reporter or _NONE:32.32} {beat.began:020.3f} {beat.step or _NONE:64.64}\n"
    )
    return line.encode("ascii", "replace")


def decode(content: bytes) -> Beat:
    """Raises ValueError if `content` is not a heartbeat."""
    fields = content.decode("ascii").split(maxsplit=5)
    if len(fields) != 6 or not content.endswith(b"\n"):
        raise ValueError("not a heartbeat")
    monotonic, pid, boot_id, reporter, began, step = fields
    return Beat(
        monotonic=float(monotonic),
        pid=int(pid),
        boot_id=boot_id,
        reporter=None if reporter == _NONE else reporter,
        began=float(began),
        step=None if step.strip() == _NONE else step.strip(),
    )
