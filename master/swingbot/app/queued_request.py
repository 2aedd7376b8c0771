"""What a command queued, wherever its service is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Shows a plan, as JSON and as lines, and returns whether it is to be queued.
GoOn = Callable[[dict[str, Any], list[str]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    id: str
    plan: dict[str, Any]  # one of the plans in docs/json.md
