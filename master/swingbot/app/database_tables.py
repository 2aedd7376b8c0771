"""Tables of the service on this host, asked for or extended by its operator."""

from __future__ import annotations

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.service.ports import Lab
from swingbot.service.table.extend import ExtensionRequest, plan_extension
from swingbot.service.table.extend import extend as extend_it
from swingbot.service.table.plan import prepared
from swingbot.service.table.plan_text import extension_lines, plan_lines
from swingbot.service.table.request import TableRequest


def ask(lab: Lab, request: TableRequest, go_on: GoOn) -> QueuedRequest | None:
    """Plan a table, and queue it if `go_on` says so; else return None. Raises RequestError."""
    with prepared(lab, request) as table:
        planned = table.plan()
        if not go_on(planned.to_json(), plan_lines(planned)):
            return None
        queued = table.queue(planned.cost.testbox_seconds)
        return QueuedRequest(id=queued.id, plan=planned.to_json())


def extend(lab: Lab, request: ExtensionRequest, go_on: GoOn) -> QueuedRequest | None:
    """Plan an extension, and queue it if `go_on` says so; else return None. Raises RequestError."""
    planned = plan_extension(lab, request)
    document = planned.to_json(request.id)
    if not go_on(document, extension_lines(request.id, planned)):
        return None
    extend_it(lab, request)
    return QueuedRequest(id=request.id, plan=document)
