"""A proxy before a web service, with the faults that proxies have for streams of events."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Literal

Fault = Literal["passes", "buffers", "cuts", "stalls"]


@dataclass(kw_only=True)
class StreamProxy:
    """`passes` forwards; `buffers` forwards nothing of a stream until its end; `cuts` and `stalls`
    close a stream after its first event, or forward nothing more.
    """

    port: int
    fault: Fault
    url: str = ""
    streams: list[str] = field(default_factory=list)  # heads of requests for streams
    polls: list[bool] = field(default_factory=list)  # of progress.json: after a stream's first byte
    alive: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def forward(self, client: socket.socket) -> None:
        head = client.recv(65536)
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        address = head.split()[1].decode()
        is_stream = address.endswith("/progress")
        if is_stream:
            self.streams.append(head.decode())
        if address.endswith("/progress.json"):
            self.polls.append(self.alive.is_set())
        with socket.create_connection(("127.0.0.1", self.port)) as service:
            service.settimeout(0.1)
            service.sendall(head.replace(b"keep-alive", b"close"))
            self._answer(client, service, is_stream)

    def _answer(self, client: socket.socket, service: socket.socket, is_stream: bool) -> None:
        kept = b""
        while not self.over.is_set():
            try:
                piece = service.recv(65536)
            except TimeoutError:
                continue
            if not piece:
                break
            if not is_stream:
                client.sendall(piece)
                continue
            told = b"data:" in kept
            kept += piece
            if self.fault == "passes" or (self.fault != "buffers" and not told):
                client.sendall(piece)
                self.alive.set()
            if self.fault == "cuts" and b"data:" in kept:
                return
        if self.fault == "buffers":
            client.sendall(kept)


@contextmanager
def stream_proxy(port: int, fault: Fault) -> Iterator[StreamProxy]:
    """A proxy for the service at this port of 127.0.0.1."""
    proxy = StreamProxy(port=port, fault=fault)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                proxy.forward(self.request)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            server.shutdown()
            thread.join()
