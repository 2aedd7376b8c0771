"""A budget of metric names: guests choose them, and each makes rows for as long as it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swingbot.core.limits import METRIC_NAMES
from swingbot_jobs.language.program import Program
from swingbot_jobs.reading.result import ParsedRun, Samples

OVER_BUDGET: Final = "new metric names, and {} of {} are left"  # status looks for its first words


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNames:
    """Names of one unit job on one testbox: those that cost nothing, and how many are counted."""

    free: frozenset[str]
    counted: int


def within_budget(
    runs: Sequence[ParsedRun], names: Mapping[str, MetricNames], programs: Mapping[str, Program]
) -> list[ParsedRun]:
    """Return the runs of a boot without the monitors whose new names are more than are left.

    A monitor's samples of a run count as a whole or not at all. Names in a meta.yaml are free.
    `names` are by unit job.
    """
    free = {job: set(of_job.free) for job, of_job in names.items()}
    left = {job: METRIC_NAMES - of_job.counted for job, of_job in names.items()}
    kept = []
    for run in runs:
        samples: Samples = {}
        reasons = [run.reason] if run.reason else []
        for monitor, of_monitor in _by_monitor(run.samples):
            declared = programs[monitor].metrics if monitor in programs else {}
            new = of_monitor.keys() - free[run.unit_job] - declared.keys()
            if new and len(new) > left[run.unit_job]:
                budget = OVER_BUDGET.format(max(0, left[run.unit_job]), METRIC_NAMES)
                reasons.append(f"{monitor} left out: it has {len(new)} {budget}")
                of_monitor = {name: of_monitor[name] for name in of_monitor.keys() & declared}
            else:
                free[run.unit_job] |= new
                left[run.unit_job] -= len(new)
            samples |= of_monitor
        status = "failed" if run.samples and not samples else run.status
        kept.append(replace(run, samples=samples, status=status, reason="; ".join(reasons) or None))
    return kept


def _by_monitor(samples: Samples) -> Iterator[tuple[str, Samples]]:
    """Yield each monitor or benchmark with its samples."""
    groups: dict[str, Samples] = {}
    for name, values in samples.items():
        groups.setdefault(name.partition(".")[0], {})[name] = values
    yield from groups.items()
