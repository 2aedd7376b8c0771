"""What each role may do in a real database, tried by logging in as it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner, Result

from swingbot.app import postgres
from swingbot.app.cli import main
from swingbot.app.keep.reader_watchdog import watching_readers
from swingbot.core.access.roles import Role
from swingbot.service.visible import VISIBLE, Visible
from swingbot_db import migrate, read, roles, scope
from swingbot_db.engine import make_engine
from swingbot_db.role_trials import REFUSED, trials
from tests import builders as make
from tests.dashboards import ROOT
from tests.database import own_server, own_template
from tests.fakes.mail import brain_environment
from tests.postgres import own_server as own_postgres
from tests.served import served

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


# The second comes first where row-level security limits the table (`engine.py`).
DENIED: Final = ("permission denied", "row-level security")


def refused(database: Database, role: str, statement: str) -> bool:
    try:
        database.as_(role, statement)
    except sa.exc.DBAPIError as error:
        return any(
            words in str(error.orig)
            for words in (*DENIED, "must be owner", "read-only transaction")
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


def database_roles(database: Database, *words: str) -> Result:
    url = database.url.render_as_string(hide_password=False)
    return CliRunner().invoke(main, ["db", "roles", *words], env={"SWINGBOT_DB_URL": url})


def test_every_wall_of_the_readers_holds_by_its_effect(database: Database) -> None:
    """`swingbot db roles --try`; each wall is also taken away, and then the trial says so."""
    with watching_readers(database.engine(roles.SERVICE)):
        tried = database_roles(database, "--try")
    assert tried.exit_code == 0, tried.output
    lines = [line.split() for line in tried.output.splitlines()]
    for role in roles.READERS:
        assert sum(line[0] == "held" and line[2] == role for line in lines) == len(REFUSED) + 2
    assert database.as_(roles.GRAFANA, "SHOW temp_file_limit") == [("128MB",)]


def test_the_limit_of_a_process_in_compose_ends_a_statement_that_takes_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a watchdog, and at once; what the service does needs less."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    limited, argv = f"--data={services['postgres']['ulimits']['data']}", postgres.argv
    monkeypatch.setattr(postgres, "argv", lambda state: ["prlimit", limited, *argv(state)])
    with own_postgres() as server:
        engine = make_engine(server.create("swingbot"))
        migrate.upgrade(engine)
        roles.make(engine, {})
        url = engine.url.set(username=roles.GRAFANA).render_as_string(hide_password=False)
        (memory,) = (trial for trial in trials(url) if trial.wall == "memory")
        engine.dispose()
    assert memory.held and "out of memory" in memory.saw


def test_a_wall_that_is_missing_is_named(database: Database) -> None:
    with database.admin.begin() as conn:
        conn.exec_driver_sql("GRANT EXECUTE ON FUNCTION lo_from_bytea(oid, bytea) TO PUBLIC")
        conn.exec_driver_sql(f"ALTER ROLE {roles.GRAFANA} RESET temp_file_limit")
        conn.exec_driver_sql("GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC")
    url = database.url.set(username=roles.GRAFANA).render_as_string(hide_password=False)
    with watching_readers(database.engine(roles.SERVICE)):
        failed = {trial.attempt for trial in trials(url) if not trial.held}
    assert failed == {"stores a large object", "sorts 200 MB in files", "runs a block of code"}
    assert database.as_(roles.OWNER, "SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]
    roles.make(database.admin, {})
    assert refused(database, roles.GRAFANA, "SELECT lo_from_bytea(0, 'x')")


def test_readers_call_no_function_with_effects(database: Database) -> None:
    """Whatever functions this server has: those that are volatile are refused, but a few."""
    callable_ = database.as_(
        roles.GRAFANA,
        "SELECT DISTINCT proname::text FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype"
        " WHERE provolatile = 'v' AND has_function_privilege(p.oid, 'EXECUTE')"
        " AND t.typname !~ 'handler$' AND t.typname NOT IN ('trigger', 'internal')",
    )
    assert {name for (name,) in callable_} == {
        "clock_timestamp",
        "current_query",
        "gen_random_uuid",
        "pg_is_in_recovery",
        "random",
        "timeofday",
    }


def test_settings_that_a_reader_stored_for_itself_go_with_the_next_grant(
    database: Database,
) -> None:
    name = database.url.database
    for words in ("", f' IN DATABASE "{name}"'):
        database.as_(
            roles.GRAFANA,
            f"SET TRANSACTION READ WRITE; ALTER ROLE {roles.GRAFANA}{words} SET work_mem = '1GB'",
        )
    assert database.as_(roles.GRAFANA, "SHOW work_mem") == [("1GB",)]
    roles.make(database.admin, {})
    assert database.as_(roles.GRAFANA, "SHOW work_mem") == [("4MB",)]
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
                "SELECT count(*) FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a"
                " JOIN pg_roles r ON r.oid = a.grantee WHERE c.relname = 'tree'"
                " AND r.rolname IN ('swingbot_service', 'swingbot_grafana')"
            ).scalar()
            == 0
        )
    engine.dispose()


def test_a_user_who_may_not_make_roles_is_told_so(database: Database) -> None:
    with pytest.raises(roles.RolesError, match=r"permission denied.*needs a database superuser"):
        roles.make(database.engine(roles.SERVICE), {})


def test_the_service_limits_transactions_to_groups(database: Database) -> None:
    with database.admin.begin() as conn:
        for name in ("mine", "theirs"):
            make.a_testbox(conn, name)
    with database.engine(roles.SERVICE).connect() as conn:
        assert read.can_limit(conn)
        conn.rollback()
        before = VISIBLE.set(Visible(groups=("mine",)))
        try:
            assert read.testbox_groups(conn) == ["mine"]
        finally:
            VISIBLE.reset(before)
        conn.rollback()
        assert read.testbox_groups(conn) == ["mine", "theirs"]


def test_tokens_of_few_groups_are_refused_without_the_role(tmp_path: Path) -> None:
    closed = {"SWINGBOT_WEB_READ": "token", "SWINGBOT_WEB_METRICS": "token"}
    with own_postgres() as server:
        url = server.create("swingbot")
        admin = make_engine(url)
        migrate.upgrade(admin)
        with served(url, tmp_path, filled=False, **closed) as site:
            make.a_testbox(site.conn, "few")
            site.conn.commit()
            few = site.token("Pat", Role.READER, ("few",))
            all_ = site.token("Opal", Role.OPERATOR)
            get = functools.partial(site.client.get, headers=few)
            assert len(get("/testboxes.json").json()) == 1
            with admin.begin() as conn:
                conn.exec_driver_sql("DROP OWNED BY swingbot_scoped; DROP ROLE swingbot_scoped")
            refused = get("/testboxes.json")
            sentence = refused.json()["detail"]
            assert refused.status_code == 503 and "swingbot db roles" in sentence
            page = get("/testboxes", headers=few | {"accept": "text/html"})
            assert page.status_code == 503 and "swingbot db roles" in page.text
            words = ("token", "create", "Pia", "--role", "reader", "--group", "few")
            environment = brain_environment(tmp_path / "state", url) | closed
            created = CliRunner().invoke(main, words, env=environment)
            assert created.exit_code == 2 and sentence in created.output, created.output
            status = site.client.get("/status.json", headers=all_).json()
            assert f"1 token: {sentence}" in [p["text"] for p in status["problems"]]
            roles.make(admin, {})
            assert get("/testboxes.json").status_code == 503  # it has no rights yet
            migrate.upgrade(admin)
            assert len(get("/testboxes.json").json()) == 1
        admin.dispose()


@pytest.mark.parametrize("table", ["testbox", "comparison"])
def test_rows_are_not_hidden_from_a_service_that_lacks_a_right(
    database: Database, table: str
) -> None:
    with database.admin.begin() as conn:
        conn.exec_driver_sql("ALTER ROLE swingbot_service NOBYPASSRLS")
    with pytest.raises(sa.exc.ProgrammingError, match="row-level security"):
        database.as_(roles.SERVICE, f"COPY {table} TO STDOUT")
    with pytest.raises(sa.exc.ProgrammingError, match="row-level security"):
        database.as_(roles.SERVICE, f"SELECT count(*) FROM {table}")
    roles.make(database.admin, {})
    assert database.as_(roles.SERVICE, f"SELECT count(*) FROM {table}") == [(0,)]


def test_an_upgrade_replaces_views_of_few_groups_that_have_other_columns(
    database: Database,
) -> None:
    columns = (
        "SELECT column_name FROM information_schema.columns"
        " WHERE table_schema = 'swingbot_scoped' AND table_name = 'v_some'"
    )
    with database.engine(roles.OWNER).begin() as conn:
        for one in ("name", "tbox_group"):
            scope.limit_rows(conn, [f"CREATE OR REPLACE VIEW v_some AS SELECT {one} FROM testbox"])
            assert conn.exec_driver_sql(columns).scalars().all() == [one]
        scope.forget_rows(conn)  # as before a migration, which may change what they read
        assert conn.exec_driver_sql("SELECT count(*) FROM pg_policies").scalar() == 0
        assert conn.exec_driver_sql(columns).scalars().all() == []
