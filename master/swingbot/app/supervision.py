"""Programs of the embedded service, and their supervisor (PyPI `supervisor`)."""

from __future__ import annotations

import dataclasses
import http.client
import socket as sockets
import sys
import xmlrpc.client
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from supervisor.xmlrpc import SupervisorTransport

from swingbot.app import buildmaster, postgres
from swingbot.app.settings import SECTIONS, Settings
from swingbot_jobs.contract import worker_name

POSTGRES: Final = "postgres"
MASTER: Final = "buildbot-master"
WORKER: Final = "worker-"
CALL_SECONDS: Final = 5.0  # for an answer of the supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramState:
    """A program as the supervisor sees it.

    `word` is RUNNING, STARTING, BACKOFF, ...; `start` is a Unix time; `pid` is 0 without a process;
    `seconds` is the age of the process.
    """

    word: str
    words: str
    start: int
    pid: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedProgram:
    """A supervised process. A lower `order` starts earlier and stops later."""

    name: str
    argv: Sequence[str]
    order: int
    directory: Path
    user: str | None = None
    stop_signal: str = "TERM"
    stop_seconds: int = 5
    environment: Mapping[str, str] = field(default_factory=dict)


def _cli(*words: str) -> list[str]:
    return [sys.executable, "-m", "swingbot.app.cli", *words]


def _worker(settings: Settings, worker: str) -> list[str]:
    """Command of a worker, the same as on another host."""
    tls = settings.buildbot.tls_ca or settings.buildbot.tls_certificate
    return [
        *(sys.executable, "-m", "swingbot_worker.cli", "serve", worker),
        *("--master", settings.master_address),
        *(
            "--secret-file",
            str(buildmaster.secret_file(settings, worker)),
            "--state",
            str(worker_directory(settings, worker)),
        ),
        *(("--tls-ca", tls) if tls else ()),
    ]


def master_directory(settings: Settings) -> Path:
    return settings.state / "buildbot"


def worker_directory(settings: Settings, worker: str) -> Path:
    return settings.state / "workers" / worker


def keep_former_directories(settings: Settings) -> None:
    """Link each worker's directory to the one that it had under its former name.

    A link, because boots in progress use the old path.
    """
    for worker in buildmaster.worker_names(settings):
        former, current = worker_name.former(worker), worker_directory(settings, worker)
        if former and worker_directory(settings, former).is_dir() and not current.exists():
            current.symlink_to(former)


def programs(settings: Settings) -> list[SupervisedProgram]:
    """All processes of the embedded service.

    Workers stop before the master: Buildbot retries a build that loses its worker, but cancels one
    whose master stops. (Executors do the actual work and outlive both.)
    """
    state = settings.state
    supervised = []
    if settings.db.url == postgres.url(state):
        supervised.append(
            SupervisedProgram(
                name=POSTGRES,
                argv=postgres.argv(state),
                order=10,
                directory=state,
                user=postgres.user(),
                stop_signal="INT",
                stop_seconds=15,
            )
        )
    if not settings.mail.host:
        supervised.append(
            SupervisedProgram(name="smtpd", argv=_cli("smtpd"), order=20, directory=state)
        )
    supervised.append(SupervisedProgram(name="web", argv=_cli("web"), order=30, directory=state))
    supervised.append(
        SupervisedProgram(
            name=MASTER, argv=_cli("master"), order=40, directory=state, stop_seconds=25
        )
    )
    supervised.append(SupervisedProgram(name="loop", argv=_cli("loop"), order=50, directory=state))
    for worker in buildmaster.worker_names(settings):
        if not buildmaster.is_elsewhere(settings, worker):
            supervised.append(
                SupervisedProgram(
                    name=f"{WORKER}{worker}",
                    argv=_worker(settings, worker),
                    order=60,
                    directory=state,
                    stop_seconds=3,
                )
            )
    return supervised


def socket(state: Path) -> Path:
    return postgres.short_directory(state / "run") / "supervisor.sock"


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _quote(argv: Iterable[str]) -> str:
    return " ".join(
        '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"' if part else "''"
        for part in argv
    )


