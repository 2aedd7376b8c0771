"""${message}"""

from swingbot_db.migrate import run_sql

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run_sql("${up_revision}_name.sql")
