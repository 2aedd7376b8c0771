"""A build leaves a small vmlinux whose symbols need gigabytes when they are read."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

from swingbot_worker import walls
from swingbot_worker.kbuild.make import BuildFailed
from swingbot_worker.kbuild.untrusted_reader import BuildReader, WantedParts
from tests.attack.hostile_elf import long_names
from tests.attack.target import Result, Target

NAME = "build-elf"
WANTED = "a refusal, and less than 100 MB of memory"


def run(target: Target) -> Result:
    """Read 120 symbols that share one name of 20 MB."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        (place / "vmlinux").write_bytes(long_names(20 << 20, 120))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            reader = BuildReader(source=place, objects=place, sandbox=walls.probe().sandbox)
            said, refused = str(reader.read(WantedParts(sizes=True)).sizes), False
        except BuildFailed as error:
            said, refused = str(error).replace(directory, ""), True
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
    return Result(held=refused and grown < 100, line=f"{said}; the worker grew by {grown} MB")
