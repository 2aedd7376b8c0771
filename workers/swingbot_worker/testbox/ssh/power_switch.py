"""Power switch and console of a testbox, both run by commands from the testbox file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

from swingbot_jobs.testbox.ssh import Console, Power
from swingbot_worker import InfraError, process
from swingbot_worker.testbox.console import last_line
from swingbot_worker.testbox.fence import NO_FENCE, Fence, environment
from swingbot_worker.testbox.ssh import bmc

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


def cycle(power: Power, fence: Fence = NO_FENCE, pause: float | None = None) -> None:
    """Switch the power off and on again, with `pause` seconds between (default: OFF_SECONDS).

    A switch cannot compare tokens, so each command is given only while the lease is valid for as
    long as it may take; a switch of the operator's that can compare finds the token in its
    environment. Raises InfraError if a command fails.
    """
    if power.cycle:
        _command(power.cycle, "cycle", fence)
        if power.on and status(power) == "off":  # some switches only cycle a machine that is on
            _command(power.on, "on", fence)
    else:
        _command(power.off, "off", fence)
        time.sleep(OFF_SECONDS if pause is None else pause)
        _command(power.on, "on", fence)


def _command(argv: Sequence[str], what: str, fence: Fence) -> None:
    _run(argv, what, fence)


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


def _run(argv: Sequence[str], what: str, fence: Fence | None = None) -> str:
    """Run a command, again while its BMC is busy; under the lease if there is a `fence`."""
    give_up = time.monotonic() + bmc.BUSY_SECONDS
    while True:
        if fence is not None:
            fence.hold(SWITCH_SECONDS)
        env = None if fence is None else os.environ | environment(fence)
        done = process.output(list(argv), timeout=SWITCH_SECONDS, env=env)
        if done.rc == 0 or done.timed_out or not (said := bmc.busy(done.text)):
            break
        if time.monotonic() > give_up:
            raise bmc.power_busy(argv[0], what, said)
        time.sleep(bmc.RETRY_SECONDS)
    if done.timed_out or done.rc != 0:
        how = "timed out" if done.timed_out else f"failed with status {done.rc}"
        last = last_line(done.text) or "it printed nothing"
        raise InfraError(f"The power command {what!r} ({argv[0]}) {how}: {last}")
    return done.text
