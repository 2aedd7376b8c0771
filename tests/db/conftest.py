"""Tests here need PostgreSQL; see tests/database.py."""

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
    "conn",
    "db_url",
    "empty_url",
    "engine",
    "fresh_databases",
    "old",
    "server_url",
    "template",
]
