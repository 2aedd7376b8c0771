"""`/healthz`: does the database answer, and which parts hang. It answers within seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_KEPT_SECONDS: Final = 1.0  # an answer of the database is shared by the requests of this time

Facts = dict[str, Any]


class HealthPage:
    """The endpoint.

    `database` returns facts, or {"reason": why it does not answer}, within a time limit of its own;
    it runs in a thread of its own, so that busy pages do not delay it. `hung` returns the parts
    that hang.
    """

    def __init__(self, database: Callable[[], Facts], hung: Callable[[], Sequence[Facts]]) -> None:
        self._database, self._hung = database, hung
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="health")
        self._answer: asyncio.Task[Facts] | None = None
        self._answered = float("-inf")

    async def _ask(self) -> Facts:
        loop = asyncio.get_running_loop()
        facts = await loop.run_in_executor(self._thread, self._database)
        self._answered = time.monotonic()
        return facts

    async def answer(self, request: Request) -> Response:
        stale = time.monotonic() - self._answered > _KEPT_SECONDS
        if self._answer is None or (self._answer.done() and stale):
            self._answer = asyncio.create_task(self._ask())
        facts = await asyncio.shield(self._answer)
        hung = list(self._hung())
        status = "failed" if "reason" in facts else "degraded" if hung else "ok"
        return JSONResponse(
            {"status": status, **facts, "hung": hung}, 503 if status == "failed" else 200
        )

    def routes(self) -> list[Route]:
        return [Route("/healthz", self.answer, methods=["GET", "HEAD"])]
