"""A service in the middle of a bisection, on a real database, for tests of what goes on from
there."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot.service.tick import tick
from tests.fakelinux import FakeCommit
from tests.fakes.brain import Brain

CULPRIT = 5
COMMITS = [*[FakeCommit()] * (CULPRIT - 1), FakeCommit(speed=88), *[FakeCommit()] * 6]


def value(engine: sa.Engine, query: str) -> object:
    with engine.connect() as conn:
        return conn.execute(sa.text(query)).scalar()


def in_the_middle(brain: Brain) -> None:
    """Work until a bisection has learned something, waits for a boot that is handed out,
    and more orders wait behind it.
    """
    for _ in range(200):
        tick(brain.lab)
        observed = brain.count(
            'observation WHERE cardinality("values") > 0 AND bisection IN (SELECT id FROM'
            " bisection WHERE status = 'running')"
        )
        if observed >= 6 and brain.count("attempt WHERE state = 'running'"):
            return
        brain.fake.work()
    raise AssertionError("no bisection was under way")
