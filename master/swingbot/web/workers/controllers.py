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
from swingbot.web.http.error_response import problem
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
            return problem(409, held.why)
        return held

    async def take_phase(self, request: Request, attempt: int) -> Response:
        """Store the phase of the attempt's testbox with its reason."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > limits.PHASE_BYTES:
                return problem(
                    413, f"the body exceeds the limit of {limits.PHASE_BYTES} bytes for a phase"
                )
        try:
            phase = check_phase(json_body.parse(bytes(body)))
        except (ContractError, ValueError, RecursionError) as error:
            return problem(400, str(error)[:500])
        if refusal := await self.refuse(request, attempt):
            return refusal
        why = phase["why"] + (f" (boot {phase['boot_id']})" if phase.get("boot_id") else "")
        if not await to_thread.run_sync(
            self._requests.tell_phase, attempt, phase["phase"], why, limiter=self._threads
        ):
            return problem(409, "this attempt does not hold a testbox, or no longer holds it")
        return JSONResponse({"phase": phase["phase"]})
