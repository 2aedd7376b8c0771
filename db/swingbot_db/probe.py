"""Ask the database one question within a time limit, whatever state the server is in.

A server that hangs answers neither a new connection nor a query, and its own limits
(`statement_timeout`) do not run either. So the limit is kept here, on a connection of its own.
"""

from __future__ import annotations

import select
import time
from typing import Any

import psycopg2
import psycopg2.extras
import sqlalchemy as sa

ANSWER_SECONDS = 5.0


class NoAnswer(Exception):
    """The database did not answer; the message says why."""


def ask(
    url: str | sa.URL, sql: str = "SELECT 1 AS one", seconds: float = ANSWER_SECONDS
) -> list[dict[str, Any]]:
    """Run `sql` on a new connection and return its rows.

    Raises NoAnswer after `seconds` at the latest. (Only the name of a remote host is resolved
    without a limit.)
    """
    end = time.monotonic() + seconds
    address = sa.make_url(url)
    where: dict[str, Any] = address.translate_connect_args(username="user", database="dbname")
    where |= address.query
    options, limit = where.pop("options", ""), round(seconds * 1000)
    try:
        connection = psycopg2.connect(
            **where,
            options=f"{options} -csearch_path=swingbot -cstatement_timeout={limit}",
            application_name="swingbot health",
            cursor_factory=psycopg2.extras.RealDictCursor,
            async_=1,
        )
        try:
            _wait(connection, end, seconds)
            cursor = connection.cursor()
            cursor.execute(sql)
            _wait(connection, end, seconds)
            return [dict(row) for row in cursor.fetchall()]
        finally:
            connection.close()
    except psycopg2.Error as error:
        raise NoAnswer((str(error).strip().splitlines() or ["connection lost"])[0]) from None


def check(engine: sa.Engine) -> None:
    """Raises OperationalError within ANSWER_SECONDS if the database of `engine` does not answer."""
    try:
        ask(engine.url)
    except NoAnswer as error:
        raise sa.exc.OperationalError(None, None, error) from None


def _wait(connection: psycopg2.extensions.connection, end: float, seconds: float) -> None:
    while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
        left = end - time.monotonic()
        reads = [connection] if state == psycopg2.extensions.POLL_READ else []
        writes = [connection] if state == psycopg2.extensions.POLL_WRITE else []
        if left <= 0 or not any(select.select(reads, writes, [], left)):
            raise NoAnswer(f"no answer within {seconds:g} s")
