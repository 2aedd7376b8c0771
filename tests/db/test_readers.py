"""Visitors of boards can send any statement as Grafana's roles. In a real PostgreSQL: whatever
they set, their statements end, and alerts are evaluated meanwhile."""

from __future__ import annotations

import dataclasses
import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa
import yaml

from swingbot.app.keep.reader_watchdog import private_bytes, watching_readers
from swingbot.app.loop import _Alarm
from swingbot.app.settings import load
from swingbot.core.model.dispatch import DatabaseAway
from swingbot_db import limits, roles
from swingbot_db.listener import Listener
from swingbot_db.readers import EndedSession, SessionProcess, WatchdogError, end_long_sessions
from tests.dashboards import ROOT
from tests.database import own_server, own_template
from tests.role_database import RoleDatabase

# Roles belong to a whole server.
pg, template = own_server, own_template

ENDLESS = "SELECT count(*) FROM (SELECT generate_series(1, 1000000000000)) x"
FOREVER = f"SET statement_timeout = 0; {ENDLESS}"
# 300 MB that the server keeps while it counts.
LARGE = (
    "SET statement_timeout = 0; SET work_mem = '1GB';"
    " WITH large AS MATERIALIZED (SELECT repeat('x', 300000000)) SELECT count(*) FROM large,"
    " LATERAL (SELECT generate_series(1, 1000000000000)) x"
)
(GROUP,) = yaml.safe_load((ROOT / "dashboards/provisioning/alerting/swingbot.yaml").read_text())[
    "groups"
]


@pytest.fixture
def place(fresh_databases: Callable[[], str]) -> Iterator[RoleDatabase]:
    url = fresh_databases()
    with ExitStack() as stack:
        yield RoleDatabase(url, stack)


class Attacker(threading.Thread):
    """Sends one message and waits for its answer; `error` is what came of it."""

    def __init__(self, session: psycopg2.extensions.connection, message: str) -> None:
        super().__init__(daemon=True)
        self._session, self._message, self.error = session, message, ""
        self.start()

    def run(self) -> None:
        try:
            self._session.cursor().execute(self._message)
        except psycopg2.Error as error:
            self.error = str(error)


def read_on(listener: Listener) -> None:
    while True:
        select.select([listener], [], [])
        listener.heard()


def is_alive(session: psycopg2.extensions.connection) -> bool:
    try:
        session.cursor().execute("SELECT 1")
    except psycopg2.Error:
        return False
    return True


@pytest.mark.parametrize("role", roles.READERS)
@pytest.mark.parametrize(
    "message",
    [
        FOREVER,
        f"SET statement_timeout = 0; BEGIN; SELECT count(*) FROM v_swings; {ENDLESS}",
    ],
    ids=["one statement", "several in one message"],
)
def test_a_statement_ends_whatever_its_session_set(
    place: RoleDatabase, role: str, message: str
) -> None:
    attacker = Attacker(place.session(role), message)
    with watching_readers(place.engine(roles.SERVICE), longest=1, poll=0.1):
        attacker.join(120)
    assert not attacker.is_alive()
    # which of the two libpq says depends on when it reads
    assert "administrator command" in attacker.error or "closed the connection" in attacker.error


def test_while_all_connections_of_panels_are_taken_alerts_are_evaluated(
    place: RoleDatabase,
) -> None:
    attackers = [Attacker(place.session(roles.GRAFANA), FOREVER) for _ in range(5)]
    alerts = place.session(roles.ALERTS)
    for rule in GROUP["rules"]:
        cursor = alerts.cursor()
        cursor.execute(rule["data"][0]["model"]["rawSql"])
        cursor.fetchall()
    assert all(attacker.is_alive() for attacker in attackers)
    with watching_readers(place.engine(roles.SERVICE), longest=1, poll=0.1):
        for attacker in attackers:
            attacker.join(120)
    assert not any(attacker.is_alive() for attacker in attackers)
    assert is_alive(alerts)


