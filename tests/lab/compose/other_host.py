"""Another host beside the engine's: a network namespace with a cable to this one, its own
`/etc/hosts`, and workers that have only what an operator copies there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker.site import Site, from_environment

LAB = "lab.example.org"


@dataclass(frozen=True, slots=True)
class OtherHost:
    """`address`: this host's end of the cable, which `LAB` means there; `place`: its files."""

    namespace: str
    address: str
    place: Path

    def status(self, url: str) -> str:
        """The HTTP status of an answer that is signed by `ca`; "000" if there is none."""
        how = ["--silent", "--max-time", "20", "--output", "/dev/null", "--cacert", str(self.ca)]
        return subprocess.run(
            [*self._enter, "curl", *how, "--write-out", "%{http_code}", url],
            stdout=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        ).stdout

    @property
    def _enter(self) -> list[str]:
        return ["ip", "netns", "exec", self.namespace]

    @property
    def secret(self) -> Path:
        return self.place / "secret"

    @property
    def ca(self) -> Path:
        return self.place / "ca.pem"

    def log(self) -> str:
        return (self.place / "worker.log").read_text(errors="replace")

    def serve(self, worker: str, testboxes: Path) -> None:
        """`swingbot-worker serve` as docs/compose.md has it, until the host is gone."""
        site = from_environment()
        with (self.place / "worker.log").open("ab") as log:
            subprocess.Popen(
                [
                    *self._enter,
                    str(Path(sys.executable).with_name("swingbot-worker")),
                    "serve",
                    worker,
                    "--master",
                    f"{LAB}:8012",
                    "--secret-file",
                    str(self.secret),
                    "--tls-ca",
                    str(self.ca),
                    "--exchange-ca",
                    str(self.ca),
                    "--state",
                    str(self.place / "state"),
                ],
                cwd=self.place,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.place),
                    "SWINGBOT_PATHS_CACHE": str(site.cache),
                    "SWINGBOT_PATHS_WORKERS": str(self._workers(site, testboxes)),
                    "SWINGBOT_PATHS_JOBS": str(site.jobs),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _workers(self, site: Site, testboxes: Path) -> Path:
        """Its copy of `workers/`, with these testboxes."""
        copy = self.place / "workers"
        leave = shutil.ignore_patterns("testboxes", "swingbot_worker")
        shutil.copytree(site.workers, copy, ignore=leave)
        shutil.copytree(testboxes, copy / "testboxes")
        return copy


@contextlib.contextmanager
def other_host(place: Path) -> Iterator[OtherHost]:
    """A host that reaches this one at one address, by `LAB`; it is gone afterwards. Needs root."""
    number = os.getpid() % 64  # a network of four addresses, of those for documentation
    name, ours = f"swlab{os.getpid()}", f"198.51.100.{4 * number + 1}"
    hosts = Path("/etc/netns", name)
    _ip("netns", "add", name)
    try:
        hosts.mkdir(parents=True)
        (hosts / "hosts").write_text(f"127.0.0.1 localhost\n{ours} {LAB}\n")
        _ip("link", "add", f"swl{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", f"{ours}/30", "dev", f"swl{number}")
        _ip("link", "set", f"swl{number}", "up")
        for words in (
            ("address", "add", f"198.51.100.{4 * number + 2}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-netns", name, *words)
        place.mkdir(parents=True)
        yield OtherHost(name, ours, place)
    finally:
        for pid in _ip("netns", "pids", name).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _ip("netns", "delete", name)
        shutil.rmtree(hosts, ignore_errors=True)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
