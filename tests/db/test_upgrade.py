"""Work that is queued when the schema gets newer goes on; a program whose schema does not fit the
database or the backup says so and does nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot_db import migrate
from swingbot_db.engine import make_engine
from swingbot_db.migrate import SchemaError
from tests.buildbot.ports import free_ports
from tests.fakelinux import make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.mail import brain_environment, running_smtpd
from tests.half_way import COMMITS, CULPRIT, in_the_middle, value

FIRST, SECOND = "0001", "0002"
REVISION = "SELECT version_num FROM swingbot.schema_revision"


def newer_program(folder: Path) -> Path:
    """The resources of a program with one more migration."""
    shutil.copytree(migrate.DB_DIR, folder, ignore=shutil.ignore_patterns("swingbot_db"))
    versions = folder / "migrations" / "versions"
    (versions / "0002_note.sql").write_text(
        "ALTER TABLE boot ADD COLUMN note text NOT NULL DEFAULT 'none';\n"
    )
    (versions / "0002_note.py").write_text(
        (versions / "0001.py")
        .read_text()
        .replace("0001", SECOND)
        .replace("down_revision = None", f"down_revision = '{FIRST}'")
        .replace("0002.sql", "0002_note.sql")
    )
    return folder


def swingbot(state: Path, url: str, *words: str) -> tuple[int, str]:
    environment = {
        "SWINGBOT_DB_URL": url,
        "SWINGBOT_PATHS_STATE": str(state),
        "SWINGBOT_CONFIG": "",
    }
    run = CliRunner().invoke(main, words, env=environment)
    assert "Traceback" not in run.output
    return run.exit_code, run.output


def test_a_bisection_goes_on_to_its_culprit_after_an_upgrade(
    tmp_path: Path, db_url: str, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, *made = make_fakelinux(tmp_path / "linux", COMMITS)
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    brain = make_brain(settings, engine, tmp_path / "linux")
    with running_smtpd(settings):
        brain.watch(base)
        in_the_middle(brain)
    boots = value(engine, "SELECT count(*) FROM boot")

    monkeypatch.setattr(migrate, "DB_DIR", newer_program(tmp_path / "newer"))
    status, output = swingbot(settings.state, db_url, "status")
    assert status == 1
    assert f"the database has schema {FIRST}, but this program needs {SECOND}" in output
    assert "run `swingbot db upgrade`" in output

    migrate.upgrade(engine)
    assert value(engine, REVISION) == SECOND
    assert value(engine, "SELECT count(*) FROM boot WHERE note = 'none'") == boots
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


def test_a_program_that_is_older_than_the_database_refuses(
    tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection
) -> None:
    conn.execute(sa.text("UPDATE swingbot.schema_revision SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="a newer swingbot upgraded it"):
        migrate.upgrade(engine)
    for command in ("status", "loop", "web", "master"):
        status, output = swingbot(tmp_path, db_url, command)
        assert status == 1
        assert "the database has schema 9999" in output
    assert value(engine, REVISION) == "9999"


@pytest.fixture
def unreleased(empty_url: str) -> str:
    """URL of a database as versions from before the first release left it."""
    engine = make_engine(empty_url)
    with engine.begin() as conn:
        conn.exec_driver_sql("CREATE SCHEMA swingbot")
        conn.exec_driver_sql("CREATE TABLE swingbot.schema_version (version_num text PRIMARY KEY)")
        conn.exec_driver_sql("INSERT INTO swingbot.schema_version VALUES ('0036')")
        conn.exec_driver_sql("CREATE TABLE swingbot.tree (id bigint PRIMARY KEY)")
        conn.exec_driver_sql("INSERT INTO swingbot.tree VALUES (1)")
    engine.dispose()
    return empty_url


def untouched(url: str) -> bool:
    engine = make_engine(url)
    with engine.connect() as conn:
        tables = set(sa.inspect(conn).get_table_names("swingbot"))
        trees = conn.execute(sa.text("SELECT id FROM tree")).scalars().all()
        buildbots = sa.inspect(conn).get_table_names("public")
    engine.dispose()
    return (tables, trees, buildbots) == ({"schema_version", "tree"}, [1], [])


REFUSED = "a swingbot from before the first release, which this version cannot read"


@pytest.mark.parametrize(
    "words",
    [
        "db upgrade",
        "db roles",
        "status",
        "loop",
        "web",
        "master",
        "list trees",
        "raw c1 --out c1",
        "backup kept",
    ],
)
def test_a_database_from_before_the_first_release_is_refused(
    tmp_path: Path, unreleased: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, output = swingbot(tmp_path / "state", unreleased, *words.split())
    assert status == 1
    (sentence,) = output.splitlines()
    assert REFUSED in sentence
    assert "the version that made it (`swingbot raw ID --out DIR` for each comparison" in sentence
    assert untouched(unreleased)


def test_up_refuses_a_database_from_before_the_first_release(
    tmp_path: Path, unreleased: str
) -> None:
    program, state = Path(sys.executable).with_name("swingbot"), tmp_path / "state"
    run = subprocess.run(
        [str(program), "up", "--state", str(state), "--port", str(free_ports(4))],
        env=os.environ | {"SWINGBOT_DB_URL": unreleased, "SWINGBOT_CONFIG": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    assert REFUSED in run.stdout.splitlines()[-1] and "Traceback" not in run.stdout + run.stderr
    assert untouched(unreleased)


def test_a_backup_from_before_the_first_release_is_refused(
    tmp_path: Path, db_url: str, empty_url: str
) -> None:
    state, kept, new = tmp_path / "state", str(tmp_path / "kept"), str(tmp_path / "new")
    state.mkdir()
    assert swingbot(state, db_url, "backup", kept)[0] == 0
    file = tmp_path / "kept" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 1}))
    files = sorted(path for path in (tmp_path / "kept").rglob("*"))
    for words in (
        ["restore", kept, "--state", new],
        ["restore", kept, "--state", new, "--unchecked"],
        ["backup", kept, "--verify"],
    ):
        status, output = swingbot(state, db_url if words[0] == "backup" else empty_url, *words)
        assert status == 2
        (sentence,) = output.splitlines()
        assert "has backup format 1, but this version only reads format 3" in sentence
        assert "restored by the version of swingbot that made it" in sentence
    assert not (tmp_path / "new").exists()
    assert files == sorted(path for path in (tmp_path / "kept").rglob("*"))


def edited_program(folder: Path, old: str, new: str) -> Path:
    """The resources of a program whose first migration has another text."""
    shutil.copytree(migrate.DB_DIR, folder, ignore=shutil.ignore_patterns("swingbot_db"))
    file = folder / "migrations" / "versions" / "0001.sql"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize("words", ["db upgrade", "status", "loop", "backup kept"])
def test_a_database_of_an_unreleased_schema_of_the_same_number_is_refused(
    tmp_path: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = make_engine(empty_url)
    # as it was before names of metrics had a budget
    column = "    trusted  boolean NOT NULL DEFAULT true,"
    with monkeypatch.context() as earlier:
        earlier.setattr(migrate, "DB_DIR", edited_program(tmp_path / "earlier", column, ""))
        migrate.upgrade(engine)
    status, output = swingbot(tmp_path / "state", empty_url, *words.split())
    (sentence,) = output.splitlines()
    assert (status, REFUSED in sentence) == (1, True)
    with engine.connect() as conn:
        columns = [row["name"] for row in sa.inspect(conn).get_columns("measured_metric")]
    engine.dispose()
    assert columns == ["id", "testbox", "unit_job", "metric"]


def test_a_comment_in_a_migration_makes_no_other_schema(
    tmp_path: Path, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "-- Swings.", "-- Swings, in other\n-- words."
    monkeypatch.setattr(migrate, "DB_DIR", edited_program(tmp_path / "later", old, new))
    migrate.upgrade(engine)


def test_upgrading_twice_is_upgrading_once(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    with engine.connect() as conn:
        assert migrate.revision(conn) == migrate.revisions()[-1]
        migrate.check(conn)
