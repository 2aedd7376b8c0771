"""A benchmark for `swingbot bisect run` that measures nothing: it looks its commit up in a table
and adds noise.

    python noisy_bench.py WORLD.json

WORLD.json: {"seed": 1, "commits": {sha: {"level": 100.0, "exit": 0}}, "runs": 1, "run_sd":
0.02, "boot_sd": 0.0, "heavy": 0.0, "bimodal": 0.0, "wobble": 0.0, "format": "%.6g"};
spreads are shares of the level. One boot is one draw: seed, commit and SWINGBOT_BOOT decide it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any


def draw(world: dict[str, Any], sha: str, boot: int) -> list[float]:
    """The runs of one boot."""
    rng = random.Random(f"{world['seed']} {sha} {boot}")
    level = float(world["commits"][sha]["level"])
    shift = rng.gauss(0.0, world.get("boot_sd", 0.0))
    if rng.random() < world.get("bimodal", 0.0):
        shift -= 4.0 * max(world.get("boot_sd", 0.0), world.get("run_sd", 0.0))
    if rng.random() < world.get("heavy", 0.0):
        shift -= (
            rng.expovariate(1.0) * 6.0 * max(world.get("boot_sd", 0.0), world.get("run_sd", 0.0))
        )
    return [
        level * (1.0 + shift + rng.gauss(0.0, world.get("run_sd", 0.0)))
        for _ in range(int(world.get("runs", 1)))
    ]


def main() -> None:
    world = json.loads(Path(sys.argv[1]).read_text())
    sha, boot = os.environ["SWINGBOT_COMMIT"], int(os.environ["SWINGBOT_BOOT"])
    code = int(world["commits"][sha].get("exit", 0))
    if code == 0:
        sys.stdout.write(
            "".join(f"{world.get('format', '%.6g') % value}\n" for value in draw(world, sha, boot))
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
