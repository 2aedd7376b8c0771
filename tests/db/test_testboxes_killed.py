"""A master killed between any two commits leaves no orphaned lease and reports no loss twice.

Each run tries a sample of the points; SWINGBOT_TEST_ALL=1 tries all of them.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swingbot.adapters.maildir import letters
from swingbot.app.settings import load
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot_db.engine import make_engine
from tests.db.crash_points import tried, unhurried
from tests.db.racks import attempt_of, compared, environment, facts_of, lapse, rows, turn
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import running_smtpd

_KILLED = """
import dataclasses, os, sys
from pathlib import Path
from swingbot.app.settings import load
from swingbot.app.wiring import connect, make_lab, make_sender
from swingbot.service.tick import tick
settings = load(environ=os.environ)
engine = connect(settings)
lab = make_lab(settings, engine)
lab = dataclasses.replace(lab, clock=dataclasses.replace(lab.clock, listening=lambda: 1e9))
for _ in range(3):
    tick(lab)
    make_sender(settings, engine, lab).send_due(lab.clock.now())
"""


@unhurried
def test_killed_at_any_point_of_losing_a_testbox_it_is_lost_once_leased_to_nobody_and_reported_once(
    tmp_path: Path, fresh_databases: Callable[[], str]
) -> None:
    repo, log = tmp_path / "linux", tmp_path / "points"
    make_fakelinux(repo, [FakeCommit()])

    def lost(folder: Path) -> tuple[Brain, dict[str, str]]:
        """A lab whose controller fell silent a moment ago."""
        found = environment(folder, fresh_databases())
        settings = load(environ=found)
        brain = make_brain(settings, make_engine(settings.db.url), repo)
        clock = dataclasses.replace(brain.lab.clock, listening=lambda: 0.0)
        brain = dataclasses.replace(brain, lab=dataclasses.replace(brain.lab, clock=clock))
        compared(brain, "rack7")
        turn(brain)
        WorkerRequests(brain.lab.transaction).hold(attempt_of(brain), "lab1")
        lapse(brain)
        return brain, found

    def go_on(found: dict[str, str], **more: str) -> int:
        return subprocess.run(
            [sys.executable, "-c", _KILLED], env={**os.environ, **found, **more}, check=False
        ).returncode

    def seen(brain: Brain) -> dict[str, Any]:
        found = {
            "mails": sorted(letter.subject for letter in letters(brain.settings.maildir)),
            "alerts": [
                tuple(row.values()) for row in rows(brain, "SELECT kind, testbox FROM alert")
            ],
            "dead attempts": brain.count("attempt WHERE state = 'dead'"),
            "losses": len(
                [event for event in facts_of(brain)["events"] if event["state"] == "lost"]
            ),
            "leases of dead attempts": rows(
                brain,
                (
                    "SELECT l.attempt FROM lease l JOIN attempt a ON a.id = l.attempt WHERE "
                    "a.state <> 'running'"
                ),
            ),
        }
        brain.engine.dispose()
        return found

    brain, found = lost(tmp_path / "undisturbed")
    with running_smtpd(brain.settings):
        assert go_on(found, SWINGBOT_CRASH_LOG=str(log)) == 0
    expected = seen(brain)
    assert (expected["mails"], expected["dead attempts"], expected["losses"]) == (
        ["[swingbot] testbox rack7 is lost"],
        1,
        1,
    )
    names = log.read_text().splitlines()
    own = [
        n
        for n, name in enumerate(names, 1)
        if any(
            word in name
            for word in (
                "watch testboxes",
                "alert operator",
                "dispatch orders",
                "report sen",
                "smtp",
            )
        )
    ]
    for point in tried(own, own[: 2 * len(own) // 3 : max(1, len(own) // 4)]):
        brain, found = lost(tmp_path / f"killed-{point}")
        with running_smtpd(brain.settings):
            assert go_on(found, SWINGBOT_CRASH_AT=str(point)) == -signal.SIGKILL, (
                f"point {point} was not reached"
            )
            assert go_on(found) == 0
        assert seen(brain) == expected, f"killed at {names[point - 1]}"
