"""Work that is queued when the schema gets newer goes on; a program that is older than the
database says so and does nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot_db import dump, migrate
from swingbot_db.engine import make_engine, snapshot
from swingbot_db.migrate import SchemaError
from tests.fakelinux import make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.mail import brain_environment, running_smtpd
from tests.half_way import COMMITS, CULPRIT, in_the_middle, value

OLD = "0011"  # the last schema before testboxes had a state of their own

_NAMED_SAMPLES = """
SELECT s.run, m.metric, s.seq, s.value FROM sample s JOIN measured_metric m ON m.id = s.measured
"""


def as_it_was_at(revision: str, new: sa.Engine, old: sa.Engine) -> None:
    """Fill `old` with the tables of `revision`, and in them what `new` has in the columns that
    they have."""
    with dump.filling(old, revision) as there, snapshot(new) as here:
        # Base and head stood in the comparison itself before it had arms.
        columns_of_arms = ("base", "head")
        for column in columns_of_arms:
            there.exec_driver_sql(f"ALTER TABLE comparison ALTER {column} DROP NOT NULL")
        known = {table.name: table.columns for table in dump.tables(there)}
        for table in dump.tables(here):
            if table.name in known and table.name != "sample":
                columns = tuple(column for column in table.columns if column in known[table.name])
                content = io.BytesIO()
                dump.write_table(
                    here, dump.DumpTable(name=table.name, columns=columns, bytes=0), content
                )
                content.seek(0)
                dump.read_table(there, table.name, columns, content)
        # Samples had the name of their metric before they had its number.
        named = here.execute(sa.text(_NAMED_SAMPLES)).mappings()
        add = "INSERT INTO sample (run, metric, seq, value) VALUES (:run, :metric, :seq, :value)"
        there.execute(sa.text(add), [dict(row) for row in named])
        arms = here.execute(sa.text("SELECT comparison, arm, variant FROM comparison_arm"))
        for comparison, arm, variant in arms.all():
            column = columns_of_arms[arm]
            there.exec_driver_sql(
                f"UPDATE comparison SET {column} = {variant} WHERE id = {comparison}"
            )
        for column in columns_of_arms:
            there.exec_driver_sql(f"ALTER TABLE comparison ALTER {column} SET NOT NULL")
        dump.set_sequences(there, {})


def test_a_bisection_goes_on_to_its_culprit_after_an_upgrade(
    tmp_path: Path, db_url: str, empty_url: str
) -> None:
    base, *made = make_fakelinux(tmp_path / "linux", COMMITS)
    environment = brain_environment(tmp_path / "state", db_url)
    new = make_engine(db_url)
    brain = make_brain(load(environ=environment), new, tmp_path / "linux")
    with running_smtpd(brain.settings):
        brain.watch(base)
        in_the_middle(brain)
    engine = make_engine(empty_url)
    as_it_was_at(OLD, new, engine)
    new.dispose()
    assert value(engine, "SELECT version_num FROM swingbot.schema_version") == OLD
    assert value(engine, "SELECT count(*) FROM bisection WHERE status = 'running'") == 1
    assert value(engine, "SELECT count(*) FROM orders WHERE state = 'running'") != 0
    boots = value(engine, "SELECT count(*) FROM boot")

    settings = load(environ=environment | {"SWINGBOT_DB_URL": empty_url})
    run = CliRunner().invoke(
        main,
        ["status"],
        env={
            "SWINGBOT_DB_URL": empty_url,
            "SWINGBOT_PATHS_STATE": str(settings.state),
            "SWINGBOT_CONFIG": "",
        },
    )
    assert run.exit_code == 1
    assert f"the database has schema {OLD}" in run.output
    assert "run `swingbot db upgrade`" in run.output

    migrate.upgrade(engine)
    again = make_brain(settings, engine, tmp_path / "linux")
    with running_smtpd(settings):
        again.run()
    assert (
        again.facts("i", int(str(value(engine, "SELECT id FROM incident"))))["culprit"]["commit"]
        == made[CULPRIT - 1]
    )
    assert len(again.mails) == 1
    assert value(engine, "SELECT count(*) - count(DISTINCT order_id) FROM boot") == 0
    assert value(engine, "SELECT count(*) FROM boot") > boots  # type: ignore[operator]
    engine.dispose()


def test_a_program_that_is_older_than_the_database_refuses(
    tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection
) -> None:
    conn.execute(sa.text("UPDATE swingbot.schema_version SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="a newer swingbot upgraded it"):
        migrate.upgrade(engine)
    for command in ("status", "loop", "web"):
        run = CliRunner().invoke(
            main,
            [command],
            env={
                "SWINGBOT_DB_URL": db_url,
                "SWINGBOT_PATHS_STATE": str(tmp_path),
                "SWINGBOT_CONFIG": "",
            },
        )
        assert run.exit_code == 1
        assert "the database has schema 9999" in run.output
        assert "Traceback" not in run.output
    assert value(engine, "SELECT version_num FROM swingbot.schema_version") == "9999"


def test_upgrading_twice_is_upgrading_once(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    with engine.connect() as conn:
        assert migrate.revision(conn) == migrate.known_revisions()[-1]
        migrate.check(conn)
