"""Run commands on the idle system of a testbox with the OpenSSH client.

The host key is pinned, and the client never prompts. Each failure is reported in one sentence.
"""

from __future__ import annotations

import gzip
import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError, limits, process
from swingbot_worker.testbox.console import last_line
from swingbot_worker.testbox.ssh import enter

CONNECT_SECONDS = 10
# Exit status of ssh for its own errors, as opposed to those of the remote command.
_OWN_STATUS = 255
# Bytes per second of the slowest supported link.
SLOWEST = 200_000
# Where the idle system keeps the highest fencing token; in its workspace if this is not writable.
KEPT = "/var/lib/swingbot"


class Unreachable(InfraError):
    """The testbox does not answer now, but may answer later."""


class FencedOff(InfraError):
    """A controller with a later lease has commanded the testbox."""


class LoginRefused(InfraError):
    """The testbox answers but refuses the login; a person has to correct the setup."""


@dataclass(frozen=True, slots=True)
class Link:
    """SSH access to one testbox. `name` is used in error messages.

    `fence` is the fencing token of the lease; None: its commands are not compared with others.
    """

    name: str
    driver: SshDriver
    fence: int | None = None

    def check_files(self) -> None:
        """Raise LoginRefused if key or known_hosts is missing, or if others can read the key."""
        for what, file in (("key", self.driver.key), ("known_hosts", self.driver.known_hosts)):
            path = Path(file)
            if not path.is_file():
                raise LoginRefused(
                    f"The file {path} ({what} of testbox {self.name}) does not exist; create it, "
                    f"or change ssh.{what}."
                )
        if Path(self.driver.key).stat().st_mode & 0o077:
            raise LoginRefused(
                f"The private key {self.driver.key} of testbox {self.name} can be read by others; "
                "chmod 600 it."
            )

    def run(self, script: str, *, timeout: float = 60.0, stdin: bytes | None = None) -> str:
        """Run a shell script on the testbox and return its output.

        Raises Unreachable if the testbox does not answer within `timeout` seconds, LoginRefused if
        it refuses the login, and InfraError if the script fails.
        """
        return self._output(*self._answer(script, timeout, stdin))

    def command(self, script: str, *, timeout: float = 60.0) -> str:
        """Run a script that boots the testbox, or prepares that, unless a later lease was seen.

        Raises as `run`, Unreachable too while another command is under way, and FencedOff.
        """
        if self.fence is None:
            return self.run(script, timeout=timeout)
        places = (KEPT, f"{self.driver.workspace}-fence")
        status, text = self._answer(
            enter.fenced(script, self.fence, places), timeout + enter.LOCK_SECONDS, None
        )
        if status == enter.BUSY:
            raise Unreachable(f"Testbox {self.name} is busy: {_last(text)}.")
        if status == enter.FENCED:
            seen, _, file = _last(text).partition(" ")
            raise FencedOff(
                f"Testbox {self.name} belongs to another controller: it has seen lease {seen}, and "
                f"this controller's lease is {self.fence}; nothing was done. If the service was "
                f"reinstalled with an earlier clock, remove {file} on the testbox."
            )
        return self._output(status, text)

    def _output(self, status: int, text: str) -> str:
        """Return the output of a script. Raises InfraError if the script failed."""
        if status != 0:
            raise InfraError(
                f"A command on testbox {self.name} failed with status {status}: {_last(text)}"
            )
        return text

    def _answer(self, script: str, timeout: float, stdin: bytes | None) -> tuple[int, str]:
        """Return the exit status and the output of a script. Raises Unreachable, LoginRefused."""
        done = process.output(ssh_argv(self.driver, script), timeout=timeout, stdin=stdin)
        text = done.text[: limits.ANSWER_BYTES]
        if done.timed_out:
            raise Unreachable(
                f"Testbox {self.name} did not answer over SSH within {timeout:.0f} s."
            )
        if done.rc == _OWN_STATUS:
            raise fault(self.name, self.driver, text)
        return done.rc, text

    def put(self, path: str, content: bytes) -> None:
        """Write `content` to `path` on the testbox.

        Raises InfraError if its SHA-256 checksum differs on the testbox.
        """
        digest, packed = (
            hashlib.sha256(content).hexdigest(),
            gzip.compress(content, compresslevel=1, mtime=0),
        )
        target = shlex.quote(path)
        script = (
            f'umask 077; mkdir -p "$(dirname {target})" && '
            f"gzip -dc >{target} && sha256sum <{target}"
        )
        answer = self.run(script, timeout=120 + len(packed) / SLOWEST, stdin=packed)
        if answer.split()[:1] != [digest]:
            raise InfraError(
                f"{path} arrived on testbox {self.name} with a different sha256; check its memory "
                "and the network."
            )


