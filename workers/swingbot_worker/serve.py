"""`swingbot-worker serve`: run one Buildbot worker in the foreground, under any process manager."""

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

from swingbot_jobs.contract import worker_name, worker_secret
from swingbot_jobs.contract.compiler import ANNOUNCEMENT, to_announcement
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS
from swingbot_jobs.terminal import fail
from swingbot_worker.heartbeat import WorkerHeartbeat
from swingbot_worker.kbuild.probe_compilers import probe

KEEPALIVE_SECONDS: Final = 30
LONGEST_PAUSE_SECONDS: Final = 5.0  # between two attempts to reach the master
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n.+?\n-----END CERTIFICATE-----\n?", re.DOTALL
)


class CannotServe(Exception):
    """The worker cannot start with these options; the message is one sentence with the remedy."""


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[IPv6]:PORT`. Raises CannotServe."""
    match = re.fullmatch(r"\[([0-9a-fA-F:.]+)\]:(\d{1,5})|([^:\s]+):(\d{1,5})", text)
    host, port = (match[1] or match[3], int(match[2] or match[4])) if match else ("", 0)
    if not 0 < port < 65536:
        raise CannotServe(
            f"--master {text}: write it as HOST:PORT, the master's address and its port for workers"
        )
    return host, port


def is_loopback(host: str) -> bool:
    """Return True if traffic to `host` does not leave this host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def connection_string(host: str, port: int, trusted: Path | None) -> str:
    """Return the master as a Twisted client endpoint.

    `trusted` is a directory with one CA certificate per file. Raises CannotServe if plain text
    would leave this host.
    """
    where = f"host={_quoted(host)}:port={port}"
    if trusted is not None:
        return f"tls:{where}:trustRoots={_quoted(str(trusted))}"
    if not is_loopback(host):
        raise CannotServe(
            f"the secret would go to {host} in plain text: give --tls-ca FILE, the CA of the "
            "master's certificate"
        )
    return f"tcp:{where}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("=", "\\=")


def read_secret(file: Path) -> str:
    """Return the first line of `file`. Raises CannotServe."""
    try:
        return worker_secret.read(file)
    except worker_secret.UnreadableSecret as error:
        raise CannotServe(
            f"--secret-file {file}: {error}; copy it from the master's host"
        ) from None
    except worker_secret.SecretTooShort as error:
        raise CannotServe(
            f"--secret-file {file}: {error.length} characters are too short for a secret; create "
            "one with `swingbot worker secret NAME` on the master's host"
        ) from None


def trust(ca: Path, state: Path) -> Path:
    """Write the certificates of `ca` to a directory, one per file as Twisted requires.

    Returns the directory. Raises CannotServe.
    """
    try:
        certificates: Sequence[str] = _CERTIFICATE.findall(ca.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise CannotServe(
            f"--tls-ca {ca}: {error.strerror if isinstance(error, OSError) else 'not text'}"
        ) from None
    if not certificates:
        raise CannotServe(f"--tls-ca {ca}: no certificate in this file; it must be a PEM file")
    directory = state / "trusted"
    directory.mkdir(exist_ok=True)
    for old in directory.glob("*.pem"):
        old.unlink()
    for number, certificate in enumerate(certificates):
        (directory / f"{number:04}.pem").write_text(certificate)
    return directory


def prepare_state(state: Path, name: str) -> None:
    """Create the worker's directory with the information that it sends to the master at each login.

    Buildbot's pages show this information. That of a build worker includes its compilers.
    """
    info = state / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "admin").write_text("the operator of this swingbot\n")
    (info / "host").write_text(f"worker {name} on {os.uname().nodename}\n")
    if not worker_name.drives_testbox(name):
        (info / ANNOUNCEMENT).write_text(json.dumps(to_announcement(probe())))


def default_state(name: str) -> Path:
    return (
        Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        / "swingbot-worker"
        / name
    )


def serve(name: str, endpoint: str, secret_file: Path, state: Path) -> NoReturn:
    """Connect to the master, and reconnect when the connection is lost, until SIGTERM.

    Running attempts continue.
    """
    from buildbot_worker import pb
    from twisted.application.internet import backoffPolicy
    from twisted.internet import reactor as installed
    from twisted.internet.task import LoopingCall
    from twisted.python import log

    reactor: Any = installed  # declared as a module, used as an object: no type fits
    log.startLogging(sys.stdout, setStdout=False)  # type: ignore[no-untyped-call]
    reporter = _ConnectionReporter()
    pb.clientFromString = reporter.endpoint
    # Buildbot 4.3.0 has no option for this; its own value is 60 s
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
    worker.bf.buildProtocol = reporter.protocols(worker.bf.buildProtocol)
    _read_secret_at_each_login(worker, name, secret_file)
    _outlive_odd_answers(worker)
    worker.startService()
    reactor.addSystemEventTrigger("before", "shutdown", worker.stopService)
    heart = WorkerHeartbeat(state)
    beats = LoopingCall(heart.beat)
    reactor.callWhenRunning(beats.start, BEAT_SECONDS)
    reactor.run()
    heart.end()
    sys.exit(0)


class _ConnectionReporter:
    """Logs why there is no connection, once for each reason.

    Buildbot's worker logs only that it retries.
    """

    def __init__(self) -> None:
        self._reported = ""

    def _report(self, why: Any) -> Any:
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
        if words != self._reported:
            log.msg(f"swingbot-worker: no connection to the master: {words}")
            self._reported = words
        return why

    def endpoint(self, reactor: Any, description: str) -> Any:
        """Replace Twisted's function with one whose endpoint logs its failures."""
        from twisted.internet.endpoints import clientFromString

        client: Any = clientFromString(reactor, description)  # type: ignore[no-untyped-call]
        connect = client.connect
        client.connect = lambda factory: connect(factory).addErrback(self._report)
        return client

    def protocols(self, build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Log a failed handshake, which closes an established connection."""

        def build_protocol(address: Any) -> Any:
            protocol = build(address)
            lost = protocol.connectionLost
            protocol.connectionLost = lambda why: (self._report(why), lost(why))
            return protocol

        return build_protocol


def _read_secret_at_each_login(worker: Any, name: str, secret_file: Path) -> None:
    """Read the secret again at each login, so that a new secret needs no restart of the worker."""
    from twisted.cred import credentials
    from twisted.python import log

    log_in = worker.bf.doLogin

    def log_in_again(root: Any, broker: Any) -> Any:
        try:
            worker.bf.startLogin(
                credentials.UsernamePassword(name.encode(), read_secret(secret_file).encode()),
                client=worker.bot,
            )
        except CannotServe as error:
            log.msg(f"swingbot-worker: {error}; trying the previous secret")
        return log_in(root, broker)

    worker.bf.doLogin = log_in_again


def _outlive_odd_answers(worker: Any) -> None:
    """Retry a login after any answer of the master.

    Buildbot's worker would exit if a master that is shutting down answers with an error.
    """
    from twisted.cred import error
    from twisted.python import failure, log
    from twisted.spread import pb

    give_up = worker.bf.failedToGetPerspective

    def try_again(why: Any, broker: Any) -> Any:
        if why.check(error.UnauthorizedLogin):
            log.msg(
                "swingbot-worker: the master rejected the secret; `swingbot worker secret NAME` on "
                "its host prints the correct one"
            )
        elif not why.check(pb.PBConnectionLost):
            log.msg(
                f"swingbot-worker: the master failed to log this worker in: {why.getErrorMessage()}"
            )
            lost = pb.PBConnectionLost("the master failed to log this worker in")
            why = failure.Failure(lost)  # type: ignore[no-untyped-call]
        return give_up(why, broker)

    worker.bf.failedToGetPerspective = try_again


@click.command(
    name="serve",
    epilog="""\b
Examples:
  swingbot-worker serve builder --master 127.0.0.1:8012 --secret-file ~/builder.secret
  swingbot-worker serve testbox-rack3 --master lab.example.org:8012 --tls-ca /etc/swingbot/ca.pem \\
    --secret-file /etc/swingbot/testbox-rack3

NAME is `builder`, or `testbox-` and the testbox's name.
`swingbot worker secret NAME` on the master's host creates its secret.
SWINGBOT_PATHS_CACHE, SWINGBOT_PATHS_JOBS and SWINGBOT_PATHS_WORKERS set the worker's directories.
Exit status: 0 stopped by a signal, 2 invalid usage.""",
)
@click.argument("name")
@click.option(
    "--master",
    required=True,
    metavar="HOST:PORT",
    help="Address of the Buildbot master and its port for workers.",
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
    help=(
        "PEM file with the CA of the master's certificate; without it, only a loopback address is "
        "allowed."
    ),
)
@click.option(
    "--exchange-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    help="PEM file with the CA of the web service and the git server (default: this host's CAs).",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help=(
        "Directory for attempts (default: ${XDG_STATE_HOME:-~/.local/state}/swingbot-worker/NAME)."
    ),
)
def command(
    name: str,
    master: str,
    secret_file: Path,
    tls_ca: Path | None,
    exchange_ca: Path | None,
    state: Path | None,
) -> None:
    """Run the Buildbot worker NAME in the foreground until SIGTERM."""
    state = (state or default_state(name)).absolute()
    try:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name) is None:
            raise CannotServe(
                f"{name!r} is not a valid worker name: use `builder`, or `testbox-` and the "
                "testbox's name"
            )
        host, port = parse_address(master)
        read_secret(secret_file)
        prepare_state(state, name)
        endpoint = connection_string(host, port, trust(tls_ca, state) if tls_ca else None)
        _set_environment(exchange_ca)
    except CannotServe as error:
        fail(2, f"swingbot-worker serve: {error}")
    except OSError as error:
        fail(
            2,
            f"swingbot-worker serve: {error.filename or state}: {error.strerror}; the worker needs "
            "a writable directory",
        )
    serve(name, endpoint, secret_file.absolute(), state)


def _set_environment(exchange_ca: Path | None) -> None:
    """Set the environment of attempts: PATH starts with swingbot's programs, the CA is trusted."""
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