def test_an_open_transaction_without_a_statement_ends(place: RoleDatabase) -> None:
    session = place.session(roles.GRAFANA)
    session.cursor().execute("SET idle_in_transaction_session_timeout = 0")
    session.cursor().execute("BEGIN; SELECT count(*) FROM v_swings")
    assert end_long_sessions(place.engine(roles.SERVICE), 3600, private_bytes) == []
    (ended,) = end_long_sessions(place.engine(roles.SERVICE), 0, private_bytes)
    assert (ended.role, ended.query) == (roles.GRAFANA, "BEGIN; SELECT count(*) FROM v_swings")
    assert not is_alive(session)


def test_a_session_that_takes_much_memory_ends_and_others_stay(place: RoleDatabase) -> None:
    attacker, idle = (
        Attacker(place.session(roles.GRAFANA), LARGE),
        place.session(roles.GRAFANA),
    )
    ended: list[EndedSession] = []
    while not ended and attacker.is_alive():
        ended = end_long_sessions(place.engine(roles.SERVICE), 3600, private_bytes)
    (large,) = ended
    assert large.memory > limits.READER_BYTES // 2 and large.query.endswith(LARGE[-40:])
    attacker.join(60)
    assert not attacker.is_alive() and is_alive(idle)


def test_sessions_that_take_much_memory_together_end_the_largest_first(place: RoleDatabase) -> None:
    sessions = [place.session(role) for role in (roles.GRAFANA, roles.GRAFANA, roles.ALERTS)]
    sizes = dict(zip((one.info.backend_pid for one in sessions), (200, 150, 100), strict=True))
    engine, spare = place.engine(roles.SERVICE), place.session(roles.GRAFANA)
    ended = end_long_sessions(engine, 3600, lambda one: sizes.get(one.pid, 0) << 20)
    assert [one.memory >> 20 for one in ended] == [200]
    assert [is_alive(one) for one in (*sessions, spare)] == [False, True, True, True]


def test_memory_of_processes_of_other_hosts_is_not_measured(place: RoleDatabase) -> None:
    process = SessionProcess(session=os.getpid(), pid=os.getpid(), role=roles.GRAFANA)
    assert private_bytes(process) == 0
    backend = place.session(roles.GRAFANA).info.backend_pid
    own = SessionProcess(session=backend, pid=backend, role=roles.GRAFANA)
    assert private_bytes(own) > 100_000
    assert private_bytes(dataclasses.replace(own, role=roles.ALERTS)) == 0


def test_a_full_queue_of_notifications_ends_readers_and_listeners(place: RoleDatabase) -> None:
    """A session that listens and reads nothing keeps the queue; a full one stops every writer."""
    reader, other = place.session(roles.GRAFANA), place.session(roles.SERVICE)
    listener = Listener(place.engine(roles.SERVICE))
    reader.cursor().execute("SET default_transaction_read_only = off; NOTIFY swingbot, 'tree'")
    engine = place.engine(roles.SERVICE)
    assert end_long_sessions(engine, 3600, private_bytes) == []
    ended = end_long_sessions(engine, 3600, private_bytes, queue=-1.0)
    assert sorted(one.role for one in ended) == [roles.GRAFANA, roles.SERVICE]
    assert not is_alive(reader) and is_alive(other)
    with pytest.raises(DatabaseAway):  # when the server gets to it
        read_on(listener)


def test_a_flood_of_notifications_wakes_no_round_and_a_change_within_it_does(
    place: RoleDatabase,
) -> None:
    alarm, service = _Alarm(place.engine(roles.SERVICE)), place.session(roles.SERVICE)
    service.cursor().execute("DELETE FROM swingbot.unseen")
    over, sent = threading.Event(), []
    session = place.session(roles.GRAFANA)
    session.cursor().execute("SET default_transaction_read_only = off")

    def flood() -> None:
        while not over.is_set():
            session.cursor().execute(f"NOTIFY swingbot, '{'x' * 7000}'")
            sent.append(1)

    flooder = threading.Thread(target=flood)
    flooder.start()
    try:
        slept = 0
        while slept < 4 or (len(sent) <= 10 and flooder.is_alive()):
            assert not alarm.sleep(0.5)
            slept += 1
        assert len(sent) > 10
        service.cursor().execute("INSERT INTO swingbot.unseen DEFAULT VALUES")
        assert any(alarm.sleep(2.0) for _ in range(30))
    finally:
        over.set()
        flooder.join(60)


