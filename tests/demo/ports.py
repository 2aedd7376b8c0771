"""Free ports for a service."""

from __future__ import annotations

import socket


def free_ports(first: int, count: int) -> int:
    """The lowest port from `first` on at which `count` ports in a row are free on the loopback
    address.
    """
    for port in range(first, 65000 - count, count):
        if all(_is_free(port + n) for n in range(count)):
            return port
    raise OSError(0, f"no {count} free ports from {first} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
