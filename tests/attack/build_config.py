"""A build leaves a .config that is too long, and one just below the limit."""

from __future__ import annotations

import resource

from tests.attack.hostile_build import attack
from tests.attack.target import Result, Target

NAME = "build-config"
WANTED = "a refusal of the long one, and the worker grows by less than 100 MB"


def run(target: Target) -> Result:
    """Leave 24 MB, then 4 MB, of lines that set something."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    long = attack("", after="seq -f CONFIG_A%g=y 1 1700000 > .config\n")
    short = attack("", after="seq -f CONFIG_A%g=y 1 240000 > .config\n")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
    return Result(
        held=long.status == "infra" and ".config" in long.reason and grown < 100,
        line=f"{long.words()}; then {short.words()}; the worker grew by {grown} MB",
    )
