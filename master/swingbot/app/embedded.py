"""`swingbot up`: the whole service on this host, in the foreground, until a signal stops it.

    up -> supervisord -> postgres, smtpd, web, buildbot-master, loop, workers

A lock on the state directory prevents a second service. If `up` dies, even by SIGKILL, its
supervisor gets SIGTERM and stops the other programs in order; the next start finds remaining
processes by an environment variable and kills them. Executors of attempts
(`swingbot-worker attempt`) are not part of the service: they finish their attempt and keep its
results, and the next start picks them up.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import stat
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from swingbot.adapters import artifacts, part_heartbeat
from swingbot.adapters.worker_secrets import SecretError
from swingbot.app import address, buildmaster, postgres, process, supervision, tcp_ports
from swingbot.app.database import owner_url
from swingbot.app.hung_parts import HungParts
from swingbot.app.settings import Settings, SettingsError, build_workers
from swingbot.app.supervision import MASTER, POSTGRES, SupervisedProgram, Supervisor
from swingbot_db import migrate
from swingbot_db.engine import make_engine

Announce = Callable[[str], None]

START_SECONDS: Final = 240.0  # on a loaded machine, the Buildbot master alone took 50 s
STOP_SECONDS: Final = 40.0
LOG_LINES: Final = 5
LOG_COLUMNS: Final = 200  # a traceback of faulthandler ends with a line of all extension modules
NEEDED_BYTES: Final = 200 << 20  # a new database takes 60 MiB, its write-ahead log another 60 MiB
TELL_AGAIN_SECONDS: Final = 60.0
_DIED: Final = ("BACKOFF", "FATAL", "UNKNOWN")  # states of a program


class UpError(Exception):
    """The service cannot run; the message says what to do."""


class _Stop(Exception):
    """SIGINT or SIGTERM was received."""


def up(settings: Settings, announce: Announce) -> int:
    """Run the embedded service until SIGINT or SIGTERM.

    Returns 0 after a clean stop, 1 if the service could not run.
    """
    state = settings.state
    try:
        with _stop_on_signal(), _lock(state):
            try:
                _run(_completed(settings), announce)
            finally:
                _stop(state, announce)
    except _Stop:
        announce(
            "swingbot has stopped; running boots and builds finish on their own, and their results"
            " are collected at the next start"
        )
        return 0
    except (UpError, postgres.PostgresError, SettingsError, SecretError) as error:
        announce(f"swingbot up: {error}")
    except OSError as error:
        announce(f"swingbot up: {_words(error, state)}")
    return 1


def _completed(settings: Settings) -> Settings:
    return dataclasses.replace(
        settings,
        db=dataclasses.replace(settings.db, url=settings.db.url or postgres.url(settings.state)),
    )


def _run(settings: Settings, announce: Announce) -> None:
    state = settings.state
    buildmaster.worker_endpoint(settings)
    leftovers = process.stop_members(state, STOP_SECONDS)
    if leftovers:
        announce(f"killed {leftovers} processes left running by an earlier service")
    _check_disk(state)
    _check_ports(settings)
    part_heartbeat.forget(state)
    prepare_directories(settings)
    planned = supervision.programs(settings)
    embedded = any(program.name == POSTGRES for program in planned)
    if embedded:
        announce("preparing the database")
        postgres.prepare(state)
    env = supervision.environment(settings, os.environ) | {process.INSTANCE_VARIABLE: str(state)}
    env.pop("NOTIFY_SOCKET", None)  # systemd watches `up`, which watches the parts
    child, supervisor = _start_supervisor(settings, planned, env)
    if embedded:
        supervisor.start(POSTGRES)
        _wait("the database", lambda: postgres.answers(state), settings, child, POSTGRES)
        postgres.create_database(state)
    _migrate(settings)
    for program in sorted(planned, key=lambda program: program.order):
        if program.name != POSTGRES:
            supervisor.start(program.name)
    _wait_until_healthy(settings, child)
    # Before "swingbot is up" is announced: programs that die from now on are reported.
    started = _starts(supervisor)
    _announce_addresses(settings, announce)
    _watch(settings, planned, env, child, supervisor, announce, started)


# -- before anything runs -----------------------------------------------------


@contextmanager
def _stop_on_signal() -> Iterator[None]:
    """Raise _Stop on the first SIGINT or SIGTERM; ignore further ones while stopping."""

    def stop(number: int, frame: FrameType | None) -> None:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        raise _Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _lock(state: Path) -> Iterator[None]:
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The mirror, results, mails and logs in it are for the service and its operator alone.
    if (status := state.stat()).st_uid == os.geteuid():
        state.chmod(stat.S_IMODE(status.st_mode) & 0o770)
    with (state / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UpError(
                f"another swingbot (process {file.read().strip() or 'unknown'}) is using {state};"
                " stop it, or choose another --state"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _check_disk(state: Path) -> None:
    free = shutil.disk_usage(state).free
    if free < NEEDED_BYTES:
        raise UpError(
            f"the disk of {state} has {free >> 20} MiB free, {NEEDED_BYTES >> 20} MiB are required;"
            " free some space, or choose another --state"
        )


def _check_ports(settings: Settings) -> None:
    planned = {
        settings.web.port: (settings.web.host, "the web pages"),
        settings.buildbot_worker_port: (settings.buildbot.host, "Buildbot's workers"),
    }
    if settings.buildbot.pages != "off":
        planned[settings.buildbot_www_port] = (settings.buildbot.www_host, "Buildbot's pages")
    if not settings.mail.host:
        planned[settings.smtp_port] = ("127.0.0.1", "the local mailbox")
    for port, (host, purpose) in planned.items():
        try:
            tcp_ports.probe(host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UpError(
                    f"port {port} of {host}, needed for {purpose}, is in use; choose other"
                    " ports with --port, or stop the program that uses it"
                ) from None
            raise UpError(
                f"cannot listen on {host} port {port} for {purpose}: {error.strerror}; set"
                " web.host and web.port"
            ) from None


def prepare_directories(settings: Settings) -> None:
    for directory in (
        settings.log,
        settings.artifacts,
        settings.maildir.parent,
        settings.state / "run",
    ):
        directory.mkdir(parents=True, exist_ok=True)
    (settings.state / "run").chmod(0o700)
    run = supervision.socket(settings.state).parent
    run.mkdir(mode=0o700, exist_ok=True)
    if run.stat().st_uid != os.geteuid():
        raise UpError(
            f"{run} is owned by another user; remove it, or choose a --state with a shorter path"
        )
    supervision.socket(settings.state).unlink(missing_ok=True)
    address.record(settings)  # replace a stale address before the pages start
    artifacts.secret(settings.secret_file)
    buildmaster.make_secrets(settings)


# -- starting -----------------------------------------------------------------


def _start_supervisor(
    settings: Settings, planned: list[SupervisedProgram], env: Mapping[str, str]
) -> tuple[process.Child, Supervisor]:
    for program in planned:
        program.directory.mkdir(parents=True, exist_ok=True)
    file = settings.state / "run" / "supervisord.conf"
    file.write_text(supervision.supervisor_config(settings, planned))
    argv = [sys.executable, "-m", "supervisor.supervisord", "-c", str(file)]
    child = process.start(argv, env=env, cwd=settings.state, log=settings.log / "supervisord.out")
    supervisor = Supervisor(settings.state)
    _wait("the supervisor", supervisor.answers, settings, child, "supervisord")
    return child, supervisor


def _migrate(settings: Settings) -> None:
    engine = make_engine(owner_url(settings))
    try:
        migrate.upgrade(engine)
    except Exception as error:
        words = str(error).splitlines()[0]
        raise UpError(
            f"cannot upgrade the database {postgres.hidden(settings.db.url)}: {words}"
        ) from error
    finally:
        engine.dispose()


# -- health -------------------------------------------------------------------


def _get(url: str) -> bytes | None:
    """Fetch `url`; None if the server does not answer, or not with success."""
    # The URL is on this host, so bypass any proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as answer:
            return bytes(answer.read())
    except (OSError, http.client.HTTPException):
        return None


def web_answers(settings: Settings) -> bool:
    return _get(f"http://{settings.web.host}:{settings.web.port}/healthz") is not None


def attached_workers(settings: Settings) -> set[str] | None:
    """Names of the workers connected to Buildbot.

    None if Buildbot does not answer, or requires a login (buildbot.pages).
    """
    body = _get(f"http://{settings.buildbot.www_host}:{settings.buildbot_www_port}/api/v2/workers")
    try:
        answer = json.loads(body or b"")
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    return {worker["name"] for worker in answer.get("workers", []) if worker.get("connected_to")}


def _master_listens(settings: Settings) -> bool:
    host, _, port = settings.master_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def _wait_until_healthy(settings: Settings, child: process.Child) -> None:
    _wait("the web pages", lambda: web_answers(settings), settings, child, "web")
    _wait("the Buildbot master", lambda: _master_listens(settings), settings, child, MASTER)
    if settings.buildbot.pages != "open":
        return  # the API requires a login, so connected workers cannot be queried
    names = {
        name
        for name in buildmaster.worker_names(settings)
        if not buildmaster.is_elsewhere(settings, name)
    }
    _wait(
        "the workers",
        lambda: names <= (attached_workers(settings) or set()),
        settings,
        child,
        f"{supervision.WORKER}{build_workers(settings.build)[0]}",
    )


def _wait(
    what: str,
    ready: Callable[[], bool],
    settings: Settings,
    child: process.Child,
    log: str,
) -> None:
    end = time.monotonic() + START_SECONDS
    while not ready():
        if child.poll() is not None:
            raise UpError(
                f"the supervisor exited while {what} was starting; see"
                f" {settings.log / 'supervisord.out'}"
            )
        if time.monotonic() > end:
            raise UpError(
                f"{what} did not start within {START_SECONDS:.0f} s; end of its"
                f" log:\n{log_tail(settings, log)}"
            )
        time.sleep(0.1)


def log_tail(settings: Settings, name: str) -> str:
    """Last lines of a program's log, with the name of the file."""
    file = settings.log / f"{name}.log"
    try:
        with file.open("rb") as source:
            source.seek(max(0, file.stat().st_size - 8192))
            lines = source.read().decode(errors="replace").splitlines()
    except OSError:
        lines = ["(empty)"]
    return "\n".join(["  " + line[:LOG_COLUMNS] for line in lines[-LOG_LINES:]] + [f"  ({file})"])


