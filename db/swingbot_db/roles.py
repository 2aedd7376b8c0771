"""Database roles: an owner that migrates, the service that reads and writes, Grafana that reads.

    swingbot_owner    owns schemas, tables and views of swingbot and Buildbot; only for
                      `swingbot db upgrade`
    swingbot_service  reads and writes rows; creates, alters and drops nothing
    swingbot_grafana  reads the views of panels (v_*); anyone who sees a board may use it
    swingbot_alerts   the same for Grafana's alert rules, with connections of its own
    swingbot_watchdog cannot log in; the service takes it to end sessions of these two
    swingbot_scoped   cannot log in; the service takes it for tokens limited to groups (`scope.py`)
    swingbot_changes  the same for tokens that see no levels
    swingbot_person   the same for all but operators, once a request is private

Workers have no role, because they never connect to the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import psycopg2.extensions
import sqlalchemy as sa

OWNER: Final = "swingbot_owner"
SERVICE: Final = "swingbot_service"
GRAFANA: Final = "swingbot_grafana"
ALERTS: Final = "swingbot_alerts"
WATCHDOG: Final = "swingbot_watchdog"
READERS: Final = (GRAFANA, ALERTS)
ROLES: Final = (OWNER, SERVICE, *READERS)  # which log in

_MAKE: Final = """
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['swingbot_owner', 'swingbot_service', 'swingbot_grafana',
      'swingbot_alerts', 'swingbot_watchdog', 'swingbot_scoped',
      'swingbot_changes', 'swingbot_person'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION',
              wanted);
        END IF;
    END LOOP;
END $$;
-- Statements of the readers end by swingbot_db.readers: these settings are defaults that a session
-- can lift. The service has the watchdog's rights only in transactions that ask for them.
ALTER ROLE swingbot_watchdog NOLOGIN;
GRANT pg_signal_backend, pg_read_all_stats TO swingbot_watchdog;
ALTER ROLE swingbot_service NOINHERIT BYPASSRLS;
ALTER ROLE swingbot_scoped NOLOGIN;
ALTER ROLE swingbot_changes NOLOGIN;
ALTER ROLE swingbot_person NOLOGIN;
GRANT swingbot_watchdog, swingbot_scoped, swingbot_changes, swingbot_person TO swingbot_service;
DO $$
DECLARE
    reader text;
    own record;
BEGIN
    FOREACH reader IN ARRAY ARRAY['swingbot_grafana', 'swingbot_alerts'] LOOP
        -- Every role may store settings of its own.
        FOR own IN SELECT d.datname AS name FROM pg_db_role_setting s JOIN pg_roles r ON r.oid =
          s.setrole JOIN pg_database d ON d.oid = s.setdatabase WHERE r.rolname = reader LOOP
            EXECUTE format('ALTER ROLE %I IN DATABASE %I RESET ALL', reader, own.name);
        END LOOP;
        EXECUTE format('ALTER ROLE %I RESET ALL', reader);
        EXECUTE format('ALTER ROLE %I SET default_transaction_read_only = on', reader);
        EXECUTE format('ALTER ROLE %I SET search_path = swingbot', reader);
        -- Of each process; only a superuser may raise it.
        EXECUTE format('ALTER ROLE %I SET temp_file_limit = ''128MB''', reader);
    END LOOP;
END $$;
ALTER ROLE swingbot_alerts SET statement_timeout = '10s';
ALTER ROLE swingbot_alerts CONNECTION LIMIT 5;
ALTER ROLE swingbot_grafana SET statement_timeout = '30s';
ALTER ROLE swingbot_grafana CONNECTION LIMIT 10
"""

# The database belongs to swingbot: the owner owns everything in its two schemas, except members
# of extensions.
_OWN: Final = """
DO $$
DECLARE
    found record;
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO swingbot_owner',
      current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO swingbot_service, swingbot_grafana,
      swingbot_alerts',
      current_database());
    CREATE SCHEMA IF NOT EXISTS swingbot;
    ALTER SCHEMA swingbot OWNER TO swingbot_owner;
    CREATE SCHEMA IF NOT EXISTS swingbot_scoped;
    ALTER SCHEMA swingbot_scoped OWNER TO swingbot_owner;
    CREATE SCHEMA IF NOT EXISTS swingbot_changes;
    ALTER SCHEMA swingbot_changes OWNER TO swingbot_owner;
    ALTER SCHEMA public OWNER TO swingbot_owner;
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    FOR found IN
        SELECT c.oid::regclass AS name, CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN
          'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS what
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('swingbot', 'swingbot_scoped', 'swingbot_changes', 'public')
          AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
          AND pg_get_userbyid(c.relowner) <> 'swingbot_owner'
          AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = c.oid AND d.deptype IN ('e', 'a', 'i'))
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO swingbot_owner', found.what, found.name);
    END LOOP;
    FOR found IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
          JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname IN ('swingbot', 'swingbot_scoped', 'swingbot_changes', 'public')
          AND pg_get_userbyid(p.proowner) <> 'swingbot_owner'
          AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
            AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO swingbot_owner', found.name);
    END LOOP;
END $$
"""

# PostgreSQL lets everybody call what writes large objects, fills the log, locks, sleeps and runs
# code. Volatile functions are what may have effects; those of other servers are not listed here.
_DENY: Final = """
DO $$
DECLARE
    found record;
