"""A box's power switch and console, which are commands of the operator."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import Console, Power
from swingbot_worker import InfraError, process

# A PDU or BMC may take its time; one that takes longer is as good as none.
SWITCH_SECONDS = 120.0
# Between off and on: power supplies hold their voltage for a while.
OFF_SECONDS = 5.0
# What ipmitool, virsh, Redfish clients, labgrid and PDU tools print, in any case.
_OFF = re.compile(r"\boff\b|\bshut\b|\bpowered down\b", re.I)
_ON = re.compile(r"\bon\b|\brunning\b|\bpowered up\b", re.I)


def state(said: str) -> str:
    """`on`, `off` or `unknown`, from what a status command prints. Pure."""
    if _OFF.search(said):
        return "off"
    return "on" if _ON.search(said) else "unknown"


def status(power: Power | None) -> str:
    """Whether the box has power, `unknown` where its switch does not tell.

    Raises InfraError if the command fails.
    """
    return state(_run(power.status, "status")) if power is not None and power.status else "unknown"


def cycle(power: Power, pause: float = OFF_SECONDS) -> None:
    """Off and on again. Raises InfraError if a command fails."""
    if power.cycle:
        _run(power.cycle, "cycle")
        if power.on and status(power) == "off":  # many a switch only cycles what is on
            _run(power.on, "on")
    else:
        _run(power.off, "off")
        time.sleep(pause)
        _run(power.on, "on")


def console_argv(console: Console) -> Sequence[str]:
    """The command that prints the console, begun anew whenever it ends: a BMC drops its sessions.

    A device is set up by stty first. Pure.
    """
    again = 'while :; do "$@"; sleep 1; done'
    if console.command:
        return ["sh", "-c", again, "sh", *console.command]
    line = 'stty -F "$0" "$1" raw -echo clocal && exec cat "$0"'
    return ["sh", "-c", again, "sh", "sh", "-c", line, console.device, str(console.baud)]


def _run(argv: Sequence[str], what: str) -> str:
    done = process.output(list(argv), timeout=SWITCH_SECONDS)
    if done.timed_out or done.rc != 0:
        how = "took too long" if done.timed_out else f"ended with status {done.rc}"
        last = next(
            (line.strip() for line in reversed(done.text.splitlines()) if line.strip()),
            "it said nothing",
        )
        raise InfraError(f"The power command {what!r} ({argv[0]}) {how}: {last[:300]}")
    return done.text
