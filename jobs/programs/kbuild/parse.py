"""`time -p` around make, with LKP's names; one build is one iteration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

TIME = re.compile(r"(?P<what>real|user|sys) (?P<seconds>\d{1,9}\.\d{2})")
UNITS = re.compile(r"units (?P<units>\d{1,9})")
NAMES = {"real": "buildtime", "user": "user_time", "sys": "sys_time"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the times of the build in seconds. Raises ParseError unless it built every unit."""
    lines = [line.strip()[:200] for line in files.get("stdout", "").splitlines()]
    built = [match["units"] for line in lines if (match := UNITS.fullmatch(line))]
    if len(built) != 1:
        raise ParseError("make did not build the tree")
    if built[0] != params.get("units", built[0]):
        raise ParseError(f"make built {built[0]} units, not {params['units']}")
    found: dict[str, float | list[float]] = {}
    for what, name in NAMES.items():
        times = [
            m["seconds"] for line in lines if (m := TIME.fullmatch(line)) and m["what"] == what
        ]
        if len(times) != 1:
            raise ParseError(f"time printed {len(times)} lines with {what}, expected one")
        found[f"{name}_per_iteration"] = float(times[0])
    if not found["buildtime_per_iteration"]:
        raise ParseError("a build in no time is none")
    return found