BEGIN
    GRANT USAGE ON LANGUAGE plpgsql TO swingbot_owner;
    REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
    FOR found IN
        SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace
          AND (p.provolatile = 'v' OR p.proname IN ('pg_current_xact_id', 'txid_current'))
          AND p.proname NOT IN ('clock_timestamp', 'current_query', 'gen_random_uuid',
            'pg_is_in_recovery', 'random', 'timeofday')
          AND p.prorettype::regtype::text !~ '(_handler|trigger|internal)$'
          AND has_function_privilege('public', p.oid, 'EXECUTE')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO swingbot_owner, swingbot_service,
          swingbot_watchdog', found.name);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found.name);
    END LOOP;
END $$
"""

# Grants that the owner can repeat after each upgrade: recreated views have lost their grants.
_GRANT: Final = """
DO $$
DECLARE
    found record;
    reader record;
BEGIN
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('swingbot_service', 'swingbot_grafana')) < 2
      OR current_user <> 'swingbot_owner' THEN
        RETURN;  -- one user does everything, as in the embedded service
    END IF;
    GRANT USAGE ON SCHEMA swingbot, public TO swingbot_service;
    FOR found IN
        SELECT c.oid::regclass AS name, c.relkind AS kind, (n.nspname, c.relname) IN (('swingbot',
          'schema_revision'), ('public', 'alembic_version')) AS versions
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('swingbot', 'public') AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
          AND pg_get_userbyid(c.relowner) = current_user
    LOOP
        IF found.kind = 'S' THEN
            EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO swingbot_service', found.name);
        ELSIF found.versions THEN
            EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %s FROM swingbot_service', found.name);
            EXECUTE format('GRANT SELECT ON %s TO swingbot_service', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO swingbot_service',
              found.name);
        END IF;
        IF found.kind <> 'S' THEN
            FOR reader IN SELECT rolname AS name FROM pg_roles WHERE rolname IN
              ('swingbot_grafana', 'swingbot_alerts') LOOP
                EXECUTE format('REVOKE ALL ON %s FROM %I', found.name, reader.name);
            END LOOP;
        END IF;
    END LOOP;
    ALTER DEFAULT PRIVILEGES IN SCHEMA swingbot, public GRANT SELECT, INSERT, UPDATE, DELETE ON
      TABLES TO swingbot_service;
    ALTER DEFAULT PRIVILEGES IN SCHEMA swingbot, public GRANT USAGE, SELECT ON SEQUENCES TO
      swingbot_service;
END $$
"""

_GRANT_VIEWS: Final = """
DO $$
DECLARE
    found record;
    reader record;
BEGIN
    FOR reader IN SELECT rolname AS name FROM pg_roles WHERE rolname IN
      ('swingbot_grafana', 'swingbot_alerts') LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA swingbot TO %I', reader.name);
        FOR found IN SELECT viewname AS name FROM pg_views WHERE schemaname = 'swingbot'
          AND viewname LIKE 'v\\_%' LOOP
            EXECUTE format('GRANT SELECT ON swingbot.%I TO %I', found.name, reader.name);
        END LOOP;
    END LOOP;
END $$
"""


class RolesError(Exception):
    """This user cannot create the roles; the message says what is needed."""


def make(engine: sa.Engine, passwords: Mapping[str, str]) -> None:
    """Create the roles, grant their rights in this database and set passwords. Idempotent.

    Grafana's password is also that of its alerts, because one process uses both. The engine's user
    is a superuser. Raises RolesError.
    """
    try:
        with engine.begin() as conn:
            conn.exec_driver_sql(_MAKE.replace("%", "%%"))
            alerts = {ALERTS: passwords[GRAFANA]} if GRAFANA in passwords else {}
            for role, password in (alerts | dict(passwords)).items():
                _set_password(conn, role, password)
            conn.exec_driver_sql(_OWN.replace("%", "%%"))
            conn.exec_driver_sql(_DENY.replace("%", "%%"))
            conn.exec_driver_sql("SET LOCAL ROLE swingbot_owner")
            grant(conn)
    except sa.exc.ProgrammingError as error:
        words = str(error.orig).strip().splitlines()[0]
        raise RolesError(
            f"{words}: `swingbot db roles` needs a database superuser; specify one with --url"
        ) from None


def grant(conn: sa.Connection) -> None:
    """Grant service and Grafana their rights to existing objects. Part of each upgrade.

    Does nothing unless the user is swingbot_owner.
    """
    conn.exec_driver_sql(_GRANT.replace("%", "%%"))
    if conn.exec_driver_sql("SELECT current_user").scalar() == OWNER:
        conn.exec_driver_sql(_GRANT_VIEWS.replace("%", "%%"))


def grant_views(conn: sa.Connection) -> None:
    """Create Grafana's role with its rights only, in a database with a single user.

    Repeat this after views were recreated.
    """
    conn.exec_driver_sql(_MAKE.replace("%", "%%"))
    conn.exec_driver_sql(_GRANT_VIEWS.replace("%", "%%"))


def _set_password(conn: sa.Connection, role: str, password: str) -> None:
    """Set the password as a SCRAM verifier, so that it cannot appear in a log of the server."""
    raw = conn.connection.driver_connection
    assert isinstance(raw, psycopg2.extensions.connection)
    verifier = psycopg2.extensions.encrypt_password(password, role, raw, "scram-sha-256")
    assert role in ROLES and "'" not in verifier
    conn.exec_driver_sql(f"ALTER ROLE {role} PASSWORD '{verifier}'")
