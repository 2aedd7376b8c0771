"""Ports for tests that start servers."""

from __future__ import annotations

import os
import socket


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports on which nobody listens now; other test processes look elsewhere."""
    start = 20000 + os.getpid() % 200 * 50
    for first in range(start, start + 20000, count):
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
