"""How long a boot takes, from its unit jobs and the file of its testbox, in wall seconds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot_jobs.contract.deadline import PATIENCE, run_seconds
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import QemuDriver, Testbox

# Wall seconds of a busy guest second: 2 with counted instructions at shift 3, 1 else (measured on a
# 2-core host).
ICOUNT_PACE: Final = 2.5
# Seconds to send image and root file system to a real machine, and to start anything.
SENDING_SECONDS: Final = 30.0
# Guest seconds that LKP needs around a run: it starts Ruby some fifteen times and sleeps for five
# seconds. Measured in a virtual machine: 50.
LKP_VIRTUAL_SECONDS: Final = 120.0
LKP_REAL_SECONDS: Final = 30.0


def boot_seconds(testbox: Testbox, unit_jobs: Sequence[UnitJob]) -> float:
    """Return the approximate duration of a healthy boot with all its runs."""
    return testbox.boot_seconds + sum(
        seconds_of_run(testbox, job, job.monitor_of(number))
        for job in unit_jobs
        for number in job.numbers
    )


def boot_limit(
    testbox: Testbox, unit_jobs: Sequence[UnitJob], measured: float | None = None
) -> float:
    """Return the duration at which such a boot is stopped.

    `measured` is the mean of such boots that came up on this testbox, once it has some. It never
    shortens the limit: the next kernel may be slower.
    """
    return limit_of(max(boot_seconds(testbox, unit_jobs), measured or 0.0))


def limit_of(seconds: float) -> float:
    """Return the limit of a boot that takes so long."""
    return SENDING_SECONDS + PATIENCE * seconds


def seconds_of_run(testbox: Testbox, job: UnitJob, monitor: str | None) -> float:
    """Return the duration of one run of `job`."""
    qemu = testbox.driver if isinstance(testbox.driver, QemuDriver) else None
    around = LKP_VIRTUAL_SECONDS if qemu else LKP_REAL_SECONDS
    counted = testbox.repeatable or (qemu is not None and qemu.accel == "icount")
    pace = ICOUNT_PACE if counted else 1.0
    return pace * (run_seconds(job, monitor) + (around if testbox.lkp is not None else 0.0))
