"""When the queue ends, of a testbox and of the whole lab.

The ends are those that tables and bisections show (`estimate.LabQueue`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from swingbot.core.model.list_documents import QueueEnd
from swingbot.core.plan.lab_queue import PendingOrder

from .estimate import LabQueue
from .rows import Row, plain
from .testbox_status import trouble


def end_of_testbox(testbox: Row, queue: LabQueue) -> QueueEnd:
    """When the last open boot of a testbox ends; `testbox` is its row with `now`."""
    name, forecast = testbox["name"], queue.forecast
    orders = [one for one in forecast.pending.values() if one.testbox == name]
    waits = any(one.elapsed is None for one in orders)
    if waits and (why := trouble(testbox)) is not None:
        return _unknown(why)
    note = queue.note(place for place in queue.computed if place[0] == name and orders)
    return _last(orders, forecast.ends, note)


def end_of_lab(
    queue: LabQueue, testboxes: Iterable[Row], requests: Sequence[Mapping[str, Any]], searches: int
) -> QueueEnd:
    """When everything ends: orders, and what the open requests (tables and bisections, of which
    `searches` run) will still order.
    """
    listed = sum("eta_seconds" in one and one["id"].startswith("b") for one in requests)
    if searches > listed:
        return _unknown(
            f"{searches} bisections run, and what {searches - listed} of them will still order was"
            " not looked up"
        )
    builds = [one for one in queue.forecast.pending.values() if one.testbox is None]
    ends = [_last(builds, queue.forecast.ends), *(one["queue_end"] for one in testboxes)]
    ends += [_end_of_request(one) for one in requests]
    unknown = (one for one in ends if one["seconds"] is None)
    last = max(one["seconds"] or 0.0 for one in ends)
    rough = next(filter(None, (one["why"] for one in ends)), None)
    return next(unknown, None) or _known(last, rough)


def _last(
    orders: Sequence[PendingOrder], ends: Mapping[int, float], note: str | None = None
) -> QueueEnd:
    untimed = next((one for one in orders if math.isinf(one.seconds)), None)
    if untimed is not None:
        what = "kernel build" if untimed.testbox is None else f"boot of {untimed.testbox}"
        return _unknown(f"no {what} like order o{untimed.id} has been timed yet")
    if endless := next((one for one in orders if math.isinf(ends[one.id])), None):
        return _unknown(f"order o{endless.id} waits for a kernel build whose time is not known")
    return _known(max((ends[one.id] for one in orders), default=0.0), note)


def _end_of_request(request: Mapping[str, Any]) -> QueueEnd:
    if (seconds := request["eta_seconds"]) is not None:
        return _known(seconds, request.get("eta_note"))
    why = next(iter(request["waits"]), "no comparable build or boot has been timed yet")
    return _unknown(f"{request['id']}: {why}")


def _known(seconds: float, note: str | None = None) -> QueueEnd:
    until = plain(datetime.now(UTC) + timedelta(seconds=seconds)) if seconds else None
    return {"seconds": seconds, "until": until, "why": note}


def _unknown(why: str) -> QueueEnd:
    return {"seconds": None, "until": None, "why": why}
