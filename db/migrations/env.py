"""Alembic's entry: our tables live in schema `swingbot`, and so does our version table."""

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
