"""Walls: the sandbox for untrusted code, which sees only its source, its objects and a compiler.

`limits` has the resource limits, `argv` builds the command line of the sandbox (pure), `seccomp`
filters system calls, `probe` tests each wall on this host, `sandbox` runs commands, `guard` ends
those that exceed their limits. See docs/walls.md.
"""

from __future__ import annotations

from swingbot_worker.walls.guard import OverLimit
from swingbot_worker.walls.limits import BuildLimits, limits_of
from swingbot_worker.walls.probe import Wall, missing, probe, untested
from swingbot_worker.walls.sandbox import NoWalls, Sandbox, clean

__all__ = [
    "BuildLimits",
    "NoWalls",
    "OverLimit",
    "Sandbox",
    "Wall",
    "clean",
    "limits_of",
    "missing",
    "probe",
    "untested",
]
