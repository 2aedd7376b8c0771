"""The brain from a moved branch to a delivered mail, on a real database, a real git repository
and a real mail server. What else it decides is in tests/brain."""

from __future__ import annotations

import pytest

from swingbot.service.tick import tick
from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain
from tests.fakes.loop import METRIC, plain


def test_a_slow_commit_is_found_and_mailed_once(brain: Brain) -> None:
    brain.fake.origin = "measured"
    brain.watch(brain.base)
    tick(brain.lab)
    first = brain.facts("c")
    assert first["eta_seconds"] > 0 and "computed from its jobs" in first["eta_note"]
    brain.run()
    made = brain.commit(*plain(6), FakeCommit(speed=88), *plain(5))
    brain.poll()
    tick(brain.lab)
    assert brain.facts("c", 2)["eta_seconds"] > 0 and brain.facts("c", 2)["eta_note"] is None
    brain.run()
    shown = next(row for row in brain.facts("c", 2)["rows"] if row["proof"])
    assert brain.facts("c", int(shown["proof"][1:]))["kind"] == "prove"
    (subject,) = brain.mails
    assert f"{made[6][:12]}: {METRIC} 12.0% worse" in subject
    bisection = brain.facts("b")
    assert bisection["status"] == "culprit"
    assert bisection["culprit"]["commit"] == made[6]
    assert bisection["change_pct"] == pytest.approx(-12, abs=0.2)
    incident = brain.facts("i")
    assert incident["culprit"]["commit"] == made[6]
    report = brain.facts("r")
    assert report["state"] == "sent"
    assert "12.0% worse" in report["body"]
    assert f"about this mail: {brain.settings.web_url}/docs/your-mail\n" in report["body"]
    brain.run()
    assert len(brain.mails) == 1