def _announce_addresses(settings: Settings, announce: Announce) -> None:
    announce("swingbot is up")
    announce(f"  pages     {settings.web_url}/")
    if settings.buildbot_url:
        announce(f"  Buildbot  {settings.buildbot_url}")
    announce(
        f"  mail      {settings.maildir}"
        if not settings.mail.host
        else f"  mail      {settings.mail.host}:{settings.mail.port}"
    )
    announce(f"  database  {postgres.hidden(settings.db.url)}")
    announce(f"  logs      {settings.log}")


# -- running and stopping -----------------------------------------------------


def _starts(supervisor: Supervisor) -> dict[str, int]:
    """Last start time of each program; empty if the supervisor does not answer."""
    try:
        return {name: state.start for name, state in supervisor.states().items()}
    except Supervisor.ERRORS:
        return {}


def _watch(
    settings: Settings,
    planned: list[SupervisedProgram],
    env: Mapping[str, str],
    child: process.Child,
    supervisor: Supervisor,
    announce: Announce,
    started: dict[str, int],
) -> None:
    """Report programs that died since `started`, until a signal arrives; kill those that hang.

    Reports each program at most once per minute. Replaces a supervisor that died.
    """
    announced: dict[str, float] = {}
    parts = HungParts(settings, announce)
    while True:
        time.sleep(1.0)
        if child.poll() is not None:
            announce("the supervisor died; restarting all programs")
            child, supervisor = _start_again(settings, planned, env)
            started = {}
            continue
        try:
            states = supervisor.states()
        except Supervisor.ERRORS:
            parts.check(None, child.pid)
            continue  # busy, hung or dying; check again in the next iteration
        parts.check(states, child.pid)
        for name, state in states.items():
            died = state.start != started.get(name, state.start) or state.word in _DIED
            if died and time.monotonic() - announced.get(name, float("-inf")) > TELL_AGAIN_SECONDS:
                announce(
                    f"{name} died and is being restarted ({state.words}); end of its"
                    f" log:\n{log_tail(settings, name)}"
                )
                announced[name] = time.monotonic()
            started[name] = state.start


def _start_again(
    settings: Settings, planned: list[SupervisedProgram], env: Mapping[str, str]
) -> tuple[process.Child, Supervisor]:
    process.stop_members(settings.state, STOP_SECONDS)
    part_heartbeat.forget(settings.state)
    if settings.db.url == postgres.url(settings.state):
        postgres.prepare(settings.state)
    supervision.socket(settings.state).unlink(missing_ok=True)
    child, supervisor = _start_supervisor(settings, planned, env)
    for program in sorted(planned, key=lambda program: program.order):
        supervisor.start(program.name)
    return child, supervisor


def _stop(state: Path, announce: Announce) -> None:
    if process.members(state):
        announce("stopping")
        process.stop_members(state, STOP_SECONDS)
    part_heartbeat.forget(state)


def _words(error: OSError, state: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {state} is full; free some space, or choose another --state"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"cannot write {error.filename or state} ({error.strerror}); choose another --state"
    return f"{error.filename or state}: {error.strerror or error}"
