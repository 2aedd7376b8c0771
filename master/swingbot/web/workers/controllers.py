"""Reports of controllers on their testboxes: that they still drive them, and the current phase.

The attempt's token authorizes the request, and a header names the controller. A second controller
is refused while the lease of the first one is valid.
"""

from __future__ import annotations

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.web import limits
from swingbot.web.http import json_body
from swingbot_jobs.contract.orders import CONTROLLER_HEADER, ContractError, check_phase


class Controllers:
    """Phases reported by controllers."""

    def __init__(self, requests: WorkerRequests, threads: anyio.CapacityLimiter) -> None:
        self._requests, self._threads = requests, threads

    async def refuse(self, request: Request, attempt: int) -> Response | None:
        """Return the refusal if this controller must not drive the attempt's testbox, else None.

        None also renews the controller's lease.
        """
        held = await self.hold(request, attempt)
        return held if isinstance(held, Response) else None

    async def hold(self, request: Request, attempt: int) -> Response | LeaseHeld | None:
        """Renew the lease of this controller, and return it, or the refusal.

        None: the attempt has no lease, or the request names no controller.
        """
        name = "".join(
            char
            for char in request.headers.get(CONTROLLER_HEADER, "")
            if char.isascii() and char.isprintable()
        )[: limits.HOST_CHARACTERS]
        if not name:
            return None
        held = await to_thread.run_sync(self._requests.hold, attempt, name, limiter=self._threads)
        if isinstance(held, LeaseRefused):
            return JSONResponse({"error": held.why}, status_code=409)
        return held

    async def take_phase(self, request: Request, attempt: int) -> Response:
        """Store the phase of the attempt's testbox with its reason."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > limits.PHASE_BYTES:
                return JSONResponse(
                    {
                        "error": (
                            f"the body exceeds the limit of {limits.PHASE_BYTES} bytes for a phase"
                        )
                    },
                    status_code=413,
                )
        try:
            phase = check_phase(json_body.parse(bytes(body)))
        except (ContractError, ValueError, RecursionError) as error:
            return JSONResponse({"error": str(error)[:500]}, status_code=400)
        if refusal := await self.refuse(request, attempt):
            return refusal
        why = phase["why"] + (f" (boot {phase['boot_id']})" if phase.get("boot_id") else "")
        if not await to_thread.run_sync(
            self._requests.tell_phase, attempt, phase["phase"], why, limiter=self._threads
        ):
            return JSONResponse(
                {"error": "this attempt does not hold a testbox, or no longer holds it"},
                status_code=409,
            )
        return JSONResponse({"phase": phase["phase"]})
