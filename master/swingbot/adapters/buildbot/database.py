"""Make Buildbot's own database connections survive a restart of PostgreSQL.

Buildbot 4.3.0 retries only after error messages of other databases, and a build that ends while the
server is down stays "building" for ever. Three changes together fix that: connecting is retried,
connections are tested before use, and a statement is retried if its connection broke.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import psycopg2
import sqlalchemy as sa
from buildbot.db import enginestrategy
from twisted.python import log

PATIENCE_SECONDS = 600.0
_PAUSE_SECONDS = 0.5


def _patient_connect(parameters: dict[str, Any]) -> Any:
    end = time.monotonic() + PATIENCE_SECONDS
    logged = False
    while True:
        try:
            return psycopg2.connect(**parameters)
        except psycopg2.OperationalError as error:
            if time.monotonic() > end:
                raise
            if not logged:
                log.msg(f"swingbot: the database is unreachable, retrying: {str(error).strip()}")
                logged = True
            # in a thread of Buildbot's database pool, never in the reactor's
            time.sleep(_PAUSE_SECONDS)


@cache  # the same object at each reconfiguration, or Buildbot refuses to reconfigure
def creator(url: str) -> Callable[[], Any]:
    """Return a function that opens a connection to `url`, retrying for up to ten minutes."""
    parsed = sa.make_url(url)
    parameters: dict[str, Any] = {
        "host": parsed.host,
        "port": parsed.port,
        "user": parsed.username,
        "password": parsed.password,
        "dbname": parsed.database,
        "connect_timeout": 10,
        "application_name": "buildbot",
    }
    parameters |= dict(parsed.query)
    given = {key: value for key, value in parameters.items() if value not in (None, "")}
    return lambda: _patient_connect(given)


def config(url: str) -> dict[str, Any]:
    """Return the value of Buildbot's `c['db']`."""
    _retry_after_disconnect()
    return {
        "db_url": sa.make_url(url)
        .set(drivername="postgresql+psycopg2")
        .render_as_string(hide_password=False),
        "engine_kwargs": {"creator": creator(url), "pool_pre_ping": True},
    }


def _retry_after_disconnect() -> None:
    original = enginestrategy.Strategy.should_retry
    if getattr(original, "of_swingbot", False):
        return

    def should_retry(self: Any, operational_error: Any) -> bool:
        return bool(getattr(operational_error, "connection_invalidated", False)) or bool(
            original(self, operational_error)
        )

    # so that a reconfiguration does not wrap it again
    should_retry.of_swingbot = True  # type: ignore[attr-defined]
    enginestrategy.Strategy.should_retry = should_retry
