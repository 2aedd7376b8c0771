"""The numbers of a comparison or of a bisection's culprit, ready to print in any format.

Built from the JSON and samples of the read models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.report.report_facts import Commit
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.perf_table import Boot, Run

_COUNTER = "perf-stat."
# perf-stat's rates, ratios and benchmark results of monitored runs, which are not event counts
_NO_COUNTS = ("i.", "ps.", "overall.", "total.", "beside.")
Part = tuple[str, str]  # testbox, unit job
Values = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Numbers to print.

    `id` is the comparison or bisection. `counts` are the counters of each run on both sides, by
    boot. `commands` are the commands that ran under perf stat. `monitors` holds all metrics except
    the benchmark's own, as values of each run of base and head.
    """

    id: str
    base: Commit
    head: Commit
    rows: tuple[ComparisonRow, ...]
    counts: Mapping[Part, tuple[tuple[Boot, ...], tuple[Boot, ...]]] = field(default_factory=dict)
    commands: Mapping[Part, str] = field(default_factory=dict)
    monitors: Mapping[Part, Mapping[str, tuple[Values, Values]]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[Part, list[ComparisonRow]]:
        """Rows grouped by testbox and unit job, in order."""
        rows: dict[Part, list[ComparisonRow]] = {}
        for row in self.rows:
            rows.setdefault((row.testbox, row.unit_job), []).append(row)
        return rows


def sheet_of_comparison(
    id_: str, comparison: Mapping[str, Any], samples: Iterable[Mapping[str, Any]]
) -> Sheet:
    """Build a sheet from a comparison as JSON and its samples.

    Several samples of one run count as their mean.
    """
    runs = _runs(samples)
    return Sheet(
        id=id_,
        base=_commit(comparison["base_variant"]),
        head=_commit(comparison["head_variant"]),
        rows=tuple(
            _row(ComparisonRow.from_json(row), runs)
            for row in comparison["rows"]
            if not row.get("counter")
        ),
        counts=_counts(runs),
        monitors={
            part: _monitors(sides, _program(comparison, part)) for part, sides in runs.items()
        },
        commands={
            (part["testbox"], job["name"]): UnitJob.from_json(job).command
            for part in comparison["parts"]
            for job in part["unit_jobs"]
        },
    )


# part, side, metric, (k, run): value
_Runs = dict[Part, dict[str, dict[str, dict[tuple[int, int], float]]]]


def _runs(samples: Iterable[Mapping[str, Any]]) -> _Runs:
    sums: dict[tuple[Any, ...], list[float]] = {}
    for sample in samples:
        key = (
            sample["testbox"],
            sample["unit_job"],
            sample["side"],
            sample["metric"],
            sample["k"],
            sample["run"],
        )
        sums.setdefault(key, []).append(float(sample["value"]))
    runs: _Runs = {}
    for (testbox, unit_job, side, metric, k, run), values in sorted(sums.items()):
        runs.setdefault((testbox, unit_job), {}).setdefault(side, {}).setdefault(metric, {})[
            k, run
        ] = sum(values) / len(values)
    return runs


def _row(row: ComparisonRow, runs: _Runs) -> ComparisonRow:
    """Return the row with the values of its runs."""
    sides = runs.get((row.testbox, row.unit_job), {})
    base, head = (
        tuple(sides.get(side, {}).get(row.metric, {}).values()) for side in ("base", "head")
    )
    return replace(row, base=replace(row.base, values=base), head=replace(row.head, values=head))


def _program(comparison: Mapping[str, Any], part: Part) -> str | None:
    return next(
        (
            job["program"]
            for found in comparison["parts"]
            for job in found["unit_jobs"]
            if (found["testbox"], job["name"]) == part
        ),
        None,
    )


def _monitors(
    sides: Mapping[str, Mapping[str, Mapping[tuple[int, int], float]]], program: str | None
) -> dict[str, tuple[Values, Values]]:
    """Return monitor metrics present on both sides."""
    base, head = sides.get("base", {}), sides.get("head", {})
    return {
        metric: (tuple(base[metric].values()), tuple(head[metric].values()))
        for metric in base
        if metric in head and metric.partition(".")[0] != program
    }


def _counts(runs: _Runs) -> dict[Part, tuple[tuple[Boot, ...], tuple[Boot, ...]]]:
    counts = {}
    for part, sides in runs.items():
        base, head = (_counts_of(sides.get(side, {})) for side in ("base", "head"))
        if base and head:
            counts[part] = (base, head)
    return counts


def _counts_of(metrics: Mapping[str, Mapping[tuple[int, int], float]]) -> tuple[Boot, ...]:
    boots: dict[int, dict[int, dict[str, float]]] = {}
    for metric, values in metrics.items():
        event = metric.removeprefix(_COUNTER)
        if event != metric and not event.startswith(_NO_COUNTS):
            for (k, run), value in values.items():
                boots.setdefault(k, {}).setdefault(run, {})[event] = value
    return tuple(_in_order(boots[k]) for k in sorted(boots))


def _in_order(runs: Mapping[int, Run]) -> Boot:
    return tuple(runs[run] for run in sorted(runs))


def _commit(variant: Mapping[str, Any]) -> Commit:
    return Commit(
        sha=variant["commit"],
        subject=variant.get("subject") or "",
        author=variant.get("author") or "",
    )


def sheet_of_bisection(bisection: Mapping[str, Any]) -> Sheet | None:
    """Build a sheet of a bisection's culprit against the commit before it; None if impossible.

    `bisection` is its JSON. The numbers come from the boots that confirmed the culprit if both
    commits have such boots, and from all boots of the bisection otherwise. None if there is no
    culprit, or one of the two commits was not measured. The interval is the bisection's own, and
    is left out if it belongs to a different change.
    """
    points, culprit = bisection["points"], bisection.get("culprit")
    at = next(
        (
            n
            for n, point in enumerate(points)
            if n and culprit and point["commit"] == culprit["commit"]
        ),
        None,
    )
    if at is None:
        return None
    boots = [
        [seen for seen in point["observations"] if seen.get("values")]
        for point in (points[at - 1], points[at])
    ]
    confirmed = [[seen for seen in side if seen.get("phase") == "confirm"] for side in boots]
    base, head = (
        _side_of_boots([seen["values"] for seen in side])
        for side in (confirmed if all(confirmed) else boots)
    )
    if base.mean is None or head.mean is None:
        return None
    change = 100 * (head.mean / base.mean - 1) if base.mean else None
    reported = bisection.get("change_pct")
    interval = (
        bisection.get("interval_pct")
        if change is not None and reported is not None and abs(change - reported) < 0.05
        else None
    )
    better = bisection.get("better")
    worse = change is not None and better is not None and (change > 0) != (better == "higher")
    row = ComparisonRow(
        testbox=bisection["testbox"],
        label=bisection.get("label") or "",
        unit_job=bisection["unit_job"],
        metric=bisection["metric"],
        unit=bisection.get("unit") or "",
        better=better,
        base=base,
        head=head,
        change_pct=change,
        interval_pct=(float(interval[0]), float(interval[1])) if interval else None,
        verdict="changed" if better is None else "worse" if worse else "better",
    )
    return Sheet(
        id=bisection["id"], base=_commit(points[at - 1]), head=_commit(points[at]), rows=(row,)
    )


def _side_of_boots(boots: Sequence[Sequence[float]]) -> Side:
    means = [fmean(values) for values in boots]
    return Side(
        boots=len(means),
        runs=sum(map(len, boots)),
        mean=fmean(means) if means else None,
        stddev=stdev(means) if len(means) > 1 else None,
        values=tuple(value for values in boots for value in values),
    )
