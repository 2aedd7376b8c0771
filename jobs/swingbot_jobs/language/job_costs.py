"""What a boot of each job file costs on one testbox. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job import JobError
from swingbot_jobs.language.program import Program
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox

# Shipped jobs of this name are for virtual testboxes, the others for real machines.
_VIRTUAL: Final = "vm-"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """One boot with all runs of a job file, computed from the files of job and testbox."""

    job: str  # file name
    unit_jobs: tuple[UnitJob, ...]
    seconds: float  # wall clock

    @property
    def runs(self) -> int:
        return sum(len(job.numbers) for job in self.unit_jobs)


def job_costs(
    files: Mapping[str, str], testbox: Testbox, programs: Mapping[str, Program]
) -> list[JobCost]:
    """Return what one boot of each job file costs, by name.

    `files` are texts by file name. Left out are those that the testbox can't run, such as a job for
    a cluster, and the shipped ones for another kind of testbox.
    """
    costs = []
    for name, text in sorted(files.items()):
        if name.startswith(_VIRTUAL) != testbox.virtual:
            continue
        try:
            unit_jobs = tuple(testbox.demanded(expand(text, name, testbox, programs)))
        except JobError:
            continue
        costs.append(
            JobCost(job=name, unit_jobs=unit_jobs, seconds=boot_seconds(testbox, unit_jobs))
        )
    return costs
