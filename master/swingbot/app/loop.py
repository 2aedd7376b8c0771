"""`swingbot loop`: decides what to do next. Wakes on notifications and a timer; stateless."""

from __future__ import annotations

import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from swingbot.adapters import progress
from swingbot.adapters.heartbeat import Heartbeat
from swingbot.adapters.part_heartbeat import PartHeartbeat, beating
from swingbot.app.keep.backup import KeepError
from swingbot.app.keep.health_check import beat_file
from swingbot.app.keep.retain import due, retain
from swingbot.app.poller import Poller
from swingbot.app.settings import Settings
from swingbot.app.wiring import forget_workers, make_sender, sync_testboxes
from swingbot.core.model.dispatch import DatabaseAway
from swingbot.service import checkpoint
from swingbot.service.clock_watch import ClockWatch
from swingbot.service.faults import Faults, in_a_line
from swingbot.service.ports import Lab
from swingbot.service.tick import tick
from swingbot_db.engine import on_statement
from swingbot_db.listener import Listener
from swingbot_db.loop_lock import LoopLock, SecondLoop

# Delay after a failed round (database unreachable, disk full), in seconds.
PAUSE_SECONDS = 5.0
RETENTION_SECONDS = 3600.0  # for a daily look at all files, which may be millions
FORGED_SECONDS = 0.1  # delay after a notification without a change
TICK_SECONDS = 2.0  # longest sleep between two ticks; a notification ends it earlier


class _Alarm:
    """Sleeps until a change or a timeout; returns whether it was a change."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._listener: Listener | None = None

    def sleep(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        try:
            if self._listener is None:
                self._listener = Listener(self._engine)
            while (left := end - time.monotonic()) > 0:
                if not select.select([self._listener], [], [], left)[0]:
                    break
                self._listener.heard()
                if self._listener.unseen():
                    return True
                time.sleep(FORGED_SECONDS)
        except DatabaseAway:
            if self._listener is not None:
                self._listener.close()
            self._listener = None
            time.sleep(max(0.0, end - time.monotonic()))
        return False


def run(
    settings: Settings, engine: sa.Engine, lab: Lab, *, until: Callable[[], bool] = lambda: False
) -> None:
    """Run rounds until SIGTERM or `until()`; failures are logged and retried.

    Raises SecondLoop if another loop works on the same database, also between two rounds.
    """
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopped.append(received))
    checkpoint.on_checkpoint(progress.committed)
    on_statement(engine, progress.statement_begun, progress.statement_over)
    progress.committed()
    only, limit = LoopLock(engine), settings.health.stalled_seconds
    only.hold()
    try:
        with (
            beating(PartHeartbeat(settings.state, "loop"), partial(progress.stalled, limit)),
            Poller(lab, settings.watch.poll_seconds) as poller,
        ):
            _rounds(settings, engine, lab, only, poller, lambda: bool(stopped) or until())
    finally:
        only.release()


def _rounds(
    settings: Settings,
    engine: sa.Engine,
    lab: Lab,
    only: LoopLock,
    poller: Poller,
    over: Callable[[], bool],
) -> None:
    lab = replace(lab, transaction=progress.named(lab.transaction))
    sync_testboxes(lab)
    forget_workers(settings, lab)
    with lab.transaction("begin") as tx:
        tx.rounds.note_unseen()  # settings, jobs and testboxes may have changed
    sender, alarm = make_sender(settings, engine, lab), _Alarm(engine)
    last_problem, heart = "", Heartbeat(beat_file(settings))
    own_clock = ClockWatch(time.monotonic)
    while not over():
        progress.committed()
        faults = Faults(lab.transaction)
        try:
            with progress.step("round"):
                only.hold()  # its session may have ended with the database
                with faults.of("poll trees"):
                    poller.check()
                with faults.of("round"):
                    tick(lab)
                with faults.of("send mail"), progress.step("send mail"):
                    sender.send_due(lab.clock.now())
                with faults.of("retention"), progress.step("retention"):
                    own_clock.look(lab.clock.now().timestamp())
                    _prune_daily(settings, engine, lab.clock.now(), own_clock)
                faults.tell()
            last_problem = ""
            heart.beat()
        except SecondLoop:
            raise
        except Exception as fault:
            problem = traceback.format_exc()
            if problem != last_problem:  # an unreachable database would fill the log
                print(problem, file=sys.stderr, flush=True)  # noqa: T201 - the log of this process
            last_problem = problem
            heart.beat(in_a_line(fault))
            time.sleep(PAUSE_SECONDS)
            continue
        if alarm.sleep(TICK_SECONDS):
            poller.wake()


def _prune_daily(settings: Settings, engine: sa.Engine, now: datetime, clock: ClockWatch) -> None:
    """Delete expired files once a day if retention.enabled is set; never during a backup."""
    if not due(settings, now, clock):
        return
    try:
        with progress.waiting(RETENTION_SECONDS):
            done = retain(settings, engine, now, really=True)
    except KeepError:
        return  # a backup is running; the next round tries again
    files = sum(one.goes for one in done.totals.values())
    print(f"retention: deleted {files} files, freed {done.freed} bytes", flush=True)  # noqa: T201
