"""SSH to a box's idle system by the OpenSSH client: the host key is pinned, nothing is asked, and
what goes wrong is told in one sentence.
"""

from __future__ import annotations

import gzip
import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.printable import printable
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError, process

CONNECT_SECONDS = 10
# ssh's own exit status for whatever is not the remote command's.
_OWN_STATUS = 255
# Bytes in a second that the slowest link we allow for brings over.
SLOWEST = 200_000
ANSWER_BYTES = 1 << 20


class Unreachable(InfraError):
    """The testbox does not answer now, but may answer later."""


class LoginRefused(InfraError):
    """The testbox answers but refuses the login; a person has to correct the setup."""


@dataclass(frozen=True, slots=True)
class Link:
    """The way to one box. `name` is for sentences."""

    name: str
    driver: SshDriver

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
        """What a shell script prints on the box.

        Raises Unreachable or Refused if it cannot be started, InfraError if it fails or takes too
        long.
        """
        done = process.output(ssh_argv(self.driver, script), timeout=timeout, stdin=stdin)
        text = done.text[:ANSWER_BYTES]
        if done.timed_out:
            raise Unreachable(
                f"Testbox {self.name} did not answer over SSH within {timeout:.0f} s."
            )
        if done.rc == _OWN_STATUS:
            raise fault(self.name, self.driver, text)
        if done.rc != 0:
            raise InfraError(
                f"On testbox {self.name} a command failed with status {done.rc}: {_last(text)}"
            )
        return text

    def put(self, path: str, content: bytes) -> None:
        """Bring `content` to `path` on the box and make sure that it got there whole."""
        digest, packed = (
            hashlib.sha256(content).hexdigest(),
            gzip.compress(content, compresslevel=1, mtime=0),
        )
        place = shlex.quote(path)
        script = (
            f'umask 077; mkdir -p "$(dirname {place})" && gzip -dc >{place} && sha256sum <{place}'
        )
        told = self.run(script, timeout=120 + len(packed) / SLOWEST, stdin=packed)
        if told.split()[:1] != [digest]:
            raise InfraError(
                f"{path} arrived on testbox {self.name} with a different sha256; check its memory "
                "and the network."
            )


def ssh_argv(driver: SshDriver, script: str) -> list[str]:
    """The OpenSSH command that runs `script` there: no user's settings, no agent, no question, one
    key and one known host. Pure.
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


# What the OpenSSH client prints (9.2), and what it means for whoever looks after the box.
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
        "authorized_keys on the box",
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


def fault(name: str, driver: SshDriver, said: str) -> InfraError:
    """The sentence for what the SSH client printed when it failed by itself. Pure."""
    for words, kind, sentence in _FAULTS:
        if words in said:
            filled = sentence.format(
                host=driver.host,
                port=driver.port,
                user=driver.user,
                key=driver.key,
                known_hosts=driver.known_hosts,
            )
            return kind(f"Testbox {name} {filled}.")
    return Unreachable(
        f"Testbox {name} does not answer over SSH at {driver.host} port {driver.port}: "
        f"{_last(said)}"
    )


def _last(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
    return printable(line.strip()[:300])
