"""Take in what workers sent: raw files are in the artifact store already; here they become builds, boots, runs and samples.

Once per attempt, whatever happens: the attempt's row says so in the same transaction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from swingbot.core.model.records import Attempt, Order
from swingbot.service.ports import Lab, Store
from swingbot_jobs.parse import parse_results
from swingbot_jobs.result import ParsedRun


def ingest_outcomes(lab: Lab) -> None:
    """Ingest every ended attempt that has not been, each in a transaction of its own."""
    with lab.transaction("find outcomes") as store:
        waiting = store.attempts("ended", ingested=False)
    for attempt in waiting:
        with lab.transaction("ingest outcome") as store:
            if store.mark_ingested(attempt.id):
                _ingest(lab, store, attempt)


def _ingest(lab: Lab, store: Store, attempt: Attempt) -> None:
    order, outcome = store.order(attempt.order_id), attempt.outcome
    assert order is not None and outcome is not None
    store.release_lease(attempt.id)
    if outcome["kind"] != order.kind or outcome["status"] == "infra":
        if order.state == "running":
            store.set_order(order.id, "ready")
        return
    if order.kind == "build":
        if "kernel_build" in outcome and outcome["kernel_build"]["build_key"] == order.build_key and _image_is_there(outcome):
            store.add_kernel_build(attempt.id, outcome)
        elif order.state == "running":
            store.set_order(order.id, "ready")  # not the kernel that was asked for: counts against the budget
            return
    else:
        _ingest_boot(lab, store, attempt, order, outcome)
    if order.state != "cancelled":
        store.set_order(order.id, "done")


def _image_is_there(outcome: Mapping[str, Any]) -> bool:
    """A built kernel must have sent the very image whose hash it claims."""
    claimed, sent = outcome["kernel_build"].get("image_sha256"), outcome["files"].get("bzImage", {}).get("sha256")
    return bool(outcome["status"] != "built" or claimed == sent)


def _ingest_boot(lab: Lab, store: Store, attempt: Attempt, order: Order, outcome: Mapping[str, Any]) -> None:
    build = store.kernel_builds([order.build_key])[order.build_key]
    assert build.image_sha256 is not None and order.spec is not None
    boot = store.add_boot(attempt.id, order, build.image_sha256, outcome)
    if boot is None:
        return
    for run in _parsed(lab, store, order, outcome):
        samples = {metric: good for metric, values in run.samples.items() if (good := [v for v in values if math.isfinite(v) and abs(v) < 1e300])}
        status, reason = run.status, run.reason
        if outcome["status"] != "up":
            samples, status, reason = {}, "failed", f"the boot was {outcome['status']}: {outcome.get('reason') or 'no reason given'}"
        store.add_run(boot, run.unit_job, run.number, status, reason, run.seconds, samples)


def _parsed(lab: Lab, store: Store, order: Order, outcome: Mapping[str, Any]) -> list[ParsedRun]:
    assert order.spec is not None
    results = outcome["files"].get("results.tar")
    if results is None:
        return []
    with lab.artifacts.open(results["sha256"]) as tar:
        return parse_results(tar, store.spec(order.spec), lab.programs)
