"""Shared by all commands: settings, access to database and lab, error messages, JSON output."""

from __future__ import annotations

import functools
import getpass
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from swingbot.app.settings import Settings
from swingbot_jobs import extras

if TYPE_CHECKING:
    from swingbot.app.documents import Documents
    from swingbot.app.remote.login import Login
    from swingbot.core.model.records import JobFile
    from swingbot.service.ports import Lab
    from swingbot_db.engine import Connection, Engine

P = ParamSpec("P")
R = TypeVar("R")


class CommandContext:
    """One invocation of `swingbot`: its settings; opens database and lab on demand."""

    def __init__(self, settings: Settings, *, here: bool = False) -> None:
        """`here`: the command line names a service on this host."""
        self.settings, self._here = settings, here

    @functools.cached_property
    def login(self) -> Login | None:
        """Login to a service elsewhere; None: the one on this host. Raises NoLogin."""
        from swingbot.app.remote import login

        return None if self._here else login.current()

    @functools.cached_property
    def engine(self) -> Engine:
        """Connection pool of the service on this host; checks the schema version.

        Raises NotRunning, SchemaError, and RequestError for who is logged in to another service.
        """
        if self.login is not None:
            from swingbot.service.ports import RequestError

            raise RequestError(
                f"`{click.get_current_context().command_path}` works on the service's own host"
                f" only, and you are logged in to {self.login.url}; for a service on this host,"
                " set SWINGBOT_URL to nothing"
            )
        from swingbot.app.wiring import NotRunning, connect
        from swingbot_db import migrate

        try:
            engine = connect(self.settings)
        except NotRunning as error:
            why = _passed_over()
            raise NotRunning(f"{error}. {why}" if why else str(error)) from None
        with engine.connect() as conn:
            migrate.check(conn)
        return engine

    @functools.cached_property
    def placed(self) -> Settings:
        """The settings with the address of the running service, for links. Raises SettingsError."""
        from swingbot.app.address import with_recorded

        return with_recorded(self.settings)

    @functools.cached_property
    def lab(self) -> Lab:
        """The lab that use cases work on; its links point to the running service."""
        from swingbot.app.wiring import make_lab

        return make_lab(self.placed, self.engine)

    @functools.cached_property
    def documents(self) -> Documents:
        """What the service has: of the one that is logged in to, else of the one on this host.

        Raises NoLogin for a login that cannot be read.
        """
        if self.login is not None:
            from swingbot.app.remote.http_documents import HttpDocuments

            return HttpDocuments(self.login)
        require_service()
        from swingbot.app.database_documents import DatabaseDocuments

        return DatabaseDocuments(self.settings, self.placed.web_url, self.reading, lambda: self.lab)

    @contextmanager
    def reading(self, statement_seconds: float | None = None) -> Iterator[Connection]:
        """Open a read-only transaction in which all queries see the same snapshot.

        `statement_seconds` limits each of its statements.
        """
        from swingbot_db.engine import snapshot

        with snapshot(self.engine, statement_seconds) as conn:
            yield conn


pass_session = click.make_pass_decorator(CommandContext)
as_json = click.option("--json", "json_", is_flag=True, help="Print JSON.")


def require_service() -> None:
    """Exit with a sentence if this package is not installed to use a service on this host."""
    if lacking := extras.missing(("master",)):
        command = click.get_current_context().command_path
        click.echo(extras.advice(command, lacking), err=True)
        elsewhere = "For a service elsewhere: swingbot login https://lab.example"
        click.echo(_passed_over() or elsewhere, err=True)
        raise SystemExit(2)


def _passed_over() -> str | None:
    """Why a login is not used; None if there is none, or it is used."""
    from swingbot.app.remote import login

    given = click.get_current_context().find_root().params
    options = [name for name in ("config", "state", "port") if given.get(name) is not None]
    return login.passed_over(f"--{options[0]}" if options else None)


def person() -> str:
    """Name of the user: SWINGBOT_USER, or the login name."""
    try:
        name = os.environ.get("SWINGBOT_USER") or getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return "".join(c for c in name if c.isprintable())[:80] or "unknown"


def somebody() -> str:
    """user@host of the person who decides, recorded with the decision."""
    host = "".join(c for c in os.uname().nodename if c.isprintable())[:60]
    return f"{person()}@{host}"


def check_decision(decision: object) -> None:
    """Hold a decision against the type of its JSON, as the web does. Raises RequestError."""
    from swingbot.service.ports import RequestError
    from swingbot_jobs import codec

    try:
        codec.typed(type(decision), codec.plain(decision))
    except codec.BadDocument as error:
        raise RequestError(str(error)) from None


def sentence(error: BaseException) -> str:
    """Format an error as one line for the user."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'input or output'}: {error.strerror}"
    return str(error).strip() or type(error).__name__


def guarded(run: Callable[P, R]) -> Callable[P, R]:
    """Turn expected errors into one sentence and an exit status; a bug keeps its traceback.

    A service elsewhere may send what no service of this version has: that is its error.
    """

    @functools.wraps(run)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return run(*args, **kwargs)
        except BrokenPipeError:
            sys.stderr.close()  # the reader closed the pipe
            raise SystemExit(0) from None
        except Exception as error:
            from swingbot.app.commands import errors

            status, said = errors.status_of(error), sentence(error)
            session = args[0] if args else None
            if status is None and isinstance(session, CommandContext) and session.login is not None:
                status, said = errors.misread(error, session.login.url)
            if status is None:
                raise
            click.echo(f"swingbot: {said}", err=True)
            raise SystemExit(status) from None

    return wrapper


def with_session(run: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """Pass the CommandContext as the first argument; `guarded`."""
    return pass_session(guarded(run))


def with_session_json(run: Callable[Concatenate[CommandContext, P], R]) -> Callable[P, R]:
    """`with_session`, with the option --json as the argument `json_`."""
    return as_json(with_session(run))


def read_jobs(files: Sequence[str], jobs_dir: str) -> list[JobFile]:
    """Read job files, given as paths or names of shipped jobs. Raises RequestError."""
    from swingbot.core.model.records import JobFile
    from swingbot.service.ports import RequestError
    from swingbot_jobs.language.job_files import read_job

    jobs = []
    for name in files:
        path = job_path(name, jobs_dir)
        try:
            jobs.append(JobFile(name=path.name, text=read_job(path, [Path(jobs_dir)])))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text"
            raise RequestError(
                f"job file {name}: {why}; give a path or one of {shipped_jobs(jobs_dir)}"
            ) from None
    return jobs


def job_path(name: str, jobs_dir: str) -> Path:
    """Find the job file: the path if it exists, else the shipped job, with or without suffix."""
    path = Path(name)
    # isfile also returns False if the current directory may not be searched.
    if path.name != name or os.path.isfile(path):
        return path
    shipped = (Path(jobs_dir) / name, Path(jobs_dir) / f"{name}.yaml")
    return next((file for file in shipped if file.is_file()), path)


def shipped_jobs(jobs_dir: str) -> str:
    """Names of the shipped jobs, for messages."""
    from swingbot_jobs.language.job_files import shipped

    return ", ".join(shipped(Path(jobs_dir)))


def read_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` pairs of --set. Raises RequestError."""
    from swingbot.service.ports import RequestError

    overrides = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise RequestError(f"--set {pair}: write it as KEY=VALUE")
        overrides[key] = value
    return overrides
