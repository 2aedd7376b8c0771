"""A unit job: one point of a job's axes, resolved for one testbox, ready to run.

Values in `params` are the strings that the program's `run` script finds in its environment;
percentages, durations and arithmetic are already resolved. The name is LKP's
(`<job>-<path params>`), so that the same work has the same name in both worlds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# A unit job's name becomes a directory in the guest, a URL and a column: nothing else may be in it.
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9+=:.%_]{0,254}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJob:
    """One benchmark program with resolved parameters, to be run `runs` times within one boot."""

    name: str
    program: str
    params: Mapping[str, str]
    runs: int

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"unit job name {self.name!r} has characters that a path cannot hold")
        if self.runs < 1:
            raise ValueError(f"unit job {self.name}: runs is {self.runs}, must be at least 1")

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "program": self.program, "params": dict(self.params), "runs": self.runs}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> UnitJob:
        return cls(name=value["name"], program=value["program"], params=dict(value["params"]), runs=value["runs"])


def spec_sha256(unit_jobs: Iterable[UnitJob]) -> str:
    """Name a set of unit jobs by its content: boots of equal specs can be compared."""
    canonical = json.dumps([job.to_json() for job in unit_jobs], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
