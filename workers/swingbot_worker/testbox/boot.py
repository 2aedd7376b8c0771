"""One boot from order to outcome, with any driver."""

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
    """Boot the kernel of `order` once, run its unit jobs, and return the outcome.

    Writes console.log, results.tar, job.sh and the driver's log to `out`. The kernel's behaviour
    becomes the status of the outcome, an infrastructure failure the status `infra`. Neither raises
    an exception.
    """
    started, out = time.monotonic(), out.absolute()

    def ended(status: str, reason: str | None) -> Outcome:
        files = [out / name for name in select_driver.FILES]
        return outcome(order, status, reason, time.monotonic() - started, files)

    try:
        result, facts, results = _boot(order, out, site, tell_phase)
    except OrderError as error:
        return ended("infra", str(error)) | {"fault": "order"}
    except (InfraError, TestboxError) as error:
        return ended("infra", str(error))
    except OSError as error:
        return ended(
            "infra",
            f"The worker's disk failed or is full ({error}); check {site.cache} and {out}.",
        )
    return ended(result.verdict.status.value, result.verdict.reason) | {
        "facts": facts,
        "runs": runs_of(order.unit_jobs, results, facts),
    }


def _boot(
    order: BootOrder, out: Path, site: Site, tell_phase: TellPhase
) -> tuple[Boot, dict[str, Fact], Results]:
    """Resolve the order, let the testbox's driver boot, and read the results."""
    stolen, kernel = host.stolen_ticks(), _kernel(order.kernel, out, site)
    testbox = _testbox(order, site)
    driver = select_driver.driver_of(testbox)
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
        limits=limits(testbox, order.unit_jobs, order.deadline),
        lease=partial(lease.for_boot, testbox, site.cache, tell=_tell, patience=patience),
        out=out,
        cache=site.cache,
        tell=_tell,
        tell_phase=tell_phase,
        document=order.document,
        cmdline=cmdline_of(order.unit_jobs),
    )
    result = driver.boot(request)
    results = read_results(request.results) if request.results.is_file() else Results(runs={})
    _check_engine(testbox, results)
    ours = {"testbox_label": testbox.label, "engine": testbox.engine, **result.facts}
    ours |= {"image_sha256": sha256(kernel.image)}
    ours |= settings_read(order.unit_jobs, results)
    return result, _facts(results, {**host.facts(stolen), **ours}), results


def _kernel(ordered: BootKernel, out: Path, site: Site) -> Kernel:
    """Return the kernel to boot, and delete files of a previous attempt from `out`."""
    out.mkdir(parents=True, exist_ok=True)
    kernel = find(ordered, out, site.cache)
    for name in select_driver.FILES:
        (out / name).unlink(missing_ok=True)
    return kernel


def _testbox(order: BootOrder, site: Site) -> Testbox:
    testbox = select_driver.testbox_of(order.testbox, site)
    if not accepted(order.kernel.trust, testbox.accepts):
        raise OrderError(
            f"This kernel is not trusted, but testbox {testbox.name} accepts only trusted kernels "
            "(`accepts` in its file)."
        )
    try:
        testbox.check_settings(order.unit_jobs, order.kernel.trust)
    except ValueError as error:
        raise OrderError(f"The order cannot be executed: {error}.") from None
    return testbox


def _check_engine(testbox: Testbox, results: Results) -> None:
    """Raise InfraError if the engine reports that it cannot run on this testbox."""
    if said := results.facts.get(engine.PROBLEM, "").strip():
        plain = printable(said[: REASON_LENGTH // 2])
        raise InfraError(
            f"The engine {testbox.engine} of testbox {testbox.name} cannot run: {plain}."
        )


def _facts(results: Results, ours: Mapping[str, Fact]) -> dict[str, Fact]:
    """Merge the guest's facts, which are truncated, with the driver's, which take precedence.

    Unknown facts are omitted.
    """
    both = {**facts_of(results.facts), **ours}
    return {name: fact for name, fact in both.items() if fact is not None}


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
