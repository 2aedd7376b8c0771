"""Orders and pages say how far a kernel is trusted. What follows from it is in tests/brain."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot_db import read
from swingbot_db.store import PgTransaction
from tests.fakes.brain import Brain


def test_orders_and_what_is_shown_say_the_level(brain: Brain) -> None:
    brain.watch(brain.base, trust="untrusted")
    brain.run()
    with brain.engine.connect() as conn:
        row = conn.execute(
            sa.text(
                "SELECT a.id, a.order_id, o.variant FROM attempt a JOIN orders o ON o.id ="
                " a.order_id LIMIT 1"
            )
        ).one()
        facts = PgTransaction(conn).attempts.order_facts(row.id)
        assert facts is not None and facts.trust == "untrusted"
        assert read.order(conn, row.order_id)["trust"] == "untrusted"
        assert read.variant(conn, row.variant)["trust"] == "untrusted"
