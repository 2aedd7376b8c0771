"""The service under attack, and what an honest client sees of it meanwhile."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import httpx
import psutil

MEMORY_LIMIT: Final = 300 << 20
PAUSE_SECONDS: Final = 0.1
UNDISTURBED_ROUNDS: Final = 5


class Result(NamedTuple):
    """Whether the service held, and the figures that say so. `skipped`: it was not attacked.

    `late`: nothing failed but answers came late, which other work on the host can cause too.
    """

    held: bool
    line: str
    skipped: bool = False
    late: bool = False


def skipped(reason: str) -> Result:
    """Return the result of an attack that was not tried: it did not hold."""
    return Result(held=False, line=reason, skipped=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`worker` are the headers of an attempt under way, whose id is `attempt`; None: no worker.

    `pid` is the process of the web service; None if it runs elsewhere (its memory is not judged).
    `boot` has many samples and a large file, `table` many rows. `state` is the state directory of a
    service on this host, `temporary` its directory of temporary files (None: the host's). `token`
    is an operator's, `submitter` a submitter's, `database` the URL of its database.
    """

    host: str = "127.0.0.1"
    port: int = 8010
    buildbot_port: int = 8011
    smtp_port: int = 8013
    pid: int | None = None
    boot: str = "x1"
    table: str = "c1"
    state: Path | None = None
    temporary: Path | None = None
    token: str = ""
    submitter: str = ""
    database: str = ""
    attempt: str = ""
    worker: Mapping[str, str] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def buildbot(self) -> Target:
        """Buildbot's own pages."""
        return replace(self, port=self.buildbot_port)

    def connect(self, *, receive_buffer: int | None = None) -> socket.socket:
        """Return an open connection; a small receive buffer makes a slow reader."""
        connection = socket.socket()
        connection.settimeout(10)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.connect((self.host, self.port))
        return connection

    def ask(self, head: bytes) -> bytes:
        """Send `head`; return what comes back until the service closes the connection."""
        answer = b""
        with self.connect() as connection:
            connection.settimeout(30)
            with suppress(OSError):
                connection.sendall(head)
                while chunk := connection.recv(1 << 16):
                    answer += chunk
        return answer

    def resident(self) -> int:
        """Resident memory of the service in bytes; 0 if unknown."""
        return psutil.Process(self.pid).memory_info().rss if self.pid is not None else 0


@dataclass(slots=True)
class Watch:
    """What honest clients see: slowest response, failures, and the memory of the service."""

    target: Target
    slowest: dict[str, float] = field(default_factory=dict)
    pages: list[float] = field(default_factory=list)  # seconds of each page
    failures: list[str] = field(default_factory=list)
    resident: int = 0
    rounds: int = 0
    undisturbed: float = 0.0  # seconds of the slowest page before and after the attack

    def measure_undisturbed(self) -> None:
        """Ask some rounds without the attack."""
        calm = Watch(self.target)
        for _ in range(UNDISTURBED_ROUNDS):
            calm.ask()
        self.undisturbed = max(self.undisturbed, *calm.pages)
        self.failures.extend(calm.failures)

    def ask(self) -> None:
        """One round: a page, the health check, a worker's question and a file it delivers."""
        self._one("page", "GET", "/")
        self._one("healthz", "GET", "/healthz")
        if self.target.worker is not None:
            self._one("worker", "GET", f"/attempts/{self.target.attempt}", worker=True)
            content = f"log {time.monotonic_ns() % 8}".encode() * 1000
            path = f"/artifacts/{hashlib.sha256(content).hexdigest()}"
            self._one("delivery", "PUT", path, content, worker=True)
        self.rounds += 1

    def _one(
        self, name: str, method: str, path: str, content: bytes = b"", *, worker: bool = False
    ) -> None:
        headers = dict(self.target.worker or {}) if worker else {}
        begin = time.monotonic()
        try:
            answer = httpx.request(
                method,
                self.target.url + path,
                content=content or None,
                headers=headers,
                timeout=60,
                trust_env=False,
            )
            if answer.status_code >= 400:
                self.failures.append(f"{name}: {answer.status_code}")
        except httpx.HTTPError as error:
            self.failures.append(f"{name}: {type(error).__name__}")
        seconds = time.monotonic() - begin
        self.slowest[name] = max(seconds, self.slowest.get(name, 0.0))
        if name == "page":
            self.pages.append(seconds)
        self.resident = max(self.resident, self.target.resident())

    def result(self, what: str) -> Result:
        slowest = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.slowest.items())
        failed = (
            f"{len(self.failures)} failed ({self.failures[0]})" if self.failures else "none failed"
        )
        # The attack may add a second to an answer. Other work on the host delays some rounds, what
        # holds a connection or a processor of the service delays all of them.
        usual = median(self.pages) if self.pages else 0.0
        late = usual > max(1.0, 2 * self.undisturbed) + self.undisturbed
        stood = not self.failures and self.rounds > 0 and self.resident < MEMORY_LIMIT
        return Result(
            stood and not late,
            f"{what}; in {self.rounds} rounds {failed}; slowest: {slowest}"
            f" (page without: {self.undisturbed:.2f} s); {self.resident >> 20} MiB",
            late=stood and late,
        )


@contextmanager
def watching(target: Target) -> Iterator[Watch]:
    """Ask round by round in a thread until the block ends; memory is sampled more often."""
    watch, end = Watch(target), threading.Event()
    watch.measure_undisturbed()

    def rounds() -> None:
        while not end.is_set():
            watch.ask()
            end.wait(PAUSE_SECONDS)

    def memory() -> None:
        while not end.wait(PAUSE_SECONDS / 2):
            watch.resident = max(watch.resident, target.resident())

    threads = [threading.Thread(target=rounds), threading.Thread(target=memory)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        end.set()
        for thread in threads:
            thread.join()
    watch.measure_undisturbed()


@contextmanager
def slow_readers(target: Target, path: str, count: int) -> Iterator[list[socket.socket]]:
    """`count` clients that ask for `path` and read next to nothing of the answer."""
    request = f"GET {path} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode()
    with ExitStack() as stack:
        readers = []
        for _ in range(count):
            readers.append(stack.enter_context(target.connect(receive_buffer=4096)))
            readers[-1].sendall(request)
        yield readers


def trickle(readers: list[socket.socket], seconds: float) -> None:
    """Let each reader take at most 2 KiB every half a second."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for reader in readers:
            reader.setblocking(False)
            with suppress(OSError):
                reader.recv(2048)
        time.sleep(0.5)