def ssh_argv(driver: SshDriver, script: str) -> list[str]:
    """Return the OpenSSH command that runs `script` on the testbox. Pure.

    It ignores user settings, uses no agent, never prompts, and accepts only the configured key and
    known host.
    """
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": driver.known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PasswordAuthentication": "no",
        "ForwardAgent": "no",
        "ControlPath": "none",
        "ConnectTimeout": str(CONNECT_SECONDS),
        "ServerAliveInterval": "10",
        "ServerAliveCountMax": "3",
        "LogLevel": "ERROR",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return [
        "ssh",
        "-F",
        "none",
        "-T",
        *words,
        "-i",
        driver.key,
        "-p",
        str(driver.port),
        "-l",
        driver.user,
        driver.host,
        script,
    ]


# Messages of the OpenSSH client (9.2), and the corresponding explanation for the operator.
_FAULTS = (
    (
        "Could not resolve hostname",
        LoginRefused,
        "has a host name that cannot be resolved: {host}; check DNS, or set ssh.host to its "
        "address",
    ),
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        LoginRefused,
        "has a host key that differs from {known_hosts}; if it was reinstalled, add its new key "
        "there, otherwise suspect an attack",
    ),
    (
        "Host key verification failed",
        LoginRefused,
        "has a host key that is not in {known_hosts}; verify it at the testbox's console, then add "
        "it",
    ),
    (
        "No matching host key",
        LoginRefused,
        "has no host key of a type that this host accepts; create an ed25519 key on it",
    ),
    (
        "Permission denied",
        LoginRefused,
        "does not accept the key {key} for {user}; add its public half to that user's "
        "authorized_keys on the testbox",
    ),
    (
        "error in libcrypto",
        LoginRefused,
        "cannot be reached with {key}: the file is not a private key; create a new pair with "
        "ssh-keygen -t ed25519",
    ),
    (
        "invalid format",
        LoginRefused,
        "cannot be reached with {key}: the file is not a private key; create a new pair with "
        "ssh-keygen -t ed25519",
    ),
    (
        "Connection refused",
        Unreachable,
        "refuses connections to port {port} of {host}: no SSH server is running",
    ),
    (
        "No route to host",
        Unreachable,
        "cannot be reached at {host}: no route; check cable, switch and address",
    ),
    (
        "Network is unreachable",
        Unreachable,
        "cannot be reached at {host}: no route; check this host's network",
    ),
)


def fault(name: str, driver: SshDriver, output: str) -> InfraError:
    """Return the error for the output of an SSH client that itself failed. Pure."""
    for words, kind, sentence in _FAULTS:
        if words in output:
            explanation = sentence.format(
                host=driver.host,
                port=driver.port,
                user=driver.user,
                key=driver.key,
                known_hosts=driver.known_hosts,
            )
            return kind(f"Testbox {name} {explanation}.")
    return Unreachable(
        f"Testbox {name} does not answer over SSH at {driver.host} port {driver.port}: "
        f"{_last(output)}"
    )


def _last(text: str) -> str:
    return last_line(text) or "it printed nothing"
