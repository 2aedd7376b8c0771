"""Tests here need PostgreSQL; see tests/database.py."""

from tests.asking import ada, idle, serve
from tests.database import (
    conn,
    db_url,
    empty_url,
    engine,
    fresh_databases,
    old,
    server_url,
    template,
)

__all__ = [
    "ada",
    "conn",
    "db_url",
    "empty_url",
    "engine",
    "fresh_databases",
    "idle",
    "old",
    "serve",
    "server_url",
    "template",
]
