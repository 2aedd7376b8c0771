"""A build keeps memory that no process is charged with: data in sockets, inodes of a tmpfs."""

from __future__ import annotations

from tests.attack.hostile_build import attack, stopped
from tests.attack.target import Result, Target
from tests.builds.test_hostile_patches import INODES, SOCKETS

NAME = "build-memory"
WANTED = "failed builds that name SWINGBOT_BUILD_MEMORY_MB, at 512 MB at most"


def run(target: Target) -> Result:
    """Try to keep 900 MB in sockets, then 600 000 inodes, with a limit of 512 MB."""
    settings = {"SWINGBOT_BUILD_MEMORY_MB": "512"}
    results = [
        stopped(
            attack("/usr/bin/python3 ../a.py; true\n", python=python, settings=settings),
            "SWINGBOT_BUILD_MEMORY_MB",
            memory_mb=513,
        )
        for python in (SOCKETS, f"import os\n{INODES}")
    ]
    return Result(
        line="; ".join(result.line for result in results),
        held=all(result.held for result in results),
    )
