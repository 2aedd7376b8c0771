"""How long a boot may take. Pure. All in seconds of wall clock unless a name says guest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import QemuDriver, Testbox
from swingbot_worker import engine, runner

# Wall seconds of a busy guest second: 2 with counted instructions at shift 3, 1 else (measured on a 2-core host).
ICOUNT_PACE = 2.5
# What a shared host may slow a boot down by before we call the kernel slow.
PATIENCE = 3.0
START_SECONDS = 30.0
# A boot that is alive prints something every second or two, on a busy host a little less often.
QUIET_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`wall` for the whole boot; `quiet_boot` without a sign of life before the job begins, `quiet_job` after it."""

    wall: float
    quiet_boot: float
    quiet_job: float


def estimate(box: Testbox, unit_jobs: Sequence[UnitJob]) -> float:
    """About how long a healthy boot with this job takes."""
    return box.boot_seconds + sum(
        _pace(box) * (runner.all_seconds_of(job) + len(job.numbers) * engine.overhead_seconds(box))
        for job in unit_jobs
    )


def limits(box: Testbox, unit_jobs: Sequence[UnitJob], deadline: float | None) -> Limits:
    """Far above the usual, because a slow kernel is a result; below the order's deadline, because that is a promise."""
    wall = START_SECONDS + PATIENCE * estimate(box, unit_jobs)
    longest = max((_run_seconds(box, job) for job in unit_jobs), default=0.0)
    return Limits(
        wall=wall if deadline is None else min(wall, deadline),
        quiet_boot=QUIET_SECONDS + PATIENCE * box.boot_seconds,
        quiet_job=QUIET_SECONDS + PATIENCE * longest,
    )


def _run_seconds(box: Testbox, job: UnitJob) -> float:
    """Of the longest run of `job`."""
    return _pace(box) * (
        runner.seconds_of(job)
        + engine.overhead_seconds(box)
        + (runner.MONITOR_SECONDS if job.monitors else 0.0)
    )


def _pace(box: Testbox) -> float:
    counted = isinstance(box.driver, QemuDriver) and box.driver.accel == "icount"
    return ICOUNT_PACE if counted else 1.0
