"""A trusted build fills the compiler cache, and files that it has deleted."""

from __future__ import annotations

from tests.attack.hostile_build import attack, stopped
from tests.attack.target import Result, Target

NAME = "build-trusted-disk"
WANTED = "stopped builds that name SWINGBOT_BUILD_DISK_MB"
_CACHE = (
    "for i in 1 2 3 4; do head -c 40000000 /dev/zero > $CCACHE_DIR/$i; sleep 1; done; sleep 3\n"
)
_UNLINKED = "".join(
    f"exec {n}>f{n}; rm f{n}; head -c 40000000 /dev/zero >&{n}; sleep 1; " for n in range(3, 7)
)


def run(target: Target) -> Result:
    """Try to keep 160 MB in each place with a limit of 50 MB."""
    settings = {"SWINGBOT_BUILD_DISK_MB": "50"}
    results = [
        stopped(attack(script, settings=settings, trust="trusted"), "SWINGBOT_BUILD_DISK_MB")
        for script in (_CACHE, f"{_UNLINKED}sleep 3\n")
    ]
    return Result(
        line="; ".join(result.line for result in results),
        held=all(result.held for result in results),
    )
