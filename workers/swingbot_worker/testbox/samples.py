"""Print the samples of a boot by hand as a table. Only the master judges samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.reading.result import ParsedRun
from swingbot_worker.site import Site


def sample_table(
    jobs: Sequence[UnitJob], out: Path, site: Site, facts: Mapping[str, Any] | None = None
) -> str:
    """Return one line per unit job and metric, with the value of each run.

    A run without a result has `-`, and its reason below. `facts` are those of the outcome.
    """
    results = out / "results.tar"
    if not results.is_file():
        return ""
    runs = parse_results(results, jobs, load_programs(site.jobs / "programs"), facts)
    rows = [
        row for job in jobs for row in _rows(job, [run for run in runs if run.unit_job == job.name])
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}" for row in rows]
    lines += [
        f"{run.unit_job} run {run.number}: {run.status}: {run.reason}" for run in runs if run.reason
    ]
    return "\n".join(lines)


def _rows(job: UnitJob, runs: list[ParsedRun]) -> list[tuple[str, str, str]]:
    metrics = dict.fromkeys(metric for run in runs for metric in run.samples)
    return [(job.name, metric, "  ".join(_cell(run, metric) for run in runs)) for metric in metrics]


def _cell(run: ParsedRun, metric: str) -> str:
    values = run.samples.get(metric)
    return ",".join(f"{value:.10g}" for value in values) if values else "-"
