"""What each role may do in a real database, tried by logging in as it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from swingbot_db import migrate, roles
from swingbot_db.engine import make_engine
from tests.database import own_server, own_template

# Roles belong to a whole server.
pg, template = own_server, own_template

SECRET = "s3cret-of-the-service"


class Database:
    """A migrated database with its roles; `as_(role)` is a connection that logs in as one."""

    def __init__(self, url: str) -> None:
        self.url = sa.make_url(url)
        self._engines: list[sa.Engine] = []
        self.admin = self.engine(None)
        with self.admin.begin() as conn:  # as Buildbot does: tables of its own beside ours
            conn.exec_driver_sql(
                "CREATE TABLE public.buildrequests (id serial PRIMARY KEY, complete int)"
            )
            conn.exec_driver_sql("CREATE TABLE public.alembic_version (version_num text)")
        roles.make(self.admin, {roles.SERVICE: SECRET})

    def engine(self, role: str | None) -> sa.Engine:
        url = self.url.set(username=role) if role else self.url
        self._engines.append(make_engine(url.render_as_string(hide_password=False)))
        return self._engines[-1]

    def as_(self, role: str, statement: str) -> list[tuple[object, ...]]:
        engine = self.engine(role)
        try:
            with engine.begin() as conn:
                result = conn.exec_driver_sql(statement)
                return [tuple(row) for row in result] if result.returns_rows else []
        finally:
            engine.dispose()  # the readers' roles have few connections

    def close(self) -> None:
        for one in self._engines:
            one.dispose()


@pytest.fixture
def database(fresh_databases: Callable[[], str]) -> Iterator[Database]:
    made = Database(fresh_databases())
    yield made
    made.close()


def refused(database: Database, role: str, statement: str) -> bool:
    try:
        database.as_(role, statement)
    except sa.exc.DBAPIError as error:
        return any(
            words in str(error.orig)
            for words in ("permission denied", "must be owner", "read-only transaction")
        )
    return False


def test_the_service_reads_and_writes_rows_of_ours_and_of_buildbot(database: Database) -> None:
    database.as_(
        roles.SERVICE,
        "INSERT INTO tree (name, url, branch, base_commit) VALUES ('t', 'u', 'b', repeat('1', 40))",
    )
    assert database.as_(roles.SERVICE, "UPDATE tree SET branch = 'c' RETURNING name") == [("t",)]
    assert database.as_(
        roles.SERVICE, "INSERT INTO public.buildrequests (complete) VALUES (0) RETURNING id"
    ) == [(1,)]
    assert database.as_(roles.SERVICE, "SELECT count(*) FROM v_attempts") == [(0,)]
    database.as_(roles.SERVICE, "LISTEN swingbot")
    database.as_(roles.SERVICE, "DELETE FROM tree")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE tree CASCADE",
        "DROP VIEW v_attempts",
        "DROP SCHEMA swingbot CASCADE",
        "ALTER TABLE tree ADD COLUMN x int",
        "TRUNCATE tree CASCADE",
        "CREATE TABLE swingbot.mine (x int)",
        "CREATE TABLE public.mine (x int)",
        "CREATE SCHEMA mine",
        "CREATE TEMPORARY TABLE mine (x int)",
        "CREATE ROLE mine",
        "SET ROLE swingbot_owner",
        "UPDATE schema_revision SET version_num = '0001'",
        "UPDATE public.alembic_version SET version_num = 'x'",
        "DROP TABLE public.buildrequests",
    ],
)
def test_the_service_makes_and_drops_nothing(database: Database, statement: str) -> None:
    assert refused(database, roles.SERVICE, statement)


def test_grafana_reads_the_views_of_panels_and_no_table(database: Database) -> None:
    with database.admin.connect() as conn:
        inspector = sa.inspect(conn)
        views, tables = inspector.get_view_names("swingbot"), inspector.get_table_names("swingbot")
    assert len(views) > 10 and {"report", "outbox"} & set(tables)
    for view in views:
        assert refused(database, roles.GRAFANA, f"SELECT 1 FROM swingbot.{view} LIMIT 1") == (
            not view.startswith("v_")
        )
    for table in [
        *(f"swingbot.{name}" for name in tables),
        "public.buildrequests",
        "public.alembic_version",
    ]:
        assert refused(database, roles.GRAFANA, f"SELECT 1 FROM {table} LIMIT 1"), table


def test_grafana_changes_nothing(database: Database) -> None:
    for statement in (
        "INSERT INTO tree (name) VALUES ('t')",
        "CREATE TABLE x (x int)",
        "CREATE TEMPORARY TABLE x (x int)",
        "DELETE FROM tree",
    ):
        assert refused(database, roles.GRAFANA, statement), statement
    assert database.as_(roles.GRAFANA, "SHOW default_transaction_read_only") == [("on",)]


def test_the_owner_migrates_and_rights_follow_what_is_new(database: Database) -> None:
    owner = database.engine(roles.OWNER)
    with owner.begin() as conn:
        conn.exec_driver_sql("CREATE TABLE later (id serial PRIMARY KEY)")
        conn.exec_driver_sql("CREATE VIEW v_later AS SELECT id FROM later")
        conn.exec_driver_sql("CREATE TABLE public.buildbot_later (id serial PRIMARY KEY)")
    assert database.as_(roles.SERVICE, "INSERT INTO later DEFAULT VALUES RETURNING id") == [(1,)]
    assert database.as_(
        roles.SERVICE, "INSERT INTO public.buildbot_later DEFAULT VALUES RETURNING id"
    ) == [(1,)]
    assert refused(database, roles.GRAFANA, "SELECT * FROM v_later")
    migrate.upgrade(owner)  # recreates the views and Grafana's privileges on them
    assert database.as_(roles.GRAFANA, "SELECT * FROM v_later") == [(1,)]
    assert database.as_(roles.GRAFANA, "SELECT count(*) FROM v_attempts") == [(0,)]
    assert refused(database, roles.GRAFANA, "SELECT * FROM later")


def test_a_database_is_made_from_nothing_by_the_owner_alone(
    fresh_databases: Callable[[], str],
) -> None:
    database = Database(fresh_databases())
    try:
        with database.admin.begin() as conn:
            conn.exec_driver_sql("DROP SCHEMA swingbot CASCADE")
        migrate.upgrade(database.engine(roles.OWNER))
        assert database.as_(roles.SERVICE, "SELECT count(*) FROM tree") == [(0,)]
        assert database.as_(roles.GRAFANA, "SELECT count(*) FROM v_attempts") == [(0,)]
    finally:
        database.close()


def test_nobody_else_may_connect(database: Database) -> None:
    with database.admin.begin() as conn:
        conn.exec_driver_sql("DROP ROLE IF EXISTS swingbot_test_stranger")
        conn.exec_driver_sql("CREATE ROLE swingbot_test_stranger LOGIN")
    try:
        with pytest.raises(sa.exc.OperationalError, match="permission denied for database"):
            database.as_("swingbot_test_stranger", "SELECT 1")
    finally:
        with database.admin.begin() as conn:
            conn.exec_driver_sql("DROP ROLE swingbot_test_stranger")


def test_passwords_are_kept_as_verifiers_and_making_the_roles_again_keeps_them(
    database: Database,
) -> None:
    def kept() -> str:
        with database.admin.connect() as conn:
            return str(
                conn.exec_driver_sql(
                    "SELECT rolpassword FROM pg_authid WHERE rolname = 'swingbot_service'"
                ).scalar()
            )

    before = kept()
    assert before.startswith("SCRAM-SHA-256$") and SECRET not in before
    roles.make(database.admin, {})
    assert kept() == before


def test_one_user_who_does_everything_needs_no_roles(fresh_databases: Callable[[], str]) -> None:
    engine = make_engine(fresh_databases())
    migrate.upgrade(engine)
    with engine.begin() as conn:
        roles.grant(conn)
        assert (
            conn.exec_driver_sql(
                "SELECT count(*) FROM pg_class WHERE relname = 'tree' AND relacl IS NOT NULL"
            ).scalar()
            == 0
        )
    engine.dispose()


def test_a_user_who_may_not_make_roles_is_told_so(database: Database) -> None:
    with pytest.raises(roles.RolesError, match=r"permission denied.*needs a database superuser"):
        roles.make(database.engine(roles.SERVICE), {})
