"""The hardware of a machine as its BMC reports it, read while an order runs.

A BMC that is busy, refuses or sends garbage costs the boot these facts and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.facts import OF_BMC
from swingbot_jobs.printable import printable
from swingbot_worker import InfraError
from swingbot_worker.testbox.console import last_line
from swingbot_worker.testbox.ssh.process import beside, exit_status

SECONDS: Final = 120  # BMCs take half a minute for all their parts
BYTES: Final = 64 << 10  # that the command may print
MOST: Final = 100  # facts
CHARACTERS: Final = 200  # of a value; a name has half
_LINE: Final = re.compile(r"([A-Za-z][^:]{0,99}?)\s*:\s*(\S.*)")
# A device of `ipmitool fru print`, whose lines follow.
_DEVICE: Final = re.compile(r"FRU Device Description\s*:.*\(ID ([0-9]{1,3})\)")
# Not hardware: dates are printed in the zone of the controller.
_NOT_HARDWARE: Final = re.compile(r"(^|_)(date|available)($|_)")
# Pages and mails show facts; that a serial number changed is enough.
_SERIAL: Final = re.compile(r"serial|asset|uuid|guid")


def facts(said: str) -> dict[str, str]:
    """Return the facts in lines `name: value`, by name: `Board Mfg : Acme` of FRU 0 of ipmitool is
    `bmc.fru0_board_mfg`. Of a serial number its digest. Other lines are ignored. Pure.
    """
    found: dict[str, str] = {}
    device = ""
    for line in said[:BYTES].splitlines():
        if match := _DEVICE.search(line):
            device = f"fru{match[1]}_"
        elif (match := _LINE.fullmatch(line.strip())) and len(found) < MOST:
            name = re.sub(r"[^a-z0-9]+", "_", match[1].lower()).strip("_")
            if not _NOT_HARDWARE.search(name):
                found.setdefault(f"{OF_BMC}{device}{name}", _value(name, match[2]))
    return found


def _value(name: str, text: str) -> str:
    if _SERIAL.search(name):
        return f"#{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return printable(text.strip()[:CHARACTERS], " ")


class Inventory:
    """A running command of the operator's that asks the BMC; it appends to the file `said`.

    `status` returns its exit status, None if it has not ended within so many seconds.
    """

    def __init__(self, name: str, status: Callable[[float], int | None], said: Path) -> None:
        self._name, self._status, self._said = name, status, said

    def read(self, wait: float = 0.0) -> dict[str, str]:
        """Return the facts, after waiting for the command for at most `wait` seconds.

        Raises InfraError with one sentence if it has not ended, has failed, or printed no facts.
        """
        why = _failure(self._status(wait), self._text(self._said))
        errors = self._text(self._said.with_suffix(".err"))
        if why is None and (found := facts(self._text(self._said))):
            return found
        last = last_line(errors) or last_line(self._text(self._said)) or "it printed nothing"
        raise InfraError(
            f"The command {self._name} of ssh.inventory {why or 'printed no line `name: value`'}:"
            f" {last}"
        )

    @staticmethod
    def _text(path: Path) -> str:
        with path.open("rb") as file:
            return file.read(BYTES).decode(errors="replace")


def _failure(rc: int | None, said: str) -> str | None:
    if rc is None:
        return "has not ended yet"
    if rc in (124, 128 + signal.SIGTERM, -signal.SIGTERM):
        return f"took more than {SECONDS} s"
    if rc == -signal.SIGXFSZ or len(said) >= BYTES:
        return f"printed more than {BYTES >> 10} KiB"
    return f"failed with status {rc}" if rc != 0 else None


@contextlib.contextmanager
def asked(command: Sequence[str]) -> Iterator[Inventory]:
    """Run the command during the `with` block."""
    limited = ["timeout", str(SECONDS), "prlimit", f"--fsize={BYTES}", "--", *command]
    with tempfile.TemporaryDirectory(prefix="swingbot-bmc-") as work:
        said = Path(work, "said")
        with beside(limited, said) as child:
            yield Inventory(command[0], functools.partial(exit_status, child), said)
