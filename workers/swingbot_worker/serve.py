"""`swingbot-worker serve`: one Buildbot worker alone in the foreground, for a process manager on any host."""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from swingbot_jobs.contract import worker_secret
from swingbot_jobs.contract.compiler import ANNOUNCEMENT, to_announcement
from swingbot_worker.kbuild.compilers import probe

KEEPALIVE_SECONDS: Final = 30
BOX_WORKER: Final = "box-"  # begins the name of a worker that drives a testbox and builds nothing
LONGEST_PAUSE_SECONDS: Final = 5.0  # between two tries to reach the master
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n.+?\n-----END CERTIFICATE-----\n?", re.DOTALL
)


class CannotServe(Exception):
    """The worker cannot be started like this; the message is one sentence that says what to do."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPv6]:PORT`. Raises CannotServe."""
    match = re.fullmatch(r"\[([0-9a-fA-F:.]+)\]:(\d{1,5})|([^:\s]+):(\d{1,5})", text)
    host, port = (match[1] or match[3], int(match[2] or match[4])) if match else ("", 0)
    if not 0 < port < 65536:
        raise CannotServe(
            f"--master {text}: write it as HOST:PORT, the master's address and its port for workers"
        )
    return host, port


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host` stays on this host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def connection_string(host: str, port: int, trusted: Path | None) -> str:
    """The master as a Twisted client endpoint; `trusted` is a directory with the CAs, one a file. Raises CannotServe where plain text would leave this host."""
    where = f"host={_quoted(host)}:port={port}"
    if trusted is not None:
        return f"tls:{where}:trustRoots={_quoted(str(trusted))}"
    if not is_loopback(host):
        raise CannotServe(
            f"the secret would go to {host} in plain text: give --tls-ca FILE, the CA of the master's certificate"
        )
    return f"tcp:{where}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("=", "\\=")


def read_secret(file: Path) -> str:
    """The first line of `file`. Raises CannotServe."""
    try:
        return worker_secret.read(file)
    except worker_secret.UnreadableSecret as error:
        raise CannotServe(
            f"--secret-file {file}: {error}; bring it from the master's host"
        ) from None
    except worker_secret.SecretTooShort as error:
        raise CannotServe(
            f"--secret-file {file}: {error.length} characters are no secret; `swingbot worker secret NAME` on the master's host makes one"
        ) from None


def trust(ca: Path, state: Path) -> Path:
    """A directory that holds the certificates of `ca`, one a file, as Twisted wants them. Raises CannotServe."""
    try:
        found: Sequence[str] = _CERTIFICATE.findall(ca.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise CannotServe(
            f"--tls-ca {ca}: {error.strerror if isinstance(error, OSError) else 'not text'}"
        ) from None
    if not found:
        raise CannotServe(f"--tls-ca {ca}: there is no certificate in it; it has to be a PEM file")
    directory = state / "trusted"
    directory.mkdir(exist_ok=True)
    for old in directory.glob("*.pem"):
        old.unlink()
    for number, certificate in enumerate(found):
        (directory / f"{number:04}.pem").write_text(certificate)
    return directory


def prepare_state(state: Path, name: str) -> None:
    """Make the worker's directory, with what it tells the master at each login.

    That is what Buildbot's pages show of the worker and, for a build worker, its compilers.
    """
    info = state / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "admin").write_text("the operator of this swingbot\n")
    (info / "host").write_text(f"worker {name} on {os.uname().nodename}\n")
    if not name.startswith(BOX_WORKER):
        (info / ANNOUNCEMENT).write_text(json.dumps(to_announcement(probe())))


def default_state(name: str) -> Path:
    return (
        Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        / "swingbot-worker"
        / name
    )


def serve(name: str, endpoint: str, secret_file: Path, state: Path) -> NoReturn:
    """Connect, and again whenever the connection is lost, until SIGTERM. Attempts under way go on without us."""
    from buildbot_worker import pb
    from twisted.application.internet import backoffPolicy
    from twisted.internet import reactor as installed
    from twisted.python import log

    reactor: Any = installed  # a module that is an object: no type fits
    log.startLogging(sys.stdout, setStdout=False)  # type: ignore[no-untyped-call]
    teller = _ConnectionReporter()
    pb.clientFromString = teller.endpoint
    # Buildbot 4.3.0 takes no other way; its own is 60 s
    pb.backoffPolicy = functools.partial(backoffPolicy, maxDelay=LONGEST_PAUSE_SECONDS)
    worker = pb.Worker(
        None,
        None,
        name,
        read_secret(secret_file),
        str(state),
        KEEPALIVE_SECONDS,
        umask=0o022,
        connection_string=endpoint,
    )
    worker.bf.buildProtocol = teller.protocols(worker.bf.buildProtocol)
    _read_secret_at_each_login(worker, name, secret_file)
    _outlive_odd_answers(worker)
    worker.startService()
    reactor.addSystemEventTrigger("before", "shutdown", worker.stopService)
    reactor.run()
    sys.exit(0)


class _ConnectionReporter:
    """Says why there is no connection, once for each reason: Buildbot's worker says only that it tries again."""

    def __init__(self) -> None:
        self._told = ""

    def _tell(self, why: Any) -> Any:
        from twisted.python import log

        # OpenSSL's errors are lists of tuples
        reason = (
            getattr(why.value, "args", None)
            and isinstance(why.value.args[0], list)
            and why.value.args[0]
        )
        words = (
            "; ".join(str(one[-1]) for one in reason if one) if reason else why.getErrorMessage()
        )
        if words != self._told:
            log.msg(f"swingbot-worker: no connection to the master: {words}")
            self._told = words
        return why

    def endpoint(self, reactor: Any, description: str) -> Any:
        """In place of Twisted's function: an endpoint whose failures are told."""
        from twisted.internet.endpoints import clientFromString

        made: Any = clientFromString(reactor, description)  # type: ignore[no-untyped-call]
        connect = made.connect
        made.connect = lambda factory: connect(factory).addErrback(self._tell)
        return made

    def protocols(self, build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A failed handshake ends a connection that had been made: told when it is lost."""

        def build_protocol(address: Any) -> Any:
            made = build(address)
            lost = made.connectionLost
            made.connectionLost = lambda why: (self._tell(why), lost(why))
            return made

        return build_protocol


def _read_secret_at_each_login(worker: Any, name: str, secret_file: Path) -> None:
    """So that a new secret needs no restart; Buildbot would keep the one that it was started with."""
    from twisted.cred import credentials
    from twisted.python import log

    log_in = worker.bf.doLogin

    def log_in_anew(root: Any, broker: Any) -> Any:
        try:
            worker.bf.startLogin(
                credentials.UsernamePassword(name.encode(), read_secret(secret_file).encode()),
                client=worker.bot,
            )
        except CannotServe as error:
            log.msg(f"swingbot-worker: {error}; trying the secret that was there before")
        return log_in(root, broker)

    worker.bf.doLogin = log_in_anew


def _outlive_odd_answers(worker: Any) -> None:
    """Try again whatever the master answers to a login: Buildbot's worker ends if a master that is just stopping answers with a fault."""
    from twisted.cred import error
    from twisted.python import failure, log
    from twisted.spread import pb

    give_up = worker.bf.failedToGetPerspective

    def try_again(why: Any, broker: Any) -> Any:
        if why.check(error.UnauthorizedLogin):
            log.msg(
                "swingbot-worker: the master refuses the secret; `swingbot worker secret NAME` on its host prints the right one"
            )
        elif not why.check(pb.PBConnectionLost):
            log.msg(f"swingbot-worker: the master could not log us in: {why.getErrorMessage()}")
            why = failure.Failure(pb.PBConnectionLost("the master could not log us in"))  # type: ignore[no-untyped-call]
        return give_up(why, broker)

    worker.bf.failedToGetPerspective = try_again


@click.command(
    name="serve",
    epilog="""\b
Examples:
  swingbot-worker serve builder --master 127.0.0.1:8012 --secret-file ~/builder.secret
  swingbot-worker serve box-rack3 --master lab.example.org:8012 --secret-file /etc/swingbot/box-rack3 --tls-ca /etc/swingbot/ca.pem

NAME is `builder`, or `box-` and the testbox's name. `swingbot worker secret NAME` on the master's host makes its secret.
Where the worker finds and keeps things is said by SWINGBOT_PATHS_CACHE, SWINGBOT_PATHS_JOBS and SWINGBOT_PATHS_WORKERS.
Exit status: 0 stopped by a signal, 2 wrong usage.""",
)
@click.argument("name")
@click.option(
    "--master",
    required=True,
    metavar="HOST:PORT",
    help="The Buildbot master and its port for workers.",
)
@click.option(
    "--secret-file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File whose first line is this worker's secret.",
)
@click.option(
    "--tls-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    help="PEM file of the CA that the master's certificate comes from; without it, loopback only.",
)
@click.option(
    "--exchange-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    help="PEM file of the CA of the web service and the git server; default: the host's own.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory that keeps attempts; default ${XDG_STATE_HOME:-~/.local/state}/swingbot-worker/NAME.",
)
def command(
    name: str,
    master: str,
    secret_file: Path,
    tls_ca: Path | None,
    exchange_ca: Path | None,
    state: Path | None,
) -> None:
    """Serve the Buildbot master as the worker NAME, in the foreground, until SIGTERM."""
    state = (state or default_state(name)).absolute()
    try:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name) is None:
            raise CannotServe(
                f"{name!r} is no name of a worker: it is `builder`, or `box-` and the testbox's name"
            )
        host, port = parse_address(master)
        read_secret(secret_file)
        prepare_state(state, name)
        endpoint = connection_string(host, port, trust(tls_ca, state) if tls_ca else None)
        _set_environment(exchange_ca)
    except CannotServe as error:
        click.echo(f"swingbot-worker serve: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(
            f"swingbot-worker serve: {error.filename or state}: {error.strerror}; the worker needs a directory that it can write to",
            err=True,
        )
        sys.exit(2)
    serve(name, endpoint, secret_file.absolute(), state)


def _set_environment(exchange_ca: Path | None) -> None:
    """What the attempts that we start have to find: our own programs first, and the CA of whom they talk to."""
    os.environ["PATH"] = (
        f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    )
    if exchange_ca is not None:
        if not os.access(exchange_ca, os.R_OK):
            raise CannotServe(f"--exchange-ca {exchange_ca} cannot be read")
        os.environ["SWINGBOT_EXCHANGE_CA"] = os.environ["GIT_SSL_CAINFO"] = str(
            exchange_ca.absolute()
        )


if __name__ == "__main__":
    command()
