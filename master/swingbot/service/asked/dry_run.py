"""Run a use case for its result without recording anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from swingbot.service.ports import Transaction
from swingbot.service.ports.transaction import OpenTransaction

T = TypeVar("T")


class _RollBack(Exception):
    """Ends the transaction without a commit."""


def rehearsing(transaction: OpenTransaction) -> OpenTransaction:
    """Return what opens transactions that are rolled back."""

    @contextmanager
    def rehearsed(name: str) -> Iterator[Transaction]:
        try:
            with transaction(name) as tx:
                yield tx
                raise _RollBack
        except _RollBack:
            return

    return rehearsed


def rehearse(transaction: OpenTransaction, name: str, run: Callable[[Transaction], T]) -> T:
    """Return the result of `run` in a transaction that is rolled back.

    Its exceptions are passed on.
    """
    with rehearsing(transaction)(name) as tx:
        return run(tx)
