"""Walls around foreign code: what a kernel build runs sees its source, its objects and a compiler, and nothing else of this host.

`limits` says how much it may use, `argv` which walls make it so (pure), `seccomp` which system calls it has, `probe` tries all of
that on this host, `sandbox` runs commands behind them, `guard` ends those that use too much. See docs/walls.md.
"""

from __future__ import annotations

from swingbot_worker.walls.guard import OverLimit
from swingbot_worker.walls.limits import Limits, limits_of
from swingbot_worker.walls.probe import Wall, missing, probe
from swingbot_worker.walls.sandbox import Sandbox, clean

__all__ = ["Limits", "OverLimit", "Sandbox", "Wall", "clean", "limits_of", "missing", "probe"]
