"""Two people who extend a table, or resume a bisection, at the same moment: nobody pays for boots
that are not ordered."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Person, Role
from swingbot.service.bisect import resume
from swingbot.service.ports import RequestError
from swingbot.service.table import extend
from tests.asking import Serve
from tests.db.test_charges_crash import recorded, requests


@pytest.mark.parametrize("verb", ["extend", "resume"])
def test_who_comes_second_sees_what_the_first_did(
    verb: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve(SWINGBOT_WEB_TESTBOX_MINUTES="100000")
    site.web.token("Ada", Role.MODERATOR)
    ask = requests(site, Person(who="Ada", role=Role.MODERATOR, token=1))
    ask["compare" if verb == "extend" else "bisect"]()
    with site.web.engine.begin() as conn:
        conn.execute(sa.text("UPDATE bisection SET status = 'cancelled', ended_at = now()"))
    before = recorded(site)
    module: Any = {"extend": extend, "resume": resume}[verb]
    note, first, paid = module.note_extension, threading.Event(), threading.Event()

    def slowly(*given: Any) -> None:
        if not first.is_set():
            first.set()
            assert paid.wait(60.0)
        note(*given)

    monkeypatch.setattr(module, "note_extension", slowly)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(ask[verb])
        assert first.wait(60.0)
        other = threads.submit(ask[verb])
        end = time.monotonic() + 60.0
        while not _waits(site.web.engine):
            assert time.monotonic() < end and not other.done()
            time.sleep(0.02)
        paid.set()
        one.result(60.0)
        error = other.exception(60.0)
    added = {key: value - before[key] for key, value in recorded(site).items()}
    if verb == "extend":
        assert error is None and added["boots"] == 6.0, "three of each"
    else:
        assert isinstance(error, RequestError) and "is running" in str(error)


def _waits(engine: sa.Engine) -> bool:
    """Whether a transaction of this database waits for another."""
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with engine.connect() as conn:
        return bool(conn.execute(sa.text(query)).scalar_one())
