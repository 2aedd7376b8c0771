"""Alembic's environment: swingbot's tables and the version table are in schema `swingbot`."""

from __future__ import annotations

from alembic import context

from swingbot_db.migrate import VERSION_TABLE

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table=VERSION_TABLE,
    version_table_schema="swingbot",
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
