"""Bisections of the service on this host, started or resumed by its operator."""

from __future__ import annotations

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.service.bisect.ask import prepared
from swingbot.service.bisect.plan import plan_lines
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.resume import ResumeRequest, plan_resumption, resumption_lines
from swingbot.service.bisect.resume import resume as resume_it
from swingbot.service.ports import Lab


def start(lab: Lab, request: BisectionRequest, go_on: GoOn) -> QueuedRequest | None:
    """Plan a bisection, and queue it if `go_on` says so; else return None. Raises RequestError."""
    with prepared(lab, request) as bisection:
        planned = bisection.plan()
        if not go_on(planned.to_json(), plan_lines(planned)):
            return None
        started = bisection.queue(planned.cost.testbox_seconds)
        return QueuedRequest(id=started.id, plan=planned.to_json())


def resume(lab: Lab, request: ResumeRequest, go_on: GoOn) -> QueuedRequest | None:
    """Plan a resumption, and carry it out if `go_on` says so; else return None.

    Raises NotFound, RequestError.
    """
    planned = plan_resumption(lab.transaction, lab.catalogue, request)
    document = planned.to_json(request.id)
    if not go_on(document, resumption_lines(request.id, planned)):
        return None
    resume_it(lab.transaction, lab.catalogue, request)
    return QueuedRequest(id=request.id, plan=document)
