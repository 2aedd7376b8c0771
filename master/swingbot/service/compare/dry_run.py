"""Run a use case for what it would come to, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from swingbot.service.ports import Lab, Transaction

T = TypeVar("T")


class _RollBack(Exception):
    """Ends the transaction without a commit."""


def rehearse(lab: Lab, name: str, run: Callable[[Transaction], T]) -> T:
    """What `run` gives in a transaction that is rolled back. Its errors are raised as they are."""
    found: list[T] = []
    try:
        with lab.transaction(name) as tx:
            found.append(run(tx))
            raise _RollBack
    except _RollBack:
        return found[0]
