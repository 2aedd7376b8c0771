"""The job runner: a POSIX script, generated for one boot, that runs the unit jobs in the guest. Pure.

It runs under busybox and needs nothing of us in the guest. What it writes to file descriptor 3 is a
stream of tars: the facts first, then each run as soon as it is over, so that a later panic loses
nothing; the member END comes last and says that the job was gone through.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from swingbot_jobs.unit_job import UnitJob
from swingbot_worker.runner.prologue import PROLOGUE, SWEEP_ALL, SWEEP_NOTHING

END = "facts/ended"
# Guest seconds of a run whose job does not say how long it takes (hackbench, page-fault).
UNSAID_SECONDS = 20.0
# What a program needs beyond the seconds in its job: warm-up, start and end of many tasks.
EXTRA_SECONDS = 10.0


def script(unit_jobs: Sequence[UnitJob], *, alone: bool) -> str:
    """The text of /job/run.sh: unit jobs in the order given, the runs of each in sequence.

    `alone`: it runs in a guest of its own, where after each run every process may be killed.
    """
    runs = "\n".join(line for job in unit_jobs for line in _lines(job))
    return f"{PROLOGUE}{SWEEP_ALL if alone else SWEEP_NOTHING}\nfacts\n{runs}\nfinish\n"


def seconds_of(job: UnitJob) -> float:
    """About how long one run of `job` takes, in guest seconds."""
    said = job.params.get("runtime", "")
    return float(said) + EXTRA_SECONDS if said.isdigit() else UNSAID_SECONDS


def limit_of(job: UnitJob) -> int:
    """Guest seconds after which a run of `job` is killed: far above the usual, because a slow kernel is a result."""
    return int(60 + 10 * seconds_of(job))


def _lines(job: UnitJob) -> list[str]:
    params = [shlex.quote(f"{name}={value}") for name, value in sorted(job.params.items())]
    return [" ".join(("one_run", shlex.quote(job.name), str(number), str(limit_of(job)), job.program, *params)) for number in range(job.runs)]
