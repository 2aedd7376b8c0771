"""`swingbot up` watches the heartbeats of its parts: it names those that hang, and kills them.

The supervisor starts a killed part again. PostgreSQL and the supervisor have no heartbeat of their
own; they are asked.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from swingbot.adapters import part_heartbeat
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot.app import postgres, process
from swingbot.app.settings import Settings
from swingbot.app.supervision import POSTGRES, ProgramState
from swingbot.core.keep.health import PartBeat, hung
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS

UP: Final = "up"
SUPERVISOR: Final = "supervisord"
ASK_SECONDS: Final = 2.0  # for PostgreSQL, which answers within milliseconds
GAP_SECONDS: Final = 15.0  # longest time between two checks, with calls that time out
FIRST_BEAT_SECONDS: Final = 240.0  # on a loaded machine, the Buildbot master alone took 50 s
LAST_WORDS_SECONDS: Final = 2.0  # for the tracebacks of all threads
# A server must answer this request whatever its state; see "SSLRequest" in PostgreSQL's
# "Message Formats".
_SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)


class HungParts:
    """Call `check` about once a second. `announce` gets one sentence for each event."""

    def __init__(self, settings: Settings, announce: Callable[[str], None]) -> None:
        self._settings, self._announce = settings, announce
        self._up = PartHeartbeat(settings.state, UP)
        self._supervisor = PartHeartbeat(settings.state, SUPERVISOR, reporter=UP)
        self._postgres = PartHeartbeat(settings.state, POSTGRES, reporter=UP)
        self._named: set[str] = set()
        self._beat_at = float("-inf")
        self._checked_at = self._patient_until = time.monotonic()

    def check(self, states: Mapping[str, ProgramState] | None, supervisor_pid: int) -> None:
        """`states` is what the supervisor answered; None: it did not answer."""
        self._wait_after_gap()
        if time.monotonic() - self._beat_at >= BEAT_SECONDS:
            self._beat_at = time.monotonic()
            self._report(states, supervisor_pid)
        health = self._settings.health
        if time.monotonic() < self._patient_until:
            return
        silent = {beat.part: beat for beat in self._hung(states, supervisor_pid)}
        for name in sorted(self._named - set(silent)):
            self._announce(f"{name} responds again")
        for name, beat in sorted(silent.items()):
            if name not in self._named:
                self._announce(
                    f"{name} has not responded for {beat.age_seconds:.0f} s; it is restarted after"
                    f" {health.restart_seconds:g} s"
                )
        self._named = set(silent)
        for beat in silent.values():
            if beat.age_seconds >= health.restart_seconds and beat.pid is not None:
                self._kill(beat, beat.pid)

    def _wait_after_gap(self) -> None:
        """After this process was stopped itself, perhaps with the host, all others get time."""
        now = time.monotonic()
        if now - self._checked_at > self._settings.health.hung_seconds + GAP_SECONDS:
            self._patient_until = now + self._settings.health.hung_seconds
        self._checked_at = now

    def _report(self, states: Mapping[str, ProgramState] | None, supervisor_pid: int) -> None:
        """Write the heartbeats of this process and of those that cannot write one."""
        self._up.beat()
        if states is None:
            return
        self._supervisor.beat(supervisor_pid)
        running = states.get(POSTGRES)
        if running is not None and running.pid and answers(self._settings.state):
            self._postgres.beat(running.pid)

    def _hung(
        self, states: Mapping[str, ProgramState] | None, supervisor_pid: int
    ) -> list[PartBeat]:
        """Silent parts whose process still runs; a dead one is the supervisor's task."""
        pids = {SUPERVISOR: supervisor_pid}
        pids |= {name: state.pid for name, state in (states or {}).items() if state.pid}
        beats = {
            beat.part: beat
            for beat in part_heartbeat.beats(self._settings.state)
            if pids.get(beat.part) == beat.pid
        }
        for name, state in (states or {}).items():
            if state.pid and name not in beats:
                # it started, but never had a heartbeat
                age = max(0.0, state.seconds - FIRST_BEAT_SECONDS)
                beats[name] = PartBeat(part=name, age_seconds=age, pid=state.pid)
        return hung(beats.values(), self._settings.health.hung_seconds)

    def _kill(self, beat: PartBeat, pid: int) -> None:
        self._announce(
            f"{beat.part} (process {pid}) has not responded for {beat.age_seconds:.0f} s and is"
            " killed"
        )
        if beat.part == POSTGRES:
            process.kill_tree(pid)
        else:
            process.abort(pid, LAST_WORDS_SECONDS)
        part_heartbeat.drop(self._settings.state, beat.part)
        self._named.discard(beat.part)


def answers(state: Path) -> bool:
    """Return True if the embedded PostgreSQL does anything with a new connection.

    A server that refuses it, because it is starting, full or gone, does not hang.
    """
    address = postgres.socket_directory(state) / ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ASK_SECONDS)
        try:
            probe.connect(str(address))
            probe.sendall(_SSL_REQUEST)
            probe.recv(1)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            return True
    return True
