"""How fast a testbox's console is, and what results of a job cost on it."""

from __future__ import annotations

import lzma
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import guest, packer
from swingbot_worker.testbox.ssh.link import Link

# Lines of 100 bytes that the idle system prints: a second at 115200 baud, 13 at 9600.
_LINES: Final = 120
_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02
# Snapshots that are packed; each run has two.
_SNAPSHOTS: Final = 4
# Bytes of a packed run besides its snapshots: perf stat, time, what the program prints.
_MORE_BYTES: Final = 600
# A job of the default set with many runs: will-it-scale.yaml has 108.
_RUNS: Final = 100
# Bytes of `SB:`, the number of a line, two colons and the end of the line.
_FRAME_BYTES: Final = 13
_COUNTERS: Final = "cat /proc/interrupts /proc/softirqs /proc/vmstat /proc/meminfo /proc/buddyinfo"


def wait_for(raw: Path, text: str, seconds: float) -> float | None:
    """Return when (monotonic clock) `text` appeared in the file `raw`; None after `seconds`."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if text.encode() in raw.read_bytes():
            return time.monotonic()
        time.sleep(_LOOK_SECONDS)
    return None


def measure(link: Link, raw: Path) -> float | None:
    """Print on the console of the idle system, and return the bytes a second that arrive in `raw`.

    None if the text does not arrive. Raises InfraError if the idle system does not answer.
    """
    token = secrets.token_hex(4)
    script = (
        f"{{ echo swingbot: begin {token}; i=0; while [ $i -lt {_LINES} ]; do"
        f" printf '%0100d\\n' $i; i=$((i + 1)); done; echo swingbot: end {token}; }} >/dev/console"
    )
    link.run(f"({script}) >/dev/null 2>&1 &")
    began = wait_for(raw, f"begin {token}", _SECONDS)
    if began is None:
        return None
    size = raw.read_bytes().index(f"begin {token}".encode())
    ended = wait_for(raw, f"end {token}", _SECONDS)
    return None if ended is None else rate(raw.stat().st_size - size, ended - began)


def rate(size: int, seconds: float) -> float:
    """Return bytes a second; what arrives between two looks counts as one of them. Pure."""
    return size / max(seconds, _LOOK_SECONDS)


def run_bytes(snapshots: Sequence[str]) -> int:
    """Return the bytes of one run with two snapshots in packed results, from several. Pure."""
    if len(snapshots) < 2:
        raise ValueError("the bytes of a run need two snapshots at least")
    first, every = (
        len(lzma.compress("".join(some).encode(), preset=packer.PRESET))
        for some in (snapshots[:1], snapshots)
    )
    return 2 * (every - first) // (len(snapshots) - 1) + _MORE_BYTES


def sending_seconds(packed: int, speed: float) -> float:
    """Return the seconds of `packed` bytes of results on a console of `speed` bytes a second.

    They are printed as base64, in lines of their own, each line in each of the rounds. Pure.
    """
    lines = packed * 4 / 3 / guest.LINE
    return guest.ROUNDS * lines * (guest.LINE + _FRAME_BYTES) / speed


def findings(testbox: Testbox, link: Link, speed: float | None) -> Iterator[TuningFinding]:
    """Yield the speed of the console, and what results cost on it.

    The counters of the idle system stand for those of a kernel under test.
    """
    what = "the console carries what is printed on it"
    if speed is None:
        yield TuningFinding(
            what=what,
            ok=False,
            found=f"{_LINES} lines for /dev/console did not arrive",
            do=f"name the console of {testbox.name}.yaml last on the command line of its idle"
            " system, because /dev/console is the last one, or use results: network",
        )
        return
    yield TuningFinding(
        what=what, ok=True, found=f"{speed:.0f} bytes/s, as {speed * 10:.0f} baud would"
    )
    try:
        each = run_bytes([link.run(_COUNTERS) for _ in range(_SNAPSHOTS)])
    except InfraError as error:
        yield TuningFinding(what="cost of results", ok=False, found="unknown", do=str(error))
        return
    minutes = sending_seconds(_RUNS * each, speed) / 60
    yield TuningFinding(
        what="cost of results on the console",
        ok=True,
        found=f"{each / 1000:.1f} KB a run; of {_RUNS} runs {minutes:.1f} minutes"
        + ("; results: network is faster" if minutes > 1 else ""),
    )
