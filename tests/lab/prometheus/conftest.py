"""Tests here need PostgreSQL; see tests/database.py."""

from tests.database import conn, db_url, engine, pg, template

__all__ = ["conn", "db_url", "engine", "pg", "template"]