def supervisor_config(settings: Settings, planned: Sequence[SupervisedProgram]) -> str:
    """The supervisor's configuration file. Without autostart: `up` starts the programs in order."""
    state, log = settings.state, settings.log
    lines = [
        "; generated by swingbot up at each start",
        "[supervisord]",
        "nodaemon=true",
        "silent=true",  # else its log is copied to stdout, which is not rotated
        f"logfile={_escape(str(log / 'supervisord.log'))}",
        "logfile_maxbytes=5MB",
        "logfile_backups=1",
        f"pidfile={_escape(str(state / 'run' / 'supervisord.pid'))}",
        f"childlogdir={_escape(str(log))}",
        "umask=022",
        "[unix_http_server]",
        f"file={_escape(str(socket(state)))}",
        "chmod=0700",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
    ]
    for program in planned:
        lines += [
            f"[program:{program.name}]",
            f"command={_escape(_quote(program.argv))}",
            f"directory={_escape(str(program.directory))}",
            f"priority={program.order}",
            "autostart=false",
            "autorestart=true",
            "startsecs=1",
            # retry a failing program, ever more slowly; its log says why it fails
            "startretries=1000000",
            f"stopsignal={program.stop_signal}",
            f"stopwaitsecs={program.stop_seconds}",
            "killasgroup=true",
            "redirect_stderr=true",
            f"stdout_logfile={_escape(str(log / (program.name + '.log')))}",
            "stdout_logfile_maxbytes=5MB",
            "stdout_logfile_backups=2",
        ]
        if program.user is not None:
            lines.append(f"user={program.user}")
    return "\n".join(lines) + "\n"


def environment(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of all processes: every setting as its variable, our programs first in PATH."""
    result = {name: value for name, value in inherited.items() if name != "SWINGBOT_CONFIG"}
    for section in SECTIONS:
        values = getattr(settings, section)
        for key in (one.name for one in dataclasses.fields(values)):
            value = getattr(values, key)
            result[f"SWINGBOT_{section.upper()}_{key.upper()}"] = (
                str(value).lower() if isinstance(value, bool) else str(value)
            )
    result["SWINGBOT_PATHS_STATE"] = str(settings.state)
    result["SWINGBOT_PATHS_CACHE"] = str(settings.cache)
    result["PATH"] = (
        f"{Path(sys.executable).parent}:{inherited.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    )
    result["PYTHONUNBUFFERED"] = "1"
    result["PYTHONFAULTHANDLER"] = "1"  # a part that hangs shows where when it is aborted
    return result


class _Transport(SupervisorTransport):  # type: ignore[misc]  # supervisor is not typed
    """A transport that gives up: a supervisor that hangs must not stop its client."""

    def __init__(self, user: str, password: str, address: str) -> None:
        super().__init__(user, password, address)
        self._get_connection = lambda: _UnixConnection(address.removeprefix("unix://"))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        self.sock.settimeout(CALL_SECONDS)
        self.sock.connect(self._path)


class Supervisor:
    """Client of a running supervisor; calls may raise one of `Supervisor.ERRORS`."""

    ERRORS: ClassVar = (OSError, http.client.HTTPException, xmlrpc.client.Error)

    def __init__(self, state: Path) -> None:
        self._address = f"unix://{socket(state)}"

    def _call(self, name: str, *arguments: Any) -> Any:
        # A new transport for each call: after an error it cannot be reused.
        transport = _Transport("", "", self._address)
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as server:
            return getattr(server.supervisor, name)(*arguments)

    def answers(self) -> bool:
        try:
            return bool(self._call("getState")["statename"] == "RUNNING")
        except self.ERRORS:
            return False

    def start(self, name: str) -> None:
        self._call("startProcess", name, False)

    def states(self) -> dict[str, ProgramState]:
        """State of each program by name."""
        rows = cast("list[dict[str, Any]]", self._call("getAllProcessInfo"))
        return {
            row["name"]: ProgramState(
                word=row["statename"],
                words=row["spawnerr"] or row["description"],
                start=row["start"],
                pid=row["pid"],
                seconds=float(row["now"] - row["start"]),
            )
            for row in rows
        }
