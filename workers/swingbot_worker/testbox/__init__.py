"""Boots: take an order, produce console log, results and an outcome.

The machine is driven from outside, so a panic is a result.
"""

from __future__ import annotations

from swingbot_worker.testbox.boot import boot
from swingbot_worker.testbox.driver import tell_nobody

__all__ = ["boot", "tell_nobody"]
