"""A build keeps disk space in files that it has deleted and holds open."""

from __future__ import annotations

from tests.attack.hostile_build import attack, stopped
from tests.attack.target import Result, Target

NAME = "build-disk"
WANTED = "a stopped build that names SWINGBOT_BUILD_DISK_MB, and less than 100 MB of disk"
_FILL = "".join(f"exec {n}>f{n}; rm f{n}; head -c 40000000 /dev/zero >&{n}; " for n in range(3, 10))


def run(target: Target) -> Result:
    """Try to keep 280 MB with a limit of 50 MB, then build on."""
    attacked = attack(f"{_FILL}sleep 3\n", settings={"SWINGBOT_BUILD_DISK_MB": "50"})
    return stopped(attacked, "SWINGBOT_BUILD_DISK_MB", disk_mb=100)
