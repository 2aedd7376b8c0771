"""Stop all parts of a service on this host, as a deadlock would, and wait for its supervisor."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from swingbot.adapters.part_heartbeat import beats
from swingbot.core.keep.health import PartBeat, hung
from tests.attack.target import Result, Target, skipped

NAME = "hung-parts"
WANTED = "each part is named within 60 s, and another process has its heartbeat within 180 s"
NAMED_SECONDS, RESTARTED_SECONDS = 60.0, 180.0
WATCHERS = ("up", "supervisord", "postgres")  # watched, but not by their own heartbeat


def run(target: Target) -> Result:
    if target.state is None:
        return skipped("give --state, the state directory")
    parts = [beat for beat in beats(target.state) if beat.pid and beat.part not in WATCHERS]
    own = [beat for beat in parts if beat.reporter is None and beat.age_seconds < 10]
    if not own:
        return Result(line=f"no part has a heartbeat in {target.state}", held=False)
    for beat in own:
        os.kill(beat.pid or 0, signal.SIGSTOP)
    began = time.monotonic()
    try:
        return _watch(target.state, own, began)
    finally:
        for beat in own:
            if _has_heartbeat(target.state, beat):
                os.kill(beat.pid or 0, signal.SIGCONT)


def _has_heartbeat(state: Path, before: PartBeat) -> bool:
    return any((now.part, now.pid) == (before.part, before.pid) for now in beats(state))


def _watch(state: Path, stopped: list[PartBeat], began: float) -> Result:
    pids = {beat.part: beat.pid for beat in stopped}
    named: dict[str, float] = {}
    again: dict[str, float] = {}
    while len(again) < len(pids) and time.monotonic() - began < RESTARTED_SECONDS:
        elapsed, now = time.monotonic() - began, beats(state)
        for beat in hung(now, 30.0):
            named.setdefault(beat.part, elapsed)
        for beat in now:
            if beat.part in pids and beat.pid != pids[beat.part]:
                again.setdefault(beat.part, elapsed)
        time.sleep(0.5)
    late = [part for part in pids if named.get(part, 1e9) > NAMED_SECONDS]
    gone = [part for part in pids if part not in again]
    line = "; ".join(
        f"{part} named after {_seconds(named, part)}, back after {_seconds(again, part)}"
        for part in pids
    )
    return Result(line=line, held=not late and not gone)


def _seconds(times: dict[str, float], part: str) -> str:
    return f"{times[part]:.0f} s" if part in times else "never"
