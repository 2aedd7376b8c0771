"""The columns that a table shows beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from swingbot.core.report.table.columns import COLUMNS, column
from swingbot.service.ports import RequestError
from swingbot.service.ports.specs import Specs
from swingbot_jobs.language.program import Program, find_metric


def with_monitors(
    programs: Mapping[str, Program], specs: Specs, spec: str, columns: Sequence[str]
) -> str:
    """Return the spec with the monitors that the columns need: those of COLUMNS, and of a metric
    its monitor if that runs only when a job names it. Raises RequestError.
    """
    asked = {name for name, program in programs.items() if program.when == "asked"}
    monitors = []
    for name in columns:
        provider = column(name).monitor or name.partition(".")[0]
        if provider in asked:
            monitors.append(provider)
        if name not in COLUMNS and find_metric(programs, name) is None:
            raise RequestError(
                f"there is no column {name!r}: choose one of {', '.join(COLUMNS)}, or give the"
                " full name of a metric, such as perf-stat.instructions"
            )
    jobs = specs.get(spec)
    watched = [
        replace(job, monitors=tuple(dict.fromkeys((*job.monitors, *monitors)))) for job in jobs
    ]
    return spec if watched == jobs else specs.add(watched)
