"""What PostgreSQL takes for a thread is counted for that thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from swingbot.adapters import process
from swingbot_db.engine import make_engine
from swingbot_db.session_time import count_sessions

DEAR = "SELECT sum(sqrt(n)) FROM generate_series(1, 3000000) n"


def test_the_server_works_at_the_expense_of_the_thread_that_asks(db_url: str) -> None:
    engine = make_engine(db_url, connections=2)
    count_sessions(engine, process.count)

    def asked(text: str) -> float:
        begun = process.seconds()
        with engine.connect() as conn:
            conn.execute(sa.text("SET LOCAL max_parallel_workers_per_gather = 0"))
            conn.execute(sa.text(text)).all()
        return process.seconds() - begun

    with ThreadPoolExecutor(1) as other:
        cheap, own = other.submit(asked, "SELECT 1").result(), asked("SELECT 1")
        dear = asked(DEAR)
        again = other.submit(asked, "SELECT 1").result()  # perhaps in the session of the dear one
    assert dear > 0.1 > 5 * max(cheap, own, again)
    engine.dispose()
    assert asked("SELECT 1") < dear, "a new session has a clock of its own"
    engine.dispose()
