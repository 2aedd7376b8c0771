"""Tests here need PostgreSQL; see tests/database.py."""

from tests.database import conn, db_url, engine, server_url, template

__all__ = ["conn", "db_url", "engine", "server_url", "template"]
