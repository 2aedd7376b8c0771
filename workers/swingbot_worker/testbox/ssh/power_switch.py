"""Power switch and console of a testbox, both run by commands from the testbox file."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import Console, Power
from swingbot_worker import InfraError, process
from swingbot_worker.testbox.console import last_line

# Timeout of a power command. PDUs and BMCs are slow; one that exceeds this counts as failed.
SWITCH_SECONDS = 120.0
# Pause between off and on, because power supplies hold their voltage for some time.
OFF_SECONDS = 5.0
# Output of ipmitool, virsh, Redfish clients, labgrid and PDU tools; case is ignored.
_OFF = re.compile(r"\boff\b|\bshut\b|\bpowered down\b", re.I)
_ON = re.compile(r"\bon\b|\brunning\b|\bpowered up\b", re.I)


def state(output: str) -> str:
    """Return `on`, `off` or `unknown` from the output of a status command. Pure."""
    if _OFF.search(output):
        return "off"
    return "on" if _ON.search(output) else "unknown"


def status(power: Power | None) -> str:
    """Return `on` or `off`, or `unknown` if there is no switch or it does not report its state.

    Raises InfraError if the command fails.
    """
    return state(_run(power.status, "status")) if power is not None and power.status else "unknown"


def cycle(power: Power, pause: float = OFF_SECONDS) -> None:
    """Switch the power off and on again, with `pause` seconds between.

    Raises InfraError if a command fails.
    """
    if power.cycle:
        _run(power.cycle, "cycle")
        if power.on and status(power) == "off":  # some switches only cycle a machine that is on
            _run(power.on, "on")
    else:
        _run(power.off, "off")
        time.sleep(pause)
        _run(power.on, "on")


def console_argv(console: Console) -> Sequence[str]:
    """Return the command that prints the console.

    It restarts when it exits, because BMCs drop their sessions. A serial device is configured with
    stty first. Pure.
    """
    restart = 'while :; do "$@"; sleep 1; done'
    if console.command:
        return ["sh", "-c", restart, "sh", *console.command]
    read_device = 'stty -F "$0" "$1" raw -echo clocal && exec cat "$0"'
    return ["sh", "-c", restart, "sh", "sh", "-c", read_device, console.device, str(console.baud)]


def _run(argv: Sequence[str], what: str) -> str:
    done = process.output(list(argv), timeout=SWITCH_SECONDS)
    if done.timed_out or done.rc != 0:
        how = "timed out" if done.timed_out else f"failed with status {done.rc}"
        last = last_line(done.text) or "it printed nothing"
        raise InfraError(f"The power command {what!r} ({argv[0]}) {how}: {last}")
    return done.text
