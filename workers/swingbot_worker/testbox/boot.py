"""One boot from order to outcome, with any driver."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from swingbot_jobs.contract.trust import accepted
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of
from swingbot_jobs.language.kconfig_needs import kconfig_needs
from swingbot_jobs.language.program import load_program
from swingbot_jobs.limits import REASON_CHARACTERS
from swingbot_jobs.printable import printable
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker import InfraError, OrderError, engine, lease
from swingbot_worker.digest import sha256
from swingbot_worker.order import BootKernel, BootOrder
from swingbot_worker.outcome import Outcome, outcome
from swingbot_worker.readers.boot_reader import GuestReport, read_boot
from swingbot_worker.site import Site
from swingbot_worker.testbox import host, select_driver
from swingbot_worker.testbox.driver import (
    Boot,
    Job,
    Request,
    TellPhase,
    cut_files,
    ignore_phases,
)
from swingbot_worker.testbox.fence import NO_FENCE, Fence
from swingbot_worker.testbox.kernel import Kernel, find
from swingbot_worker.testbox.limits import limits
from swingbot_worker.testbox.verdict import BootStatus


def boot(
    order: BootOrder,
    out: Path,
    site: Site,
    tell_phase: TellPhase = ignore_phases,
    fence: Fence = NO_FENCE,
) -> Outcome:
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
        result, report = _boot(order, out, site, tell_phase, fence)
    except InfraError as error:
        return ended("infra", str(error)) | error.of_outcome
    except TestboxError as error:
        return ended("infra", str(error))
    except OSError as error:
        return ended(
            "infra",
            f"The worker's disk failed or is full ({error}); check {site.cache} and {out}.",
        )
    seen = {"facts": report.facts, "runs": report.runs}
    if result.verdict.status is BootStatus.LIMIT:
        why = f"A limit ended the boot: {result.verdict.reason}"
        return ended("infra", why) | {"fault": "limit", **seen}
    return ended(result.verdict.status.value, result.verdict.reason) | seen


def _boot(
    order: BootOrder, out: Path, site: Site, tell_phase: TellPhase, fence: Fence
) -> tuple[Boot, GuestReport]:
    """Resolve the order, let the testbox's driver boot, and read the results."""
    stolen, kernel = host.stolen_ticks(), _kernel(order.kernel, out, site)
    testbox = _testbox(order, site)
    _check_programs(kernel, order.unit_jobs, site)
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
        fence=fence,
        document=order.document,
        cmdline=cmdline_of(order.unit_jobs),
    )
    try:
        result = driver.boot(request)
    finally:
        cut_files(out, select_driver.FILES)
    ours = {"testbox_label": testbox.label, "engine": testbox.engine, **result.facts}
    ours |= {"image_sha256": sha256(kernel.image)}
    report = read_boot(
        request.results,
        unit_jobs=order.unit_jobs,
        facts={**host.facts(stolen), **ours},
        marks=[engine.PROBLEM],
    )
    _check_engine(testbox, report)
    return result, report


def _kernel(ordered: BootKernel, out: Path, site: Site) -> Kernel:
    """Return the kernel to boot, and delete files of a previous attempt from `out`."""
    out.mkdir(parents=True, exist_ok=True)
    kernel = find(ordered, out, site)
    for name in select_driver.FILES:
        (out / name).unlink(missing_ok=True)
    return kernel


def _check_programs(kernel: Kernel, unit_jobs: Sequence[UnitJob], site: Site) -> None:
    """Raise OrderError if a program of the job, or the memory that it asks for, needs options that
    the kernel lacks.
    """
    names = dict.fromkeys(name for job in unit_jobs for name in (job.program, *job.monitors))
    metas = {name: site.jobs / "programs" / name / "meta.yaml" for name in names}
    # Files of a program that is missing here are missed where they are packed.
    known = {name: load_program(meta) for name, meta in metas.items() if meta.is_file()}
    for who, options in kconfig_needs(unit_jobs, known).items():
        kernel.refuse_lacking(options, who)


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


def _check_engine(testbox: Testbox, report: GuestReport) -> None:
    """Raise InfraError if the engine reports that it cannot run on this testbox."""
    if said := report.marks.get(engine.PROBLEM, "").strip():
        plain = printable(said[: REASON_CHARACTERS // 2])
        raise InfraError(
            f"The engine {testbox.engine} of testbox {testbox.name} cannot run: {plain}."
        )


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
