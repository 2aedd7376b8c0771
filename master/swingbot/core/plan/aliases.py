"""Find metrics that repeat a number under another name, as meta.yaml declares it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.noise import PastBoot
from swingbot.core.plan.metric_rules import metric_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program

# Some parsers round one of the two names. A larger difference must not be hidden.
_ROUNDING: Final = 1e-3


def with_aliases(
    rows: Iterable[ComparisonRow],
    unit_jobs: Mapping[str, UnitJob],
    programs: Mapping[str, Program],
) -> Iterator[ComparisonRow]:
    """Set `alias_of` in the rows of one testbox where it holds.

    It holds if the program declares it for the parameters of the unit job and both rows have the
    same levels. A declaration that contradicts the numbers is ignored, and both rows are printed.
    """
    rows_by_place = {_place(row, row.metric): row for row in rows}
    for row in rows_by_place.values():
        target = metric_of(programs, row.metric).alias_of(unit_jobs[row.unit_job].params)
        original = rows_by_place.get(_place(row, target)) if target else None
        same = original is not None and _same_levels(row, original)
        yield replace(row, alias_of=target) if same else row


def aliases_of_boots(
    boots: Mapping[tuple[str, str], Sequence[PastBoot]],
    unit_jobs: Mapping[str, UnitJob],
    programs: Mapping[str, Program],
) -> dict[tuple[str, str], str]:
    """Return the metric that each alias repeats; keys are (unit job, metric).

    `boots` has the boots of each metric of one testbox, oldest first. An alias holds if the program
    declares it for the parameters of the unit job and all boots that have both have the same means;
    a metric that its parser learned later has fewer of them.
    """
    found = {}
    for unit_job, metric in boots:
        job = unit_jobs.get(unit_job)
        target = metric_of(programs, metric).alias_of(job.params) if job else None
        original = boots.get((unit_job, target)) if target else None
        if target and original and _same_boots(boots[unit_job, metric], original):
            found[unit_job, metric] = target
    return found


def _same_boots(one: Sequence[PastBoot], other: Sequence[PastBoot]) -> bool:
    latest = zip(reversed(one), reversed(other), strict=False)
    return all(
        (a.code, a.image, a.day, a.k, len(a.values)) == (b.code, b.image, b.day, b.k, len(b.values))
        and math.isclose(fmean(a.values), fmean(b.values), rel_tol=_ROUNDING)
        for a, b in latest
    )


def _place(row: ComparisonRow, metric: str) -> tuple[str, str, str, int, int]:
    """Identify the number of a row: its place and its pair of kernels."""
    return row.unit_job, metric, row.against, row.reference, row.arm


def _same_levels(one: ComparisonRow, other: ComparisonRow) -> bool:
    return all(
        a.mean is not None
        and b.mean is not None
        and math.isclose(a.mean, b.mean, rel_tol=_ROUNDING)
        and a.runs == b.runs
        for a, b in ((one.base, other.base), (one.head, other.head))
    )
