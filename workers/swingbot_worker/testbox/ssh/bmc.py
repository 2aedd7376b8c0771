"""BMCs, which serve few sessions: recognise a busy one, and end a session that is over."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from swingbot_jobs.testbox.ssh import Console
from swingbot_worker import InfraError, LimitReached, process
from swingbot_worker.testbox.console import last_line
from swingbot_worker.testbox.fence import Fence

# Longest time to wait for a BMC that is busy.
BUSY_SECONDS: Final = 300.0
# Pause between two attempts.
RETRY_SECONDS: Final = 5.0
# Timeout of the command that ends a console session.
END_SECONDS: Final = 30.0
# Words of ipmitool and ipmiconsole for a session that another one holds, a full table of sessions,
# and IPMI's completion code C0.
_BUSY: Final = re.compile(
    r"already active|another session|sol in use|already in use|node busy|bmc busy"
    r"|insufficient resources|no more sessions|session limit",
    re.I,
)
_KERNEL: Final = re.compile(r"\s*(<\d+>)?\[\s*\d+\.\d+\]")
_TAIL_BYTES: Final = 4096
_OUTPUT_BYTES: Final = 1 << 20


class BmcBusy(LimitReached):
    """The BMC stayed busy for as long as we wait, which is no failure of the machine."""


def busy(output: str) -> str:
    """Return the line that says that a session is busy, or an empty string. Pure.

    What a kernel prints is none: "address already in use" is its own matter.
    """
    lines = re.split(r"[\r\n]+", output)
    found = [line for line in lines if _BUSY.search(line) and not _KERNEL.match(line)]
    return last_line(found[-1]) if found else ""


def held(raw: Path) -> str:
    """Return what the console command that writes to `raw` said if another reader holds its
    session, or an empty string. The command's stderr is next to `raw`.
    """
    texts = (read_output(path) for path in (raw, raw.with_suffix(".err")))
    return next(filter(None, map(busy, texts)), "")


def read_output(path: Path) -> str:
    """Return the first MiB of what a console command has written to `path`."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return file.read(_OUTPUT_BYTES).decode(errors="replace")


class ConsoleSession:
    """The session that reads one console into the file `raw` and its stderr next to it.

    The console command is started again when it ends. A session that is left of an earlier order
    is ended by `console.end`, while the lease of the testbox is ours.
    """

    def __init__(self, console: Console, raw: Path, fence: Fence) -> None:
        self._console, self._raw, self._fence = console, raw, fence
        self._sizes: dict[Path, int] = {}
        self._ended = float("-inf")
        self.said = ""  # by the command, when it last found the session busy

    def retry(self) -> bool:
        """Return whether the command has found the session busy since the last call.

        Ends the other session then, if a command for that is known. Raises InfraError if the lease
        is lost.
        """
        text = "\n".join(self._new(path) for path in (self._raw, self._raw.with_suffix(".err")))
        if not (said := busy(text)):
            return False
        self.said = said
        if self._console.end and time.monotonic() - self._ended > RETRY_SECONDS:
            self._fence.hold(END_SECONDS)
            end(self._console)
            self._ended = time.monotonic()
        return True

    def _new(self, path: Path) -> str:
        if not path.exists():
            return ""
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(self._sizes.get(path, 0), size - _TAIL_BYTES))
            self._sizes[path] = size
            return file.read(_TAIL_BYTES).decode(errors="replace")


def end(console: Console) -> None:
    """Run the command that ends the console's session. That there is none any more is no error."""
    if console.end:
        process.output(list(console.end), timeout=END_SECONDS)


def stays_busy(name: str, console: Console, said: str) -> str:
    """Return the error for a console that another session holds. Pure."""
    how = (
        "ssh.console.end does not end it"
        if console.end
        else "set ssh.console.end to a command that ends it, such as ipmitool ... sol deactivate"
    )
    return (
        f"The console of testbox {name} was held by another session for {BUSY_SECONDS:.0f} s"
        f" ({said}); {how}; if a person reads it, ask them to stop."
    )


def power_busy(argv0: str, what: str, said: str) -> InfraError:
    """Return the error for a power switch that stays busy. Pure."""
    return BmcBusy(
        f"The power command {what!r} ({argv0}) found its switch busy for {BUSY_SECONDS:.0f} s"
        f" ({said}); end other sessions with the BMC, or reset the BMC."
    )
