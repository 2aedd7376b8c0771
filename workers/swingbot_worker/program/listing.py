"""What each shipped job file needs to run on this host, and how to get what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import NominalTestbox, expand
from swingbot_jobs.language.include import include
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.yaml_lines import JobError
from swingbot_worker import InfraError
from swingbot_worker.rootfs import debian, programs
from swingbot_worker.site import Site

State = Literal["there", "fetchable", "missing"]
FETCHED: Final = "comes from Debian non-free with the first boot that needs it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One program of one job. `detail` is its version, or one sentence about how to get it."""

    program: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeeds:
    """One job file: its programs and monitors in the order of their names."""

    job: str
    needs: tuple[Need, ...]

    @property
    def runs(self) -> bool:
        """Whether all that it needs is there or comes by itself."""
        return all(need.state != "missing" for need in self.needs)

    def to_json(self) -> dict[str, Any]:
        return {"job": self.job, "runs": self.runs, "programs": [asdict(one) for one in self.needs]}


def job_needs(site: Site) -> list[JobNeeds]:
    """Every job file below `site.jobs`, by name. Nothing is fetched; a program of ours is compiled.

    Raises InfraError if a job file cannot be read.
    """
    known = load_programs(site.jobs / "programs")
    perf = _perf()
    return [
        JobNeeds(job=path.name, needs=(perf, *_of_job(path, known, site)))
        for path in sorted(site.jobs.glob("*.yaml"))
    ]


def _of_job(path: Path, known: Mapping[str, Program], site: Site) -> list[Need]:
    try:
        unit_jobs = expand(_text(path), path.name, NominalTestbox(), known)
    except (JobError, OSError, UnicodeDecodeError) as error:
        raise InfraError(f"The job file {path} cannot be read ({error}); mend it.") from error
    names = sorted({job.program for job in unit_jobs})
    return [_need(name, [job for job in unit_jobs if job.program == name], site) for name in names]


def _text(path: Path) -> str:
    def find(wanted: str, _: str) -> tuple[str, str] | None:
        beside = path.parent / wanted
        return (wanted, beside.read_text()) if beside.is_file() else None

    return include(path.read_text(), path.name, find)


def _need(name: str, unit_jobs: Sequence[UnitJob], site: Site) -> Need:
    try:
        if name == "netperf" and _would_be_fetched(unit_jobs, site):
            return Need(program=name, state="fetchable", detail=FETCHED)
        binaries = programs.needed(unit_jobs, site)
    except InfraError as error:
        return Need(program=name, state="missing", detail=str(error))
    versions = sorted({binary.version for binary in binaries})
    return Need(program=name, state="there", detail="; ".join(versions) or "a script")


def _would_be_fetched(unit_jobs: Sequence[UnitJob], site: Site) -> bool:
    """Whether asking for netperf's binaries would go to the network. Debian's has no SCTP."""
    sctp = any(job.params.get("test", "").startswith("SCTP") for job in unit_jobs)
    return not (sctp or debian.is_fetched("netperf", site.cache) or programs.netperf_here(site))


def _perf() -> Need:
    try:
        return Need(program="perf", state="there", detail=programs.perf().version)
    except InfraError as error:
        return Need(program="perf", state="missing", detail=str(error))
