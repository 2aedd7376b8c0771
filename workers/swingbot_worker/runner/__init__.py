"""The job runner: a POSIX script, generated for one boot, that runs the unit jobs in the guest. Pure.

It runs under busybox and needs nothing of us in the guest. What it writes to file descriptor 3 is a
stream of tars: the facts first, then each run as soon as it is over, so that a later panic loses
nothing; the member END comes last and says that the job was gone through.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker.runner.facts import demanded, functions, held
from swingbot_worker.runner.prologue import PROLOGUE, SWEEP_ALL, SWEEP_NOTHING

END = "facts/ended"
# Guest seconds of a run of which nothing says how long it takes.
UNSAID_SECONDS = 20.0
# Guest seconds of one unit of fixed work on the slowest testbox we ship, vm-icount; a real machine is far quicker.
MESSAGE_SECONDS = 20e-6  # hackbench: one message through a pipe or socket; measured 15 us
FAULT_SECONDS = 30e-6  # page-fault: one page mapped, touched and freed; measured 29 us
# What a program needs beyond the seconds in its job: warm-up, start and end of many tasks.
EXTRA_SECONDS = 10.0
# What a monitor that disturbs adds to its run: a profile is made into a report on the spot.
MONITOR_SECONDS = 60.0

PROFILER = "function-profile"
# A run that its limit ended has not switched it off, and what comes next would pay for it.
_PROFILER_OFF = "[ ! -w /sys/kernel/tracing/function_profile_enabled ] || echo 0 >/sys/kernel/tracing/function_profile_enabled"


def script(unit_jobs: Sequence[UnitJob], *, alone: bool) -> str:
    """The text of /job/run.sh: unit jobs in the order given, the runs of each in sequence.

    `alone`: it runs in a guest of its own, where after each run every process may be killed.
    """
    runs = "\n".join(line for job in unit_jobs for line in lines(job, run_of(job)))
    return framed(unit_jobs, "", f"probe_monitors\n{runs}", alone=alone)


def framed(unit_jobs: Sequence[UnitJob], more: str, runs: str, *, alone: bool) -> str:
    """A script with our functions and those in `more` that sends facts, does `runs`, and sends what has changed."""
    sweep = SWEEP_ALL if alone else SWEEP_NOTHING
    return f"{PROLOGUE}{functions(unit_jobs)}\n{sweep}{more}\nfacts\n{runs}\nfacts_again\nfinish\n"


def seconds_of(job: UnitJob) -> float:
    """About how long one run of `job` takes, in guest seconds; too long rather than too short."""
    if (said := _number(job, "runtime")) is not None:
        return said + EXTRA_SECONDS
    work = _FIXED_WORK.get(job.program)
    counted = [_number(job, name) for name in work.factors] if work else []
    numbers = [number for number in counted if number is not None]
    if work is None or len(numbers) != len(work.factors):
        return UNSAID_SECONDS
    return math.prod(numbers) * work.seconds + EXTRA_SECONDS


def all_seconds_of(job: UnitJob) -> float:
    """About how long all runs of `job` take, in guest seconds."""
    return sum(
        seconds_of(job) + (MONITOR_SECONDS if job.monitor_of(number) else 0.0)
        for number in job.numbers
    )


def limit_of(job: UnitJob, monitor: str | None = None) -> int:
    """Guest seconds after which a run of `job` is killed: far above the usual, because a slow kernel is a result."""
    return int(30 + 3 * (seconds_of(job) + (MONITOR_SECONDS if monitor else 0.0)))


@dataclass(frozen=True, slots=True)
class _Work:
    """Fixed work: the product of these parameters, and the guest seconds that one unit takes."""

    factors: tuple[str, ...]
    seconds: float


_FIXED_WORK = {
    "hackbench": _Work(("iterations", "nr_threads", "fds", "fds", "loops"), MESSAGE_SECONDS),
    "page-fault": _Work(("nr_task", "cycles", "size"), FAULT_SECONDS / 4096),
}


def _number(job: UnitJob, name: str) -> float | None:
    said = job.params.get(name, "")
    return float(said) if said.isascii() and said.isdecimal() and len(said) < 16 else None


def lines(job: UnitJob, line_of: Callable[[int], str]) -> list[str]:
    """The lines of all runs of `job`, in sequence, with what it demands around them; `line_of` gives that of one run by its number."""
    setting = held(job)
    runs = [line for number in job.numbers for line in demanded(job, number, line_of(number))]
    return [*setting, *runs, *(["put_back"] if setting else [])]


def _watched(job: UnitJob, monitor: str) -> list[str]:
    """Assignments that only the run for `monitor` is given."""
    return (
        [shlex.quote(f"sb_functions={' '.join(job.functions)}")]
        if monitor == PROFILER and job.functions
        else []
    )


def run_of(job: UnitJob, more: Mapping[str, str] = MappingProxyType({})) -> Callable[[int], str]:
    """The line of one run of `job` by its number; `more` goes into its environment beside the parameters."""
    params = [
        shlex.quote(f"{name}={value}") for name, value in sorted({**job.params, **more}.items())
    ]

    def line(number: int) -> str:
        monitor = job.monitor_of(number)
        watched = _watched(job, monitor) if monitor else []
        run = " ".join(
            (
                "one_run",
                shlex.quote(job.name),
                str(number),
                str(limit_of(job, monitor)),
                monitor or "-",
                job.program,
                *params,
                *watched,
            )
        )
        return f"{run}\n{_PROFILER_OFF}" if monitor == PROFILER else run

    return line
