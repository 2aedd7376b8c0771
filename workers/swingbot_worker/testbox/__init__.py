"""Boots: take an order, produce console log, results and an outcome.

The machine is driven from outside, so a panic is a result.
"""

from __future__ import annotations

from swingbot_worker.testbox.boot import boot
from swingbot_worker.testbox.driver import ignore_phases

__all__ = ["boot", "ignore_phases"]
