"""The dispatcher's passes: soon after a change in the database, and at an interval without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.buildbot.lab import Lab, eventually
from tests.buildbot.rows import add_build_order

PROGRAM = """
import sys
from twisted.internet import defer, reactor, task
from swingbot.adapters.buildbot.passes import Passes
from swingbot_db.engine import make_engine
from swingbot_db.listener import Listener

running = 0

async def work():
    global running
    running += 1
    print("begun", running, flush=True)
    await task.deferLater(reactor, float(sys.argv[3]), lambda: None)
    running -= 1
    print("over", flush=True)

def listen():
    listener = Listener(engine)
    print("listening", flush=True)
    return listener

engine = make_engine(sys.argv[1])
passes = Passes(reactor, work, float(sys.argv[2]), listen, frozenset({"dispatch"}))
reactor.callWhenRunning(passes.start)
reactor.addSystemEventTrigger(
    "before", "shutdown", lambda: defer.Deferred.fromCoroutine(passes.stop())
)
reactor.run()
print("stopped", running, flush=True)
"""


@contextmanager
def passes(lab: Lab, interval: float, work_seconds: float = 0.0) -> Iterator[Path]:
    """The log of a process that does nothing but passes; it is stopped in order."""
    log = lab.root / "passes.log"
    url = lab.engine.url.render_as_string(hide_password=False)
    argv = [sys.executable, "-c", PROGRAM, url, str(interval), str(work_seconds)]
    with log.open("wb") as sink:
        process = subprocess.Popen(argv, stdout=sink, stderr=sink)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(60)


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def test_a_change_of_a_dispatch_causes_a_pass_at_once(lab: Lab) -> None:
    with passes(lab, interval=3600) as log:
        eventually("it listens and has begun", lambda: lines(log)[-1:] == ["over"])
        assert lines(log) == ["listening", "begun 1", "over"]
        add_build_order(lab)
        eventually("another pass", lambda: lines(log).count("over") > 1)


def test_changes_during_a_pass_cause_another_and_two_never_run_at_a_time(lab: Lab) -> None:
    with passes(lab, interval=3600, work_seconds=2) as log:
        eventually("it has begun", lambda: "begun 1" in lines(log))
        for number in range(5):
            add_build_order(lab, key=f"{number}" * 64, commit=f"{number}" * 40)
        eventually("another pass", lambda: lines(log).count("over") >= 2)
    assert "begun 2" not in lines(log)
    # the signal waits for a pass
    assert lines(log)[-1] == "stopped 0", lines(log)


def test_a_lost_session_is_replaced_and_the_interval_goes_on(lab: Lab) -> None:
    with passes(lab, interval=0.5) as log:
        eventually("it listens", lambda: "over" in lines(log))
        lab.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query = 'LISTEN swingbot' AND datname = current_database()"
        )
        eventually("it listens again", lambda: lines(log).count("listening") == 2)
        before = lines(log).count("over")
        eventually("passes go on", lambda: lines(log).count("over") > before)
    text = log.read_text()
    assert "Traceback" not in text, text
