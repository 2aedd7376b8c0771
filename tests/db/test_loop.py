"""The brain from a moved branch to a delivered mail, on a real database, a real git repository
and a real mail server. What else it decides is in tests/brain."""

from __future__ import annotations

import pytest

from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain
from tests.fakes.loop import METRIC, plain


def test_a_slow_commit_is_found_and_mailed_once(brain: Brain) -> None:
    brain.watch(brain.base)
    brain.run()
    made = brain.commit(*plain(6), FakeCommit(speed=88), *plain(5))
    brain.poll()
    brain.run()
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
    brain.run()
    assert len(brain.mails) == 1