def test_a_listener_that_cannot_keep_up_starts_over(
    place: RoleDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, service = place.engine(roles.SERVICE), place.session(roles.SERVICE)
    listener, many = Listener(engine), "SELECT pg_notify('swingbot', repeat('x', 7000) || g)"
    service.cursor().execute(f"{many} FROM generate_series(1, 200) g")
    monkeypatch.setattr(limits, "NOTIFICATIONS", 2)

    with pytest.raises(DatabaseAway, match="faster than they are read"):
        read_on(listener)
    listener.close()
    assert Listener(engine).heard() == set()


def test_a_reader_cannot_keep_a_lock_of_the_service(place: RoleDatabase) -> None:
    session = place.session(roles.GRAFANA)
    with place.engine(None).begin() as conn:  # roles that an older version made
        conn.exec_driver_sql("GRANT EXECUTE ON FUNCTION pg_advisory_lock(bigint) TO PUBLIC")
    session.cursor().execute("SELECT pg_advisory_lock(42)")
    assert len(end_long_sessions(place.engine(roles.SERVICE), 3600, private_bytes)) == 1
    assert not is_alive(session)


def test_other_sessions_stay(place: RoleDatabase) -> None:
    """Idle ones of the readers, which Grafana keeps, and those of the service."""
    idle, service = place.session(roles.GRAFANA), place.session(roles.SERVICE)
    service.cursor().execute("BEGIN; SELECT pg_advisory_lock(42)")
    assert is_alive(idle)
    assert end_long_sessions(place.engine(roles.SERVICE), 0, private_bytes) == []
    assert is_alive(idle) and is_alive(service)


def test_each_reader_has_a_limited_number_of_connections(place: RoleDatabase) -> None:
    for role, most in ((roles.GRAFANA, 10), (roles.ALERTS, 5)):
        for _ in range(most):
            place.session(role)
        with pytest.raises(psycopg2.OperationalError, match="too many connections for role"):
            place.session(role)


def test_the_service_ends_no_session_without_taking_the_role(place: RoleDatabase) -> None:
    session = place.session(roles.GRAFANA)
    with (
        place.engine(roles.SERVICE).connect() as conn,
        pytest.raises(sa.exc.ProgrammingError, match="permission denied|must be a member"),
    ):
        conn.exec_driver_sql(f"SELECT pg_terminate_backend({session.info.backend_pid})")
    assert is_alive(session)


def test_a_user_without_the_role_is_told_what_to_do(place: RoleDatabase) -> None:
    with place.engine(None).begin() as conn:
        conn.exec_driver_sql(f"REVOKE {roles.WATCHDOG} FROM {roles.SERVICE}")
    with pytest.raises(WatchdogError, match="swingbot db roles"):
        end_long_sessions(place.engine(roles.SERVICE), 30, private_bytes)
    roles.make(place.engine(None), {})
    assert end_long_sessions(place.engine(roles.SERVICE), 30, private_bytes) == []


def test_the_web_service_watches(
    place: RoleDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve` runs its server inside the watch."""
    from swingbot.app import web

    attacker = Attacker(place.session(roles.GRAFANA), FOREVER)

    class Server:
        def __init__(self, *given: object) -> None: ...

        def run(self) -> None:
            attacker.join(120)

    monkeypatch.setattr(web, "BeatingServer", Server)
    monkeypatch.setattr(web, "service", lambda settings, engine: None)
    monkeypatch.setattr(web, "watching_readers", lambda e: watching_readers(e, longest=1, poll=0.1))
    web.serve(load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)}), place.engine(roles.SERVICE))
    assert not attacker.is_alive()
