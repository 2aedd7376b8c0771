"""Limits of a boot, in wall-clock seconds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot_jobs.contract.deadline import PATIENCE
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_limit, boot_seconds, seconds_of_run
from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker.testbox.verdict import BootStatus, Verdict

# A live boot prints something every second or two, on a busy host slightly less often.
QUIET_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BootLimits:
    """Limits of a boot: `wall` in total, and `quiet_*` without a sign of life.

    `quiet_boot` applies before the job begins, `quiet_job` after it. `usual*` are the durations of
    a healthy boot as a whole, of its start, and of its longest run.
    """

    wall: float
    quiet_boot: float
    quiet_job: float
    usual: float = 0.0
    usual_boot: float = 0.0
    usual_job: float = 0.0


def limits(testbox: Testbox, unit_jobs: Sequence[UnitJob], deadline: float | None) -> BootLimits:
    """Return limits far above the usual duration, because a slow kernel is a result.

    The order's deadline, if it has one, is the whole boot's: the master knows this testbox's boots.
    """
    longest = max(
        (
            seconds_of_run(testbox, job, job.monitors[0] if job.monitors else None)
            for job in unit_jobs
        ),
        default=0.0,
    )
    return BootLimits(
        wall=boot_limit(testbox, unit_jobs) if deadline is None else deadline,
        quiet_boot=QUIET_SECONDS + PATIENCE * testbox.boot_seconds,
        quiet_job=QUIET_SECONDS + PATIENCE * longest,
        usual=boot_seconds(testbox, unit_jobs),
        usual_boot=testbox.boot_seconds,
        usual_job=longest,
    )


def silent(limit: float, usual: float, reason: str) -> Verdict:
    """Return the verdict after `limit` seconds of silence, of which `usual` would be healthy."""
    if limit < usual:
        return Verdict(
            status=BootStatus.LIMIT,
            reason=f"the limit is too short, {usual:.0f} s would be healthy: {reason}",
        )
    return Verdict(status=BootStatus.HUNG, reason=reason)
