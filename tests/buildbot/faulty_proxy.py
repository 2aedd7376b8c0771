"""A proxy between a worker and the service that refuses, cuts, delays, and sends requests twice."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Literal

Fault = Literal["pass", "refuse", "cut", "lose", "delay", "twice"]
DELAY_SECONDS: Final = 1.0
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST


class FaultyProxy(socketserver.ThreadingTCPServer):
    """Gives each request the next of `faults`, and passes those that follow.

    refuse: nothing of the request is read. cut: half of it reaches the service. lose: all of it
    does, and the response is lost. twice: it does so two times.
    """

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, service: int, faults: Sequence[Fault]) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.service, self._faults = service, list(faults)
        self.seen: list[Fault] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next(self) -> Fault:
        with self._lock:
            self.seen.append(self._faults.pop(0) if self._faults else "pass")
            return self.seen[-1]


class _Request(socketserver.BaseRequestHandler):
    """One request a connection: the response says that it is closed."""

    server: FaultyProxy
    request: socket.socket

    def handle(self) -> None:
        fault = self.server.next()
        if fault == "refuse":
            self._reset()
            return
        content = _whole(self.request)
        if fault == "delay":
            time.sleep(DELAY_SECONDS)
        if fault == "cut":
            self._send(content[: len(content) // 2], wait=False)
            self._reset()
            return
        answer = self._send(content)
        if fault == "twice":
            answer = self._send(content)
        if fault == "lose":
            self._reset()
            return
        with suppress(OSError):
            self.request.sendall(answer)

    def _send(self, content: bytes, *, wait: bool = True) -> bytes:
        with socket.create_connection(("127.0.0.1", self.server.service), 60) as service:
            service.sendall(content)
            answer = b""
            while wait and (part := service.recv(1 << 16)):
                answer += part
            return answer

    def _reset(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _whole(client: socket.socket) -> bytes:
    """A request, with a header that ends the connection after its response."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += _part(client)
    head, _, body = content.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    fields = dict(line.lower().split(b": ", 1) for line in lines[1:])
    if fields.get(b"transfer-encoding") == b"chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += _part(client)
    while len(body) < int(fields.get(b"content-length", b"0")):
        body += _part(client)
    return b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body


def _part(client: socket.socket) -> bytes:
    part = client.recv(1 << 16)
    if not part:
        raise ConnectionError("the client closed its connection")
    return part


@contextmanager
def faulty_proxy(service: int, faults: Sequence[Fault]) -> Iterator[FaultyProxy]:
    with FaultyProxy(service, faults) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
