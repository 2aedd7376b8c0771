"""`swingbot master`: the Buildbot master alone in the foreground. Makes its directory, brings Buildbot's tables up to date, and becomes twistd."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import sqlalchemy as sa

from swingbot.adapters import process as commands
from swingbot.adapters.buildbot import tables
from swingbot.app import buildmaster, postgres, process, supervision
from swingbot.app.buildmaster import MasterError
from swingbot.app.database import database_url, owner_url
from swingbot.app.settings import Settings
from swingbot_jobs import resources

DATABASE_SECONDS: Final = 60.0  # a database that starts together with us may need so long
_CONFIG: Final = resources.folder("master") / "master.cfg"
_TAC: Final = """\
# made by swingbot master, anew at each start
from twisted.application import service

from swingbot.adapters.buildbot.fleet import FleetMaster

application = service.Application('buildmaster')
FleetMaster({basedir!r}, 'master.cfg').setServiceParent(application)
"""
# Buildbot wants a configuration to know its database; this one needs no worker, no certificate and no secret.
_UPGRADE_CONFIG: Final = """\
import os

from swingbot.adapters.buildbot import database

BuildmasterConfig = {'db': database.config(os.environ['SWINGBOT_DB_URL']), 'multiMaster': True, 'buildbotNetUsageData': None}
"""


def run(settings: Settings, announce: Callable[[str], None]) -> NoReturn:
    """Become the Buildbot master. Raises MasterError, SettingsError, SecretError, TestboxError or OSError."""
    buildmaster.worker_endpoint(settings)  # what is refused is refused before anything is made
    env = supervision.environment(settings, os.environ)
    directory = prepare_directory(settings)
    buildmaster.make_secrets(settings)
    _wait_for_database(database_url(settings), announce)
    upgrade(database_url(settings), announce)
    process.become(twistd(directory), env=env, cwd=directory)


def twistd(directory: Path) -> list[str]:
    # No pid file: after a crash its number may be somebody else's, and twistd would refuse to start.
    tac = directory / "buildbot.tac"
    return [
        str(Path(sys.executable).with_name("twistd")),
        "--nodaemon",
        "--no_save",
        "--pidfile=",
        "--logfile=-",
        f"--python={tac}",
    ]


def prepare_directory(settings: Settings) -> Path:
    """What the master is started from, written anew so that it fits the settings."""
    directory = supervision.master_directory(settings)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "master.cfg").write_text(_CONFIG.read_text())
    (directory / "buildbot.tac").write_text(_TAC.format(basedir=str(directory)))
    return directory


def upgrade_as_owner(settings: Settings, announce: Callable[[str], None]) -> None:
    """Bring Buildbot's tables up to date as the role that owns them; part of `swingbot db upgrade`. Raises MasterError."""
    upgrade(owner_url(settings), announce)


def upgrade(url: str, announce: Callable[[str], None]) -> None:
    """Make Buildbot's tables, or bring them up to its version, unless they are. Needs nothing but the database. Raises MasterError."""
    try:
        if tables.are_current(url):
            return
    except sa.exc.OperationalError as error:
        raise MasterError(
            f"the database {postgres.hidden(url)} does not answer: {str(error.orig).strip().splitlines()[0]}"
        ) from None
    announce("preparing Buildbot's tables")
    with tempfile.TemporaryDirectory(prefix="swingbot-upgrade-") as name:
        directory = Path(name)
        (directory / "master.cfg").write_text(_UPGRADE_CONFIG)
        (directory / "buildbot.tac").write_text(_TAC.format(basedir=name))
        argv = [str(Path(sys.executable).with_name("buildbot")), "upgrade-master", "--quiet", name]
        done = commands.run(
            argv, timeout=300, env=os.environ | {"SWINGBOT_DB_URL": url}, cwd=directory
        )
    if done.rc != 0:
        if "permission denied" in done.out + done.err:
            raise MasterError(
                f"{postgres.hidden(url)} may not change Buildbot's tables; run `swingbot db upgrade` with db.owner_url set"
            )
        announce(f"{done.out}{done.err}".rstrip())
        last = (done.err or done.out).strip().splitlines()[-1:] or ["it said nothing"]
        raise MasterError(f"Buildbot's tables could not be made: {last[0]}")


def _wait_for_database(url: str, announce: Callable[[str], None]) -> None:
    end, told = time.monotonic() + DATABASE_SECONDS, False
    engine = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg2"),
        poolclass=sa.NullPool,
        connect_args={"connect_timeout": 10},
    )
    while True:
        try:
            engine.connect().close()
            return
        except sa.exc.OperationalError as error:
            words = str(error.orig).strip().splitlines()[0]
            if time.monotonic() > end:
                raise MasterError(
                    f"the database {postgres.hidden(url)} did not answer within {DATABASE_SECONDS:.0f} s: {words}"
                ) from None
            if not told:
                announce(f"waiting for the database {postgres.hidden(url)}: {words}")
                told = True
        time.sleep(0.5)
