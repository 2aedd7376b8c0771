from __future__ import annotations

from tests.buildbot.lab import Lab, eventually
from tests.buildbot.rows import add_build_order, attempt_row, dispatch_row


def test_a_wanted_dispatch_becomes_a_build_whose_outcome_ends_the_attempt(lab: Lab) -> None:
    attempt = add_build_order(lab)
    with lab.exchange():
        lab.start_all()
        eventually("attempt has ended", lambda: attempt_row(lab, attempt).state == "ended")
        eventually("dispatch is over", lambda: dispatch_row(lab, attempt).state == "over")
    assert dispatch_row(lab, attempt).result == "success"
    assert dispatch_row(lab, attempt).bb_number == 1
    assert attempt_row(lab, attempt).outcome["status"] == "infra"  # there is no such repository
