"""A build starts processes without end."""

from __future__ import annotations

from tests.attack.hostile_build import attack, stopped
from tests.attack.target import Result, Target

NAME = "build-forks"
WANTED = "a stopped build that names SWINGBOT_BUILD_PROCESSES"


def run(target: Target) -> Result:
    """Run a fork bomb with a limit of 200 processes."""
    settings = {"SWINGBOT_BUILD_PROCESSES": "200"}
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 60\n"
    return stopped(attack(bomb, settings=settings), "SWINGBOT_BUILD_PROCESSES")
