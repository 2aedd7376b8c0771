"""Transactions of the master, which block and so run in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet import threads

from swingbot.service.ports.transaction import OpenTransaction, Transaction

T = TypeVar("T")


async def in_thread(begin: OpenTransaction, name: str, call: Callable[[Transaction], T]) -> T:
    """Return what `call` returns in a transaction of its own."""

    def run() -> T:
        with begin(name) as tx:
            return call(tx)

    result: T = await threads.deferToThread(run)
    return result
