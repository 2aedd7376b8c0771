"""A repository to build from has a configuration that names programs for git to run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from swingbot_worker import InfraError
from swingbot_worker.kbuild import source
from tests.attack.hostile_repository import hostile_repository
from tests.attack.target import Result, Target

NAME = "repository-config"
WANTED = "no program of the repository's configuration is run"


def run(target: Target) -> Result:
    """Read a commit of which a file is missing, which the configuration says how to fetch."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        mark = place / "mark"
        tip = hostile_repository(place / "linux", mark)
        try:
            name = source.resolve(str(place / "linux"), "main")
            said = f"built from {source.find(str(place / 'linux'), name, place / 'cache').tree}"
        except (source.NotAKernel, InfraError) as error:
            said = str(error).replace(tip, "TIP")
        return Result(held=not mark.exists(), line=f"{said}; programs run: {mark.exists()}")
