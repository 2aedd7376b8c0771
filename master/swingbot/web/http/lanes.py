"""Threads by purpose, so that a crowd at one of them keeps none of the others waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio
from anyio import to_thread

# Threads of pages. Each may hold two connections to the database: the pool has more.
PAGE_THREADS: Final = 8
EXCHANGE_THREADS: Final = 8
PLANNING_THREADS: Final = 4
KIT_THREADS: Final = 2

T = TypeVar("T")


class Lane:
    """Threads of their own for calls that block; further calls wait their turn."""

    def __init__(self, threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)

    async def run(self, call: Callable[..., T], *args: object) -> T:
        return await to_thread.run_sync(call, *args, limiter=self._limiter)


class Turns:
    """One call at a time for each person; the others wait without a thread."""

    def __init__(self) -> None:
        self._locks: dict[str, anyio.Lock] = {}
        self._asking: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, person: str) -> AsyncIterator[None]:
        self._asking[person] += 1
        try:
            async with self._locks.setdefault(person, anyio.Lock()):
                yield
        finally:
            self._asking[person] -= 1
            if not self._asking[person]:
                del self._asking[person], self._locks[person]


def limit_page_threads() -> None:
    """Limit the threads that Starlette uses, in the running event loop."""
    to_thread.current_default_thread_limiter().total_tokens = PAGE_THREADS
