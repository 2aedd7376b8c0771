"""205 connections of one client whose request heads never end, renewed as they are closed."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Final

from tests.attack.target import Result, Target, watching

NAME: Final = "half-open request heads"
WANTED: Final = "other requests are answered, from the same address too"
CONNECTIONS: Final = 205
BEGIN: Final = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


def run(target: Target, *, seconds: float = 6.0) -> Result:
    held: list[socket.socket] = []
    opened = 0
    try:
        with watching(target) as watch:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                held = [one for one in held if _open(one)]
                while len(held) < CONNECTIONS and time.monotonic() < end:
                    try:
                        held.append(target.connect())
                        held[-1].sendall(BEGIN)
                        opened += 1
                    except OSError:
                        break
                time.sleep(0.2)
            kept = sum(_open(one) for one in held)
    finally:
        for one in held:
            one.close()
    return watch.result(f"{opened} heads begun, {kept} still open at the end")


def _open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    with suppress(BlockingIOError):
        try:
            return connection.recv(4096) != b""
        except ConnectionError:
            return False
    return True
