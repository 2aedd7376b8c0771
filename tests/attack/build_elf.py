"""A build leaves a small vmlinux whose symbols need gigabytes when they are read."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

from swingbot_worker.kbuild.elf import NotAnObject
from swingbot_worker.kbuild.untrusted_reader import BuildReader
from tests.attack.hostile_elf import long_names
from tests.attack.target import Result, Target

NAME = "build-elf"
WANTED = "a refusal, and less than 100 MB of memory"


def run(target: Target) -> Result:
    """Read 120 symbols that share one name of 20 MB."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        (place / "vmlinux").write_bytes(long_names(20 << 20, 120))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            said, refused = str(BuildReader(source=place, objects=place).sizes()), False
        except NotAnObject as error:
            said, refused = str(error).replace(directory, ""), True
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
    return Result(held=refused and grown < 100, line=f"{said}; the worker grew by {grown} MB")
