"""Alembic's environment: swingbot's tables and the version table are in schema `swingbot`."""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table="schema_version",
    version_table_schema="swingbot",
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
