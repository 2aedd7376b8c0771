"""What every command shares: settings, a lab on demand, errors in one sentence, JSON or text."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from swingbot.app.settings import Settings

if TYPE_CHECKING:
    from swingbot.core.model.records import JobFile
    from swingbot.service.ports import Lab
    from swingbot_db.engine import Connection, Engine

P = ParamSpec("P")
R = TypeVar("R")


class CommandContext:
    """One call of `swingbot`: its settings, and the database and lab once a command needs them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @functools.cached_property
    def engine(self) -> Engine:
        """A pool on the database, whose schema is the one that this program knows. Raises NotRunning, SchemaError."""
        from swingbot.app.wiring import connect
        from swingbot_db import migrate

        engine = connect(self.settings)
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
        """What use cases work on; its links lead to the running service."""
        from swingbot.app.wiring import make_lab

        return make_lab(self.placed, self.engine)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction in which every query sees the same state."""
        from swingbot_db.engine import snapshot

        with snapshot(self.engine) as conn:
            yield conn


pass_session = click.make_pass_decorator(CommandContext)
as_json = click.option("--json", "json_", is_flag=True, help="Print JSON.")


def sentence(error: BaseException) -> str:
    """An error as one line for a person."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'input or output'}: {error.strerror}"
    return str(error).strip() or type(error).__name__


def guarded(run: Callable[P, R]) -> Callable[P, R]:
    """Turn expected errors into one sentence and an exit status; anything else is a bug and keeps its traceback."""

    @functools.wraps(run)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return run(*args, **kwargs)
        except BrokenPipeError:
            sys.stderr.close()  # the reader has what it wanted
            raise SystemExit(0) from None
        except Exception as error:
            from swingbot.app.commands import errors

            status = errors.status_of(error)
            if status is None:
                raise
            click.echo(f"swingbot: {sentence(error)}", err=True)
            raise SystemExit(status) from None

    return wrapper


def say_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def read_jobs(files: Sequence[str], jobs_dir: str) -> list[JobFile]:
    """Job files as given: a path, or the name of one that is shipped. Raises RequestError."""
    from swingbot.adapters.job_files import read_job
    from swingbot.core.model.records import JobFile
    from swingbot.service.ports import RequestError

    found = []
    for name in files:
        path = job_path(name, jobs_dir)
        try:
            found.append(JobFile(name=path.name, text=read_job(path, [Path(jobs_dir)])))
        except (OSError, UnicodeDecodeError) as error:
            shipped = ", ".join(sorted(p.name for p in Path(jobs_dir).glob("*.yaml")))
            why = error.strerror if isinstance(error, OSError) else "not text"
            raise RequestError(
                f"job file {name}: {why}; give a path, or one of {shipped}"
            ) from None
    return found


def job_path(name: str, jobs_dir: str) -> Path:
    """The job file that is meant: a file of that name, else the shipped one, with or without its suffix."""
    path = Path(name)
    # the caller may be in a folder that is not theirs to look into: there is none then, too
    if path.name != name or os.path.isfile(path):
        return path
    shipped = (Path(jobs_dir) / name, Path(jobs_dir) / f"{name}.yaml")
    return next((file for file in shipped if file.is_file()), path)


def read_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """`KEY=VALUE` pairs of --set. Raises RequestError."""
    from swingbot.service.ports import RequestError

    overrides = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise RequestError(f"--set {pair}: write it as KEY=VALUE")
        overrides[key] = value
    return overrides
