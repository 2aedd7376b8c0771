"""Wall time of an attempt: how long it may take before nobody waits for it."""

from __future__ import annotations

from typing import Final

from swingbot_jobs.contract.orders import OrderKind

# A busy host may need so many times the time that a build needs alone. What a build may take is
# counted in processor time (`build.deadline_seconds` for each job of make).
BUSY: Final = 10.0


def work_seconds(kind: OrderKind, deadline: float) -> float:
    """Return the wall seconds that the work of an order with this deadline may take."""
    return BUSY * deadline if kind == "build" else deadline


def attempt_seconds(kind: OrderKind, deadline: float) -> float:
    """Return the same with what comes before it: the waits for work tree or testbox, and host."""
    return 2 * deadline + work_seconds(kind, deadline)
