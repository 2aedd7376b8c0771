"""What the embedded service consists of, and the supervisor (PyPI `supervisor`) that keeps it running."""

from __future__ import annotations

import dataclasses
import http.client
import sys
import xmlrpc.client
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from supervisor.xmlrpc import SupervisorTransport

from swingbot.app import buildmaster, postgres
from swingbot.app.settings import SECTIONS, Settings

POSTGRES: Final = "postgres"
MASTER: Final = "buildbot-master"
WORKER: Final = "worker-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedProgram:
    """One process under supervision. Lower `order` starts first and stops last."""

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
    """The same command as on another host."""
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


def programs(settings: Settings) -> list[SupervisedProgram]:
    """All processes of the embedded service.

    Workers stop before the master: a build that loses its worker is tried again by Buildbot, one whose master is
    stopped is cancelled. (The work itself is done by executors, which outlive both.)
    """
    state = settings.state
    found = []
    if settings.db.url == postgres.url(state):
        found.append(
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
        found.append(SupervisedProgram(name="smtpd", argv=_cli("smtpd"), order=20, directory=state))
    found.append(SupervisedProgram(name="web", argv=_cli("web"), order=30, directory=state))
    found.append(
        SupervisedProgram(
            name=MASTER, argv=_cli("master"), order=40, directory=state, stop_seconds=25
        )
    )
    found.append(SupervisedProgram(name="loop", argv=_cli("loop"), order=50, directory=state))
    for worker in buildmaster.worker_names(settings):
        if not buildmaster.is_elsewhere(settings, worker):
            found.append(
                SupervisedProgram(
                    name=f"{WORKER}{worker}",
                    argv=_worker(settings, worker),
                    order=60,
                    directory=state,
                    stop_seconds=3,
                )
            )
    return found


def socket(state: Path) -> Path:
    return postgres.short_directory(state / "run") / "supervisor.sock"


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def _quote(argv: Iterable[str]) -> str:
    return " ".join(
        '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"' if part else "''"
        for part in argv
    )


def supervisor_config(settings: Settings, wanted: Sequence[SupervisedProgram]) -> str:
    """The supervisor's configuration file. Nothing starts by itself: `up` starts each in its turn."""
    state, log = settings.state, settings.log
    lines = [
        "; made by swingbot up, anew at each start",
        "[supervisord]",
        "nodaemon=true",
        "silent=true",  # else all that is in its log goes to its output too, which nothing rotates
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
    for program in wanted:
        lines += [
            f"[program:{program.name}]",
            f"command={_escape(_quote(program.argv))}",
            f"directory={_escape(str(program.directory))}",
            f"priority={program.order}",
            "autostart=false",
            "autorestart=true",
            "startsecs=1",
            "startretries=1000000",  # a program that cannot start is tried again, ever more slowly, and its log says why
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
    """What makes all processes agree: every setting as its variable, and our programs first on the path."""
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
    return result


class Supervisor:
    """Talks to a running supervisor; every call may raise one of `Supervisor.ERRORS`."""

    ERRORS: ClassVar = (OSError, http.client.HTTPException, xmlrpc.client.Error)

    def __init__(self, state: Path) -> None:
        self._address = f"unix://{socket(state)}"

    def _call(self, name: str, *arguments: Any) -> Any:
        # A transport of its own for each call: one that met an error can never be used again.
        transport = SupervisorTransport("", "", self._address)
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as server:
            return getattr(server.supervisor, name)(*arguments)

    def answers(self) -> bool:
        try:
            return bool(self._call("getState")["statename"] == "RUNNING")
        except self.ERRORS:
            return False

    def start(self, name: str) -> None:
        self._call("startProcess", name, False)

    def states(self) -> dict[str, tuple[str, str, int]]:
        """Of each program, its state (RUNNING, STARTING, BACKOFF, ...), the supervisor's words about it, and when it was started last (UNIX time)."""
        rows = cast("list[dict[str, Any]]", self._call("getAllProcessInfo"))
        return {
            row["name"]: (row["statename"], row["spawnerr"] or row["description"], row["start"])
            for row in rows
        }
