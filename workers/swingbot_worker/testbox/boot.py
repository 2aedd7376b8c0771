"""One boot from order to outcome, whatever the driver."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from swingbot_jobs.contract.fact_sheet import facts_of
from swingbot_jobs.contract.trust import accepted
from swingbot_jobs.contract.unit_job import cmdline_of
from swingbot_jobs.printable import printable
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.reading.result import Results
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker import InfraError, OrderError, engine, lease
from swingbot_worker.digest import sha256
from swingbot_worker.order import BootKernel, BootOrder
from swingbot_worker.outcome import REASON_LENGTH, Outcome, outcome
from swingbot_worker.site import Site
from swingbot_worker.testbox import host, select_driver
from swingbot_worker.testbox.driver import (
    Boot,
    Fact,
    Job,
    Request,
    TellPhase,
    tell_nobody,
)
from swingbot_worker.testbox.kernel import Kernel, find
from swingbot_worker.testbox.limits import limits
from swingbot_worker.testbox.runs import runs_of, settings_read


def boot(order: BootOrder, out: Path, site: Site, tell_phase: TellPhase = tell_nobody) -> Outcome:
    """Boot the kernel that `order` names, once, and run its unit jobs; returns the outcome (outcome-1 schema).

    console.log, results.tar, job.sh and the driver's log come into `out`. What the kernel does is a status of the outcome;
    a fault of ours is status `infra`. No exception leaves for either.
    """
    started, out = time.monotonic(), out.absolute()

    def ended(status: str, reason: str | None) -> Outcome:
        files = [out / name for name in select_driver.FILES]
        return outcome(order, status, reason, time.monotonic() - started, files)

    try:
        made, facts, results = _boot(order, out, site, tell_phase)
    except OrderError as error:
        return ended("infra", str(error)) | {"fault": "order"}
    except (InfraError, TestboxError) as error:
        return ended("infra", str(error))
    except OSError as error:
        return ended(
            "infra",
            f"The worker's disk failed or is full ({error}); see to {site.cache} and {out}.",
        )
    return ended(made.verdict.status.value, made.verdict.reason) | {
        "facts": facts,
        "runs": runs_of(order.unit_jobs, results, facts),
    }


def _boot(
    order: BootOrder, out: Path, site: Site, tell_phase: TellPhase
) -> tuple[Boot, dict[str, Fact], Results]:
    """Look everything up, let the testbox's driver boot, and read what came back."""
    stolen, kernel = host.stolen_ticks(), _kernel(order.kernel, out, site)
    box = _testbox(order, site)
    driver = select_driver.driver_of(box)
    payload = driver.payload(
        Job(unit_jobs=order.unit_jobs, built_from=order.kernel.built_from, site=site)
    )
    (out / "job.sh").write_bytes(payload.script)
    patience = order.deadline or lease.PATIENCE_SECONDS
    request = Request(
        order=order.order,
        attempt=order.attempt,
        kernel=kernel,
        k=order.k,
        purpose=order.purpose,
        payload=payload,
        limits=limits(box, order.unit_jobs, order.deadline),
        lease=partial(lease.for_boot, box, site.cache, tell=_tell, patience=patience),
        out=out,
        cache=site.cache,
        tell=_tell,
        tell_phase=tell_phase,
        document=order.document,
        cmdline=cmdline_of(order.unit_jobs),
    )
    made = driver.boot(request)
    results = read_results(request.results) if request.results.is_file() else Results(runs={})
    _check_engine(box, results)
    ours = {"testbox_label": box.label, "engine": box.engine, **made.facts}
    ours |= {"image_sha256": sha256(kernel.image)}
    ours |= settings_read(order.unit_jobs, results)
    return made, _facts(results, {**host.facts(stolen), **ours}), results


def _kernel(ordered: BootKernel, out: Path, site: Site) -> Kernel:
    """The kernel to boot, and `out` without files of an attempt before this one, which must not be taken for ours."""
    out.mkdir(parents=True, exist_ok=True)
    kernel = find(ordered, out, site.cache)
    for name in select_driver.FILES:
        (out / name).unlink(missing_ok=True)
    return kernel


def _testbox(order: BootOrder, site: Site) -> Testbox:
    box = select_driver.box_of(order.testbox, site)
    if not accepted(order.kernel.trust, box.accepts):
        raise OrderError(
            f"This kernel is not trusted, and testbox {box.name} takes trusted ones only (`accepts` in its file)."
        )
    try:
        box.check_settings(order.unit_jobs, order.kernel.trust)
    except ValueError as error:
        raise OrderError(f"The order can't be carried out: {error}.") from None
    return box


def _check_engine(box: Testbox, results: Results) -> None:
    """Raise InfraError if the engine says that it can't run anything on this box: no kernel is to blame for what is not installed."""
    if said := results.facts.get(engine.PROBLEM, "").strip():
        plain = printable(said[: REASON_LENGTH // 2])
        raise InfraError(f"The engine {box.engine} of testbox {box.name} can't run: {plain}.")


def _facts(results: Results, ours: Mapping[str, Fact]) -> dict[str, Fact]:
    """The guest's facts first, cut to size because a guest may send anything; then ours, which win. What is not known is not there."""
    both = {**facts_of(results.facts), **ours}
    return {name: told for name, told in both.items() if told is not None}


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
