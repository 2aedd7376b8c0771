"""PostgreSQL servers of the tests: one for all processes of a run, and servers of their own for
tests that kill one or make roles, which belong to a whole server.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from swingbot.app import postgres

# A killed server loses nothing by that, only a killed machine would.
_KILLED: Final = ("fsync=off", "full_page_writes=off", "max_connections=300")
# A killed server loses what it was told last: only where no test kills it.
_UNKILLED: Final = (*_KILLED, "synchronous_commit=off")
# Waits until no process has the file open under its lock, and then removes the server: the kernel
# gives up the locks of a killed process.
_KEEPER: Final = 'flock --exclusive "$0/users" true; kill -QUIT "$1"; rm -rf "$0"'


class Server:
    """An embedded PostgreSQL whose files are in `state`."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def url(self, database: str) -> str:
        return f"postgresql+psycopg2://postgres@/{database}?host={postgres.socket_directory(self.state)}"

    def create(self, database: str, template: str = "template1") -> str:
        self.sql(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
        return self.url(database)

    def drop(self, database: str) -> None:
        self.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def sql(self, statement: str) -> list[Any]:
        engine = sa.create_engine(
            self.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with engine.connect() as conn:
            result = conn.exec_driver_sql(statement)
            return list(result) if result.returns_rows else []

    def template(self, name: str, fill: Callable[[str], None]) -> str:
        """A database to be copied, which the first process that asks for it fills."""
        with _locked(self.state / "lock"):
            if not self.sql(f"SELECT FROM pg_database WHERE datname = '{name}'"):
                self.drop(f"{name}-begun")
                fill(self.create(f"{name}-begun"))
                self.sql(f'ALTER DATABASE "{name}-begun" RENAME TO "{name}"')
        return name


class OwnServer(Server):
    """A server of this process, which may be killed and started again."""

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        state.mkdir(parents=True)
        self.start()

    def start(self) -> None:
        self.process = _start(self.state, _KILLED)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once: its files are no longer needed
        self.process.wait(20)


@contextmanager
def own_server() -> Iterator[OwnServer]:
    # Not pytest's own directory: the server's user must be able to walk to it.
    place = Path(tempfile.mkdtemp(prefix="swingbot-test-pg-"))
    server = OwnServer(place / "pg")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def shared_server() -> Iterator[Server]:
    """The server of this run. It ends when the last process that uses it has ended."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    server = Server(Path(tempfile.gettempdir()) / f"swingbot-test-pg-{run[:12]}")
    users = _join(server)
    try:
        yield server
    finally:
        os.close(users)


def _join(server: Server) -> int:
    """Start the server if it does not run; return the descriptor that keeps it running."""
    while True:
        server.state.mkdir(exist_ok=True)
        with _locked(server.state / "lock"):
            users = _open(server.state / "users")
            fcntl.flock(users, fcntl.LOCK_SH)
            if _is(users, server.state / "users"):  # not one that was just removed
                if not postgres.answers(server.state):
                    process = _start(server.state, _UNKILLED)
                    subprocess.Popen(
                        ["sh", "-c", _KEEPER, server.state, str(process.pid)],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                return users
        os.close(users)


def _start(state: Path, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    postgres.prepare(state)
    argv = [*postgres.argv(state), *(word for option in options for word in ("-c", option))]
    with (state / "postgres.log").open("ab") as log:
        process = subprocess.Popen(
            argv, stdout=log, stderr=log, cwd="/", start_new_session=True, **postgres.identity()
        )
    end = time.monotonic() + 60
    while not postgres.answers(state):
        assert process.poll() is None and time.monotonic() < end, (
            state / "postgres.log"
        ).read_text()
        time.sleep(0.05)
    return process


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    while True:
        lock = _open(path)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is(lock, path):
                yield
                return
        finally:
            os.close(lock)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
