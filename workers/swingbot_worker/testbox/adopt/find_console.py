"""Find the console of a machine by trying: write to each of its serial lines, and read every
source that this controller has.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_jobs.testbox.ssh import Console
from swingbot_worker.testbox.adopt.survey import SPEED, MachineSurvey
from swingbot_worker.testbox.ssh import bmc, enter, power_switch
from swingbot_worker.testbox.ssh.link import Link
from swingbot_worker.testbox.ssh.process import beside

# Serial lines of this controller that go to machines: those of USB adapters and serial servers.
DEVICES: Final = Path("/dev/serial/by-id")
MOST_DEVICES: Final = 64
# Seconds for sources to open; a session with a BMC takes some.
OPEN_SECONDS: Final = 5.0
# Seconds in which a line must arrive.
ARRIVE_SECONDS: Final = 20.0
# Seconds for the other lines, once one has arrived.
REST_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.1
_WRITTEN: Final = re.compile(r"swingbot: line ([A-Za-z0-9]{1,12}) ([0-9a-f]{8})(?![0-9a-f])")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConsole:
    """A source that showed what the machine wrote, and to which of its lines; `line` is empty if
    only the kernel's messages arrived. `kernel`: those arrived.
    """

    console: Console
    line: str
    kernel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSearch:
    """The outcome of the search.

    `tried`: the number of sources; `held`: what a source said whose session another reader holds.
    """

    found: FoundConsole | None = None
    tried: int = 0
    held: str = ""


def devices(folder: Path, taken: Iterable[str]) -> list[Path]:
    """Return the serial devices in `folder` that no testbox file names: reading one would take text
    from an order that runs there.

    `taken` are the texts of the files.
    """
    texts = list(taken)
    every = sorted(folder.iterdir())[:MOST_DEVICES] if folder.is_dir() else []
    return [
        path
        for path in every
        if not any(name in text for name in {str(path), str(path.resolve())} for text in texts)
    ]


def search(link: Link, survey: MachineSurvey, sources: Sequence[Console]) -> ConsoleSearch:
    """Try all `sources` together. Raises InfraError if the machine does not answer."""
    if not sources:
        return ConsoleSearch()
    with tempfile.TemporaryDirectory(prefix="swingbot-adopt-") as work:
        raws = {Path(work, str(number)): source for number, source in enumerate(sources)}
        try:
            return replace(_search(link, survey, raws), tried=len(sources))
        finally:
            for raw, source in raws.items():
                if not bmc.held(raw):  # else the session is another reader's
                    bmc.end(source)


def _search(link: Link, survey: MachineSurvey, raws: Mapping[Path, Console]) -> ConsoleSearch:
    token = secrets.token_hex(4)
    with contextlib.ExitStack() as stack:
        for raw, source in raws.items():
            raw.touch()
            stack.enter_context(beside(power_switch.console_argv(source), raw))
        time.sleep(OPEN_SECONDS)
        link.run(marks(survey, token))
        give_up = time.monotonic() + ARRIVE_SECONDS
        while time.monotonic() < give_up:
            for raw, source in raws.items():
                if token in bmc.read_output(raw):
                    time.sleep(REST_SECONDS)
                    return ConsoleSearch(found=_found(source, bmc.read_output(raw), token))
            time.sleep(_LOOK_SECONDS)
    return ConsoleSearch(held=next(filter(None, map(bmc.held, raws)), ""))


def marks(survey: MachineSurvey, token: str) -> str:
    """Return the script that writes a line with `token` to the console and to each serial line.

    The speed of a line is set only if the idle system has no console there. Pure.
    """
    return "\n".join(
        [f"{enter.marker(token)} 2>/dev/null", *_writes(survey, token), "wait", "true"]
    )


def _writes(survey: MachineSurvey, token: str) -> Iterator[str]:
    for line in survey.lines:
        path = shlex.quote(f"/dev/{line}")
        speed = "" if line in survey.consoles else f"stty -F {path} {SPEED} 2>/dev/null; "
        write = f"{speed}printf '\\r\\nswingbot: line {line} {token}\\r\\n' >>{path}"
        yield f"[ -e {path} ] && timeout 5 sh -c {shlex.quote(write)} >/dev/null 2>&1 &"


def _found(console: Console, text: str, token: str) -> FoundConsole:
    lines = [line for line, written in _WRITTEN.findall(text) if written == token]
    return FoundConsole(
        console=console,
        line=lines[0] if lines else "",
        kernel=f"swingbot: marker {token}" in text,
    )
