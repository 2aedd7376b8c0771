"""The job runner: a POSIX script, generated for one boot, that runs unit jobs in the guest. Pure.

It runs under busybox and needs no other part of swingbot in the guest. It writes a stream of tar
archives to file descriptor 3: the facts first, then each run as soon as it ends, so that a later
panic loses nothing. The last member, END, marks the job as completed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from swingbot_jobs.contract.deadline import run_limit
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker.runner.fact_script import demanded, functions, held
from swingbot_worker.runner.memory_script import confined
from swingbot_worker.runner.prologue import ALONE, PROLOGUE, SHARED

END = "facts/ended"
PROFILER = "function-profile"
# A run that was killed at its limit leaves the profiler enabled, which would slow down the next
# run.
_PROFILER_OFF = (
    "[ ! -w /sys/kernel/tracing/function_profile_enabled ] "
    "|| echo 0 >/sys/kernel/tracing/function_profile_enabled"
)


def script(unit_jobs: Sequence[UnitJob], *, alone: bool) -> str:
    """Return the text of /job/run.sh: unit jobs in the given order, with their runs in sequence.

    `alone` means that it runs in a guest of its own, where every process may be killed after each
    run.
    """
    runs = "\n".join(line for job in unit_jobs for line in lines(job, run_of(job)))
    return framed(unit_jobs, "", f"probe_monitors\n{runs}", alone=alone)


def framed(unit_jobs: Sequence[UnitJob], more: str, runs: str, *, alone: bool) -> str:
    """Return a script that sends facts, executes `runs`, and sends the facts that changed.

    `more` are additional shell functions.
    """
    around = ALONE if alone else SHARED
    return f"{PROLOGUE}{functions(unit_jobs)}\n{around}{more}\nfacts\n{runs}\nfacts_again\nfinish\n"


def lines(job: UnitJob, line_of: Callable[[int], str]) -> list[str]:
    """Return the lines of all runs of `job`, with the lines that set and restore its demands.

    `line_of` returns the line of one run by its number.
    """
    setting = [*held(job)]
    put_back = ["put_back"] if setting else []
    if confining := confined(job):
        setting += confining
        put_back.insert(0, "set_free")
    if job.events:
        setting.append(f"count_events {shlex.join(job.events)}")
        put_back.append("count_usual")
    runs = [line for number in job.numbers for line in demanded(job, number, line_of(number))]
    return [*setting, *runs, *put_back]


def _watched(job: UnitJob, monitor: str) -> list[str]:
    """Return the assignments for the run of `monitor` only."""
    return (
        [shlex.quote(f"sb_functions={' '.join(job.functions)}")]
        if monitor == PROFILER and job.functions
        else []
    )


def run_of(job: UnitJob, more: Mapping[str, str] = MappingProxyType({})) -> Callable[[int], str]:
    """Return a function from run number to script line.

    `more` is added to the run's environment, next to the job's parameters.
    """
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
                str(run_limit(job, monitor)),
                monitor or "-",
                job.program,
                *params,
                *watched,
            )
        )
        return f"{run}\n{_PROFILER_OFF}" if monitor == PROFILER else run

    return line
