"""Ports for tests that start servers."""

from __future__ import annotations

import os
from itertools import count as counted
from typing import Final

from swingbot.app import tcp_ports

_SLOT: Final = 50  # ports of each test process
_calls = counted()


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that are free now.

    Other test processes look elsewhere, and the next call begins behind these, because nothing may
    listen there yet. They lie below those that Linux gives to outgoing connections, any of which
    could take a port between this call and the start of the server.
    """
    first = 20000 + os.getpid() % 200 * _SLOT
    return tcp_ports.free_ports(first + next(_calls) * count % (_SLOT - count + 1), count)
