"""A table that a command asked for, wherever its service is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Shows a plan, as JSON and as lines, and returns whether it is to be queued.
GoOn = Callable[[dict[str, Any], list[str]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTable:
    id: str
    plan: dict[str, Any]  # "plan of a table" or "plan of an extension" in docs/json.md
