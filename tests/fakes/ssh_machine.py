"""A machine that answers at a real SSH server on this host: its shell, its programs and, where a
test gives no other, its /proc and /sys are those of this host.

The server has a mount namespace of its own (bubblewrap), in which files of a described machine lie
over those of this host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.debs import debian_program

_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv PATH={folder}/bin:/usr/bin:/bin
"""


def _lacking() -> str:
    """Why no such machine can be had here; empty if it can."""
    if os.getuid() != 0:
        return "root logs in to a testbox, and only root can serve that"
    alone = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "true"]
    done = subprocess.run(alone, capture_output=True, check=False)
    return "" if done.returncode == 0 else "needs namespaces (bubblewrap)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshMachine:
    """Where it answers, and the files with which a controller reaches it."""

    folder: Path
    port: int

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def options(self) -> list[str]:
        """Of `swingbot-worker adopt`."""
        reach = ["--key", str(self.key), "--known-hosts", str(self.known_hosts)]
        return [*reach, "--port", str(self.port)]


def program(folder: Path, name: str, script: str = "exit 0\n") -> None:
    """Put a program into the machine's path, before those of this host."""
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


@contextlib.contextmanager
def ssh_machine(folder: Path, over: Mapping[str, Path]) -> Iterator[SshMachine]:
    """Serve until the end of the block. Skips the test if no such machine can be had here.

    `over`: path on the machine -> a file or directory of this host that is seen there.
    """
    if why := _lacking():
        pytest.skip(why)
    sshd = debian_program("sshd")
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    for name in ("host_key", "key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    (folder / "passwd").write_text(_passwd(Path("/etc/passwd").read_text()))
    (folder / "bin").mkdir(exist_ok=True)
    binds = {"/etc/passwd": folder / "passwd", **over}
    argv = [
        *("bwrap", "--die-with-parent", "--cap-add", "ALL", "--bind", "/", "/", "--dev", "/dev"),
        *("--tmpfs", "/run", "--dir", "/run/sshd", "--chmod", "0755", "/run/sshd"),
        *(word for place, path in binds.items() for word in ("--dev-bind", str(path), place)),
        *(*sshd, "-D", "-e", "-f", str(folder / "config")),
    ]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_until_it_answers(port, child, folder / "log")
        yield SshMachine(folder=folder, port=port)
    finally:
        child.terminate()
        child.wait()


def _passwd(text: str) -> str:
    """The accounts of this host with a shell for root, and the server's own."""
    lines = [line for line in text.splitlines() if line.split(":")[0] not in ("root", "sshd")]
    own = ["root:x:0:0:root:/root:/bin/sh", "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin"]
    return "\n".join([*own, *lines]) + "\n"


def _wait_until_it_answers(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as link:
            if link.recv(4) == b"SSH-":
                return
        assert child.poll() is None and time.monotonic() < give_up, log.read_text()
        time.sleep(0.05)


def tree(folder: Path, files: Mapping[str, str]) -> Path:
    """A directory with these files, by path and content."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder
