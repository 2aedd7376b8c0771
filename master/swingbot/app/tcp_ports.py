"""TCP ports that a service on this host can listen on."""

from __future__ import annotations

import socket


def probe(host: str, port: int) -> None:
    """Raise OSError if nothing can listen on this port now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))


def free_ports(first: int, count: int) -> int:
    """Return the lowest port, `first` plus a multiple of `count`, at which `count` ports in a row
    are free on the loopback address. Raises OSError if there are none.
    """
    for port in range(first, 65000 - count, count):
        if all(_is_free(port + more) for more in range(count)):
            return port
    raise OSError(f"no {count} ports in a row are free from {first} on")


def _is_free(port: int) -> bool:
    try:
        probe("127.0.0.1", port)
    except OSError:
        return False
    return True
