"""Threads by purpose, so that a crowd at one of them keeps none of the others waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
from anyio import to_thread

# Threads of pages. Each may hold two connections to the database: the pool has more.
PAGE_THREADS: Final = 8
EXCHANGE_THREADS: Final = 8

T = TypeVar("T")


class Lane:
    """Threads of their own for calls that block; further calls wait their turn."""

    def __init__(self, threads: int) -> None:
        self._limiter = anyio.CapacityLimiter(threads)

    async def run(self, call: Callable[..., T], *args: object) -> T:
        return await to_thread.run_sync(call, *args, limiter=self._limiter)


def limit_page_threads() -> None:
    """Limit the threads that Starlette uses, in the running event loop."""
    to_thread.current_default_thread_limiter().total_tokens = PAGE_THREADS
