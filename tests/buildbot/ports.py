"""Ports for tests that start servers."""

from __future__ import annotations

import os

from tests.demo import ports


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that are free now.

    Other test processes look elsewhere.
    """
    return ports.free_ports(20000 + os.getpid() % 200 * 50, count)
