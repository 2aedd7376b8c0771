"""List the programs that each job file needs on this host, and how to install missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import NominalTestbox, expand
from swingbot_jobs.language.job_files import read_job
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.yaml_lines import JobError
from swingbot_worker import InfraError
from swingbot_worker.rootfs import programs
from swingbot_worker.site import Site

State = Literal["there", "fetchable", "missing"]
FETCHED: Final = "downloaded from Debian non-free for the first boot that needs it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One program of one job. `detail` is its version, or one sentence on how to install it."""

    program: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeeds:
    """One job file with its programs and monitors, sorted by name."""

    job: str
    needs: tuple[Need, ...]

    @property
    def runs(self) -> bool:
        """True if all of its programs are installed or downloaded on demand."""
        return all(need.state != "missing" for need in self.needs)

    def to_json(self) -> dict[str, Any]:
        return {"job": self.job, "runs": self.runs, "programs": [asdict(one) for one in self.needs]}


def job_needs(site: Site, files: Sequence[Path] = ()) -> list[JobNeeds]:
    """Return the needs of the job `files` (default: all in `site.jobs`, sorted by name).

    Nothing is downloaded; swingbot's own programs are compiled.

    Raises InfraError if a job file cannot be read.
    """
    known = load_programs(site.jobs / "programs")
    perf = _perf(site)
    return [
        JobNeeds(job=path.name, needs=(perf, *_of_job(path, known, site)))
        for path in files or sorted(site.jobs.glob("*.yaml"))
    ]


def _of_job(path: Path, known: Mapping[str, Program], site: Site) -> list[Need]:
    try:
        unit_jobs = expand(read_job(path, [site.jobs]), path.name, NominalTestbox(), known)
    except (JobError, OSError) as error:
        raise InfraError(f"The job file {path} cannot be read ({error}); correct it.") from error
    names = sorted({job.program for job in unit_jobs})
    return [_need(name, [job for job in unit_jobs if job.program == name], site) for name in names]


def _need(name: str, unit_jobs: Sequence[UnitJob], site: Site) -> Need:
    try:
        if programs.downloads(name, unit_jobs, site):
            return Need(program=name, state="fetchable", detail=FETCHED)
        binaries = programs.needed(unit_jobs, site)
    except InfraError as error:
        return Need(program=name, state="missing", detail=str(error))
    versions = sorted({binary.version for binary in binaries})
    return Need(program=name, state="there", detail="; ".join(versions) or "a script")


def _perf(site: Site) -> Need:
    try:
        return Need(program="perf", state="there", detail=programs.perf(site).version)
    except InfraError as error:
        return Need(program="perf", state="missing", detail=str(error))
