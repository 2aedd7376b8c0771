"""The columns that a table shows beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from swingbot.service.ports import RequestError
from swingbot.service.ports.specs import Specs
from swingbot_jobs.language.program import Program, find_metric

# Columns besides the metrics given by name, and the monitor that provides each, unless every boot
# has it anyway.
COLUMNS: Final = ("locks", "buddyinfo", "size", "profile")
MONITORS: Final = {"locks": "lock-contention", "profile": "perf-profile"}


def with_monitors(
    programs: Mapping[str, Program], specs: Specs, spec: str, columns: Sequence[str]
) -> str:
    """Return the spec with the monitors that the columns need. Raises RequestError."""
    monitors = [MONITORS[name] for name in columns if name in MONITORS]
    for name in columns:
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
