"""What runs the unit jobs on a testbox that a driver has booted: our own runner, or an installed lkp-tests.

Either is a script, /job/run.sh, with what it needs beside it; it writes facts and runs to file descriptor 3 as a stream of tars.
The driver neither knows nor cares which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker import rootfs, runner
from swingbot_worker.engine import lkp
from swingbot_worker.rootfs import Rootfs, cpio
from swingbot_worker.site import Site

# The fact with which a script says that it can't run anything here.
PROBLEM: Final = "engine_problem"


def prepare(box: Testbox, unit_jobs: Sequence[UnitJob], site: Site) -> Rootfs:
    """The root file system of a guest in which the unit jobs can run. Raises InfraError with what to install."""
    return (
        lkp.prepare(box, box.lkp, unit_jobs, site) if box.lkp else rootfs.prepare(unit_jobs, site)
    )


def job_entries(
    box: Testbox,
    unit_jobs: Sequence[UnitJob],
    site: Site,
    kernel: Mapping[str, object],
    *,
    alone: bool,
) -> list[cpio.Entry]:
    """The generated script and the files beside it, the script first. `alone`: in a guest of its own. Raises InfraError for a job that the engine can't run."""
    if box.lkp:
        return lkp.job_entries(box.lkp, unit_jobs, kernel, alone=alone)
    programs = sorted({name for job in unit_jobs for name in (job.program, *job.monitors)})
    runs = [
        cpio.file(
            f"job/programs/{name}/run",
            (site.jobs / "programs" / name / "run").read_bytes(),
            executable=True,
        )
        for name in programs
    ]
    return [
        cpio.file("job/run.sh", runner.script(unit_jobs, alone=alone).encode(), executable=True),
        *runs,
    ]


def overhead_seconds(box: Testbox) -> float:
    """Guest seconds that a run may take beyond the benchmark's own."""
    return lkp.overhead_seconds(box) if box.lkp else 0.0
