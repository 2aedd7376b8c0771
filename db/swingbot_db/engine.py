"""The database connection: PostgreSQL by psycopg2, schema search path, commits as checkpoints."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg2
import psycopg2.extensions
import sqlalchemy as sa

from swingbot.core.model import dispatch
from swingbot.service.checkpoint import checkpoint
from swingbot_db import scope

# SQLAlchemy names for modules that pass connections on and run no queries themselves.
Connection = sa.Connection
Engine = sa.Engine
DatabaseAway = sa.exc.OperationalError  # the server does not respond, or cancels a query


def make_engine(
    url: str | sa.URL, *, connections: int = 15, query_seconds: int | None = None
) -> sa.Engine:
    """Open a pool on `url` (any spelling of a PostgreSQL URL; the driver is always psycopg2).

    Connections are tested before use, so a server restart only costs a reconnect. The pool keeps
    up to 5 of at most `connections` open. `query_seconds`: the server cancels longer queries.
    Transactions of a request with a token limited to testbox groups see the rows of these
    (`scope.py`). For any other user from whom the server would hide rows, it refuses the query.
    """
    parsed = sa.make_url(url).set(drivername="postgresql+psycopg2")
    limit = "" if query_seconds is None else f" -cstatement_timeout={query_seconds}s"
    kept = min(5, connections)
    engine = sa.create_engine(
        parsed,
        pool_pre_ping=True,
        pool_size=kept,
        max_overflow=connections - kept,
        connect_args={
            "options": f"-csearch_path=swingbot -ctimezone=UTC -crow_security=off{limit}",
            "fallback_application_name": "swingbot",
            "connect_timeout": min(10, query_seconds or 10),
        },
    )
    sa.event.listen(engine, "begin", scope.take_role)
    return engine


def name_sessions(part: str) -> None:
    """Later sessions of this process have `part` in their application_name (libpq's PGAPPNAME)."""
    os.environ["PGAPPNAME"] = f"swingbot {part}"


def own_pool(engine: sa.Engine, *, connections: int, query_seconds: int | None = None) -> sa.Engine:
    """Open another pool on the database of `engine`, which a crowd at `engine` does not empty."""
    return make_engine(engine.url, connections=connections, query_seconds=query_seconds)


def own_session(engine: sa.Engine) -> psycopg2.extensions.connection:
    """Open a session in autocommit mode that the pool of `engine` does not reuse."""
    pooled = engine.raw_connection()
    session = pooled.driver_connection
    assert isinstance(session, psycopg2.extensions.connection)
    pooled.detach()
    session.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_AUTOCOMMIT)
    return session


@contextmanager
def away() -> Iterator[None]:
    """Raise the core's DatabaseAway where the server does not respond."""
    try:
        yield
    except (psycopg2.Error, sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        reason = str(getattr(error, "orig", error)).strip()
        line = reason.splitlines()[0] if reason else type(error).__name__
        raise dispatch.DatabaseAway(f"the database does not respond: {line}") from error


@contextmanager
def transaction(engine: sa.Engine, name: str) -> Iterator[sa.Connection]:
    """Run one transaction; `name` labels its two checkpoints."""
    with engine.connect() as conn:
        with conn.begin() as open_transaction:
            yield conn
            checkpoint(f"{name}: before commit")
            open_transaction.commit()
        checkpoint(f"{name}: after commit")


def on_statement(engine: sa.Engine, begun: Callable[[], None], over: Callable[[], None]) -> None:
    """Call `begun` before each statement on `engine`, and `over` after it or when it failed."""
    sa.event.listen(engine, "before_cursor_execute", lambda *_: begun())
    sa.event.listen(engine, "after_cursor_execute", lambda *_: over())
    sa.event.listen(engine, "handle_error", lambda _: over())


def limit_statements(conn: sa.Connection, seconds: float) -> None:
    """Cancel statements of this transaction that take longer than `seconds`."""
    conn.execute(sa.text(f"SET LOCAL statement_timeout = {round(seconds * 1000)}"))


@contextmanager
def snapshot(engine: sa.Engine, statement_seconds: float | None = None) -> Iterator[sa.Connection]:
    """Connect to a snapshot of the database, for reads; writers are not blocked.

    A statement that takes longer than `statement_seconds` (None: no limit) raises DatabaseAway.
    """
    with (
        engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        ) as conn,
        conn.begin(),
    ):
        if statement_seconds is not None:
            limit_statements(conn, statement_seconds)
        conn.execute(sa.text("SELECT 1"))  # the snapshot is taken by the first statement
        yield conn
