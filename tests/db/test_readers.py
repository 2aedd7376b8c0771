"""Visitors of boards can send any statement as Grafana's roles. In a real PostgreSQL: whatever
they set, their statements end, and alerts are evaluated meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa
import yaml

from swingbot.app.keep.reader_watchdog import watching_readers
from swingbot.app.settings import load
from swingbot_db import migrate, roles
from swingbot_db.engine import make_engine
from swingbot_db.readers import WatchdogError, end_long_sessions
from tests.dashboards import ROOT
from tests.database import own_server, own_template

# Roles belong to a whole server.
pg, template = own_server, own_template

LOOP = "DO $$ BEGIN LOOP PERFORM pg_sleep(0.1); COMMIT; END LOOP; END $$"
FOREVER = "SET statement_timeout = 0; SELECT pg_sleep(86400)"
(GROUP,) = yaml.safe_load((ROOT / "dashboards/provisioning/alerting/swingbot.yaml").read_text())[
    "groups"
]


class Place:
    """A migrated database with its roles; sessions of a role are closed at the end."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.url, self._stack = sa.make_url(url), stack
        admin = self.engine(None)
        roles.make(admin, {})
        with admin.connect() as conn:
            migrate.upgrade(self.engine(roles.OWNER))
            assert conn.exec_driver_sql("SELECT count(*) FROM swingbot.v_swings").scalar() == 0

    def engine(self, role: str | None) -> sa.Engine:
        url = self.url.set(username=role) if role else self.url
        made = make_engine(url.render_as_string(hide_password=False))
        self._stack.callback(made.dispose)
        return made

    def session(self, role: str) -> psycopg2.extensions.connection:
        """A session as Grafana's driver has it: each statement is a transaction of its own."""
        url = self.url.set(username=role, drivername="postgresql")
        session = psycopg2.connect(url.render_as_string(hide_password=False))
        session.autocommit = True
        self._stack.callback(session.close)
        return session


@pytest.fixture
def place(fresh_databases: Callable[[], str]) -> Iterator[Place]:
    url = fresh_databases()
    with ExitStack() as stack:
        yield Place(url, stack)


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
        "SET statement_timeout = 0; BEGIN; SELECT pg_sleep(43200); COMMIT; SELECT pg_sleep(43200)",
        LOOP,
    ],
    ids=["one statement", "several in one message", "a loop that commits"],
)
def test_a_statement_ends_whatever_its_session_set(place: Place, role: str, message: str) -> None:
    attacker = Attacker(place.session(role), message)
    with watching_readers(place.engine(roles.SERVICE), longest=1, poll=0.1):
        attacker.join(120)
    assert not attacker.is_alive()
    # which of the two libpq says depends on when it reads
    assert "administrator command" in attacker.error or "closed the connection" in attacker.error


def test_while_all_connections_of_panels_are_taken_alerts_are_evaluated(place: Place) -> None:
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


def test_an_open_transaction_without_a_statement_ends(place: Place) -> None:
    session = place.session(roles.GRAFANA)
    session.cursor().execute("SET idle_in_transaction_session_timeout = 0")
    session.cursor().execute("BEGIN; SELECT count(*) FROM v_swings")
    assert end_long_sessions(place.engine(roles.SERVICE), 3600) == []
    (ended,) = end_long_sessions(place.engine(roles.SERVICE), 0)
    assert (ended.role, ended.query) == (roles.GRAFANA, "BEGIN; SELECT count(*) FROM v_swings")
    assert not is_alive(session)


def test_a_reader_cannot_keep_a_lock_of_the_service(place: Place) -> None:
    session = place.session(roles.GRAFANA)
    session.cursor().execute("SELECT pg_advisory_lock(42)")
    assert len(end_long_sessions(place.engine(roles.SERVICE), 3600)) == 1
    assert not is_alive(session)


def test_other_sessions_stay(place: Place) -> None:
    """Idle ones of the readers, which Grafana keeps, and those of the service."""
    idle, service = place.session(roles.GRAFANA), place.session(roles.SERVICE)
    service.cursor().execute("BEGIN; SELECT pg_advisory_lock(42)")
    assert is_alive(idle)
    assert end_long_sessions(place.engine(roles.SERVICE), 0) == []
    assert is_alive(idle) and is_alive(service)


def test_each_reader_has_a_limited_number_of_connections(place: Place) -> None:
    for role, most in ((roles.GRAFANA, 10), (roles.ALERTS, 5)):
        for _ in range(most):
            place.session(role)
        with pytest.raises(psycopg2.OperationalError, match="too many connections for role"):
            place.session(role)


def test_the_service_ends_no_session_without_taking_the_role(place: Place) -> None:
    session = place.session(roles.GRAFANA)
    with (
        place.engine(roles.SERVICE).connect() as conn,
        pytest.raises(sa.exc.ProgrammingError, match="permission denied|must be a member"),
    ):
        conn.exec_driver_sql(f"SELECT pg_terminate_backend({session.info.backend_pid})")
    assert is_alive(session)


def test_a_user_without_the_role_is_told_what_to_do(place: Place) -> None:
    with place.engine(None).begin() as conn:
        conn.exec_driver_sql(f"REVOKE {roles.WATCHDOG} FROM {roles.SERVICE}")
    with pytest.raises(WatchdogError, match="swingbot db roles"):
        end_long_sessions(place.engine(roles.SERVICE), 30)
    roles.make(place.engine(None), {})
    assert end_long_sessions(place.engine(roles.SERVICE), 30) == []


def test_the_web_service_watches(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
