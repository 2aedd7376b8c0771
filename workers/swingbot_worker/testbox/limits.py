"""Time limits of a boot, in wall-clock seconds unless a name has `guest`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import QemuDriver, Testbox
from swingbot_worker import engine, runner

# Wall seconds of a busy guest second: 2 with counted instructions at shift 3, 1 else (measured on a
# 2-core host).
ICOUNT_PACE = 2.5
# Factor by which a shared host may slow a boot down before the kernel counts as slow.
PATIENCE = 3.0
START_SECONDS = 30.0
# A live boot prints something every second or two, on a busy host slightly less often.
QUIET_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BootLimits:
    """Limits of a boot: `wall` in total, and `quiet_*` without a sign of life.

    `quiet_boot` applies before the job begins, `quiet_job` after it.
    """

    wall: float
    quiet_boot: float
    quiet_job: float


def estimate(testbox: Testbox, unit_jobs: Sequence[UnitJob]) -> float:
    """Return the approximate duration of a healthy boot with this job."""
    return testbox.boot_seconds + sum(
        _pace(testbox)
        * (runner.all_seconds_of(job) + len(job.numbers) * engine.overhead_seconds(testbox))
        for job in unit_jobs
    )


def limits(testbox: Testbox, unit_jobs: Sequence[UnitJob], deadline: float | None) -> BootLimits:
    """Return limits far above the usual duration, because a slow kernel is a result.

    They never exceed the order's deadline.
    """
    wall = START_SECONDS + PATIENCE * estimate(testbox, unit_jobs)
    longest = max((_run_seconds(testbox, job) for job in unit_jobs), default=0.0)
    return BootLimits(
        wall=wall if deadline is None else min(wall, deadline),
        quiet_boot=QUIET_SECONDS + PATIENCE * testbox.boot_seconds,
        quiet_job=QUIET_SECONDS + PATIENCE * longest,
    )


def _run_seconds(testbox: Testbox, job: UnitJob) -> float:
    """Return the duration of the longest run of `job`."""
    return _pace(testbox) * (
        runner.seconds_of(job)
        + engine.overhead_seconds(testbox)
        + (runner.MONITOR_SECONDS if job.monitors else 0.0)
    )


def _pace(testbox: Testbox) -> float:
    counted = isinstance(testbox.driver, QemuDriver) and testbox.driver.accel == "icount"
    return ICOUNT_PACE if counted else 1.0
