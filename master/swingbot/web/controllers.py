"""What controllers say of their testboxes: that they still drive them, and the phase that each is in.

The attempt's token opens this, and a header names the controller; a second one is refused while the first one's lease holds.
"""

from __future__ import annotations

import json
from typing import Final, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swingbot_jobs.contract.orders import CONTROLLER_HEADER, ContractError, check_phase

PHASE_LIMIT_BYTES: Final = 1 << 14
_NAME_LENGTH: Final = 100


class BoxStore(Protocol):
    """`swingbot_db.attempts.Attempts` fits."""

    def hold(self, attempt: int, controller: str) -> str | None: ...
    def tell_phase(self, attempt: int, phase: str, why: str) -> bool: ...


class Controllers:
    """Without a store nobody is refused and no phase is kept."""

    def __init__(self, boxes: BoxStore | None) -> None:
        self._boxes = boxes

    async def refuse(self, request: Request, attempt: int) -> Response | None:
        """The answer to a controller that must not drive the attempt's testbox; None for one that may, which holds it from now on."""
        name = "".join(
            char
            for char in request.headers.get(CONTROLLER_HEADER, "")
            if char.isascii() and char.isprintable()
        )[:_NAME_LENGTH]
        if self._boxes is None or not name:
            return None
        why = await run_in_threadpool(self._boxes.hold, attempt, name)
        return None if why is None else JSONResponse({"error": why}, status_code=409)

    async def take_phase(self, request: Request, attempt: int) -> Response:
        """What the attempt's testbox does now, kept with its reason."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > PHASE_LIMIT_BYTES:
                return JSONResponse(
                    {"error": f"a phase has {PHASE_LIMIT_BYTES} bytes at most"}, status_code=413
                )
        try:
            told = check_phase(json.loads(body))
        except (ContractError, ValueError, RecursionError) as error:
            return JSONResponse({"error": str(error)[:500]}, status_code=400)
        if refusal := await self.refuse(request, attempt):
            return refusal
        why = told["why"] + (f" (boot {told['boot_id']})" if told.get("boot_id") else "")
        if self._boxes is None or not await run_in_threadpool(
            self._boxes.tell_phase, attempt, told["phase"], why
        ):
            return JSONResponse(
                {"error": "this attempt has no testbox, or has it no more"}, status_code=409
            )
        return JSONResponse({"phase": told["phase"]})
