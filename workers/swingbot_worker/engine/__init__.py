"""Engines, which run unit jobs on a booted testbox: swingbot's own runner, or lkp-tests.

Either one is a script, /job/run.sh, with the files that it needs. It writes facts and runs to file
descriptor 3 as a stream of tar archives. The driver does not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker import rootfs, runner
from swingbot_worker.rootfs import Rootfs, cpio
from swingbot_worker.site import Site

# The fact by which a script reports that it cannot run anything on this testbox.
PROBLEM: Final = "engine_problem"


def prepare(testbox: Testbox, unit_jobs: Sequence[UnitJob], site: Site) -> Rootfs:
    """Build the root file system of a guest for the unit jobs.

    Raises InfraError that names the packages to install.
    """
    if testbox.lkp is None:
        return rootfs.prepare(unit_jobs, site)
    from swingbot_worker.engine import lkp

    return lkp.prepare(testbox, testbox.lkp, unit_jobs, site)


def job_entries(
    testbox: Testbox,
    unit_jobs: Sequence[UnitJob],
    site: Site,
    kernel: Mapping[str, object],
    *,
    alone: bool,
) -> list[cpio.Entry]:
    """Return the generated script and then the files that it needs.

    `alone` means that the job runs in a guest of its own. Raises InfraError for a job that the
    engine cannot run.
    """
    if testbox.lkp:
        from swingbot_worker.engine import lkp

        return lkp.job_entries(testbox.lkp, unit_jobs, site, kernel, alone=alone)
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
