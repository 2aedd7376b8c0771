"""How long work takes, and how long it may take: one place for master, worker and job language.

A duration is what healthy work needs, from the files of job and testbox. A limit is far above it,
because a slow kernel is a result; where it ends the work, it was too short, which says nothing
about the kernel.
"""

from __future__ import annotations

from typing import Final

from swingbot_jobs.contract.orders import OrderKind
from swingbot_jobs.contract.unit_job import UnitJob

# A busy host may need so many times the time that a build needs alone. What a build may take is
# counted in processor time (`build.deadline_seconds` for each job of make).
BUSY: Final = 10.0
# The same for an untrusted kernel, whose makefile can hide its processor time.
UNTRUSTED_BUSY: Final = 3.0
# Factor by which a shared host may slow a boot down.
PATIENCE: Final = 3.0
# Guest seconds of a run of unknown duration.
UNSAID_SECONDS: Final = 20.0
# Seconds that a program needs in addition to its job's runtime: set-up, start and end of many
# tasks.
EXTRA_SECONDS: Final = 10.0
# Seconds that a disturbing monitor adds to its run: a profile is converted to a report in the
# guest.
MONITOR_SECONDS: Final = 60.0
RUN_SECONDS: Final = 30.0  # that a run may take in any case


def runtime_seconds(job: UnitJob) -> float | None:
    """Return the guest seconds that a job gives its program to run; None if it does not say."""
    text = job.params.get("runtime", "")
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def run_seconds(job: UnitJob, monitor: str | None = None) -> float:
    """Return the approximate duration of one run of `job` in guest seconds, rather too long."""
    more = MONITOR_SECONDS if monitor else 0.0
    if (runtime := runtime_seconds(job)) is not None:
        return runtime + EXTRA_SECONDS + more
    return more + (job.work_seconds + EXTRA_SECONDS if job.work_seconds else UNSAID_SECONDS)


def run_limit(job: UnitJob, monitor: str | None = None) -> int:
    """Return the guest seconds after which a run of `job` is killed."""
    return int(RUN_SECONDS + PATIENCE * run_seconds(job, monitor))


def work_seconds(kind: OrderKind, deadline: float) -> float:
    """Return the wall seconds that the work of an order with this deadline may take."""
    return BUSY * deadline if kind == "build" else deadline


def attempt_seconds(kind: OrderKind, deadline: float) -> float:
    """Return the same with what comes before it: the waits for work tree or testbox, and host."""
    return 2 * deadline + work_seconds(kind, deadline)
