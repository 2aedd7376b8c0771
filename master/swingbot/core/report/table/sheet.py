"""The numbers of a table of kernels, ready to print in any format; built from the read model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.better import Better

Place = tuple[str, str]  # testbox, unit job
Values = tuple[float, ...]
# (place, arm) -> metric -> (boot, run) -> mean of the run's samples
_Runs = Mapping[tuple[Place, int], Mapping[str, Mapping[tuple[str, int], float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnValues:
    """The numbers of a column: one by place and kernel.

    With place None the number is the same everywhere.
    """

    title: str
    values: Mapping[tuple[Place | None, int], float]

    def of(self, place: Place, arm: int) -> float | None:
        """Return the number for one cell, or None if it is not known."""
        return self.values.get((place, arm), self.values.get((None, arm)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnText:
    """What a column has to say below the tables."""

    heading: str
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What the requested columns add to a table."""

    values: Sequence[ColumnValues] = ()
    texts: Sequence[ColumnText] = ()


NO_COLUMNS: Final = Columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetKernel:
    """The kernel of a row, for the reader."""

    name: str
    commit: str
    subject: str
    compiler: str = ""
    trouble: str | None = None  # reason if there is no kernel
    incident: str | None = None  # id of the incident whose culprit this commit is


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One kernel's measurement of one metric on one testbox, in the metric's unit."""

    side: Side | None  # None: nothing was measured
    # by reference; empty for a kernel that is only a reference
    rows: Mapping[str, ComparisonRow]
    columns: Mapping[str, float] = field(default_factory=dict)  # title -> mean of boot means


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One metric of one unit job on one testbox: a family of rows."""

    testbox: str
    label: str
    unit_job: str
    metric: str
    unit: str
    better: Better | None
    headline: bool
    counter: bool
    cells: tuple[Cell, ...]  # one per kernel, in table order
    is_alias: bool = False  # all rows repeat the numbers of another block
    aliases: tuple[str, ...] = ()  # metrics that repeat the numbers of this one

    @property
    def rows(self) -> list[ComparisonRow]:
        return [row for cell in self.cells for row in cell.rows.values()]

    @property
    def place(self) -> Place:
        return self.testbox, self.unit_job

    @property
    def note(self) -> str:
        """What most of the width of an interval comes from if it was not measured, or ''."""
        for row in self.rows:
            if not self.counter and row.layout is not None and row.layout.assumed:
                return (
                    f"intervals: the spread between layouts, {row.layout.sd_pct:.2g} %, is assumed"
                    f" on {self.testbox}, not measured"
                )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """`id` is the object whose numbers these are: c5, e6, b2, i1 or r4.

    `runs` holds the value of each run, of those metrics whose samples were given.
    """

    id: str
    tree: str
    status: str
    reason: str | None
    against: tuple[str, ...]  # rules of the references
    kernels: tuple[SheetKernel, ...]
    blocks: tuple[Block, ...]
    columns: tuple[str, ...] = ()  # titles
    texts: tuple[ColumnText, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)  # by unit job
    programs: Mapping[str, str] = field(default_factory=dict)  # by unit job
    differ: tuple[str, ...] = ()  # facts that differ between a row and its reference
    runs: _Runs = field(default_factory=dict)
    private_to: tuple[str, ...] | None = None  # who may read it, with operators; None: everybody
    unjudged: int = 0  # counters without a row: the evidence of others was stronger

    def shown(self, *, counters: bool = False) -> list[Block]:
        """Return the headline metrics; with `counters`, all metrics; never aliases."""
        return [
            block for block in self.blocks if (block.headline or counters) and not block.is_alias
        ]

    @property
    def open(self) -> bool:
        return self.status in ("waiting", "running")

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(reference, row) of each row that is compared, by the first reference."""
        found = {
            (row.reference, row.arm): None
            for block in self.blocks
            for row in block.rows
            if row.against == self.against[0]
        }
        return sorted(found, key=lambda pair: pair[1])

    def values(self, place: Place, arm: int, metric: str) -> Values:
        """Return the value of each run, by boot."""
        return tuple(self.runs.get((place, arm), {}).get(metric, {}).values())


def sheet_of_table(
    table: Mapping[str, Any],
    samples: Iterable[Mapping[str, Any]] = (),
    columns: Columns = NO_COLUMNS,
    id_: str | None = None,
) -> Sheet:
    """Build a sheet from `table` as JSON and `samples` of metrics that need run values.

    `id_`: the object that readers know it by, if it is another one.
    """
    kernels = tuple(_kernel(arm) for arm in table["arms"])
    runs = _runs(samples)
    groups: dict[tuple[str, str, str], list[ComparisonRow]] = {}
    counters = {}
    for row_json in table["rows"]:
        row = ComparisonRow.from_json(row_json)
        groups.setdefault(row.key, []).append(row)
        counters[row.key] = bool(row_json.get("counter"))
    originals = {
        key: rows[0].original
        for key, rows in groups.items()
        if all(row.alias_of for row in rows) and rows[0].original in groups
    }
    jobs = [codec.typed(UnitJob, job) for part in table["parts"] for job in part["unit_jobs"]]
    return Sheet(
        id=id_ or table["id"],
        tree=table["tree"],
        status=table["status"],
        reason=table["reason"],
        against=tuple(table["against"]),
        kernels=kernels,
        blocks=tuple(
            replace(
                _block(rows, len(kernels), counters[key], runs, columns.values),
                is_alias=key in originals,
                aliases=tuple(alias[2] for alias, of in originals.items() if of == key),
            )
            for key, rows in groups.items()
        ),
        columns=tuple(column.title for column in columns.values),
        texts=tuple(columns.texts),
        commands={job.name: job.command for job in jobs},
        programs={job.name: job.program for job in jobs},
        differ=tuple(_differences(table["facts_differ"], kernels)),
        runs=runs,
        private_to=None if (names := table.get("private_to")) is None else tuple(names),
        unjudged=table.get("unjudged", 0),
    )


def _kernel(arm: Mapping[str, Any]) -> SheetKernel:
    variant = arm["variant"]
    return SheetKernel(
        name=arm["name"],
        commit=variant["commit"],
        subject=variant.get("subject") or "",
        compiler=variant["compiler"],
        incident=arm.get("incident"),
        trouble=(arm["reason"] or "does not build") if arm["state"] == "failed" else None,
    )


def _block(
    rows: Sequence[ComparisonRow],
    kernels: int,
    counter: bool,
    runs: _Runs,
    columns: Sequence[ColumnValues],
) -> Block:
    rows = [_with_values(row, runs) for row in rows]
    some = rows[0]
    sides: dict[int, Side] = {}
    for row in rows:  # a row whose kernel does not build has no numbers of its reference either
        if row.reference not in sides or not sides[row.reference].boots:
            sides[row.reference] = row.base
    for row in rows:
        if row.arm not in sides or row.head.boots:
            sides[row.arm] = row.head
    place = (some.testbox, some.unit_job)
    return Block(
        testbox=some.testbox,
        label=some.label,
        unit_job=some.unit_job,
        metric=some.metric,
        unit=some.unit,
        better=some.better,
        headline=some.headline,
        counter=counter,
        cells=tuple(
            Cell(
                side=side if (side := sides.get(arm)) and side.boots else None,
                rows={row.against: row for row in rows if row.arm == arm},
                columns={
                    column.title: value
                    for column in columns
                    if (value := column.of(place, arm)) is not None
                },
            )
            for arm in range(kernels)
        ),
    )


def _with_values(row: ComparisonRow, runs: _Runs) -> ComparisonRow:
    place = (row.testbox, row.unit_job)
    base, head = (
        tuple(runs.get((place, arm), {}).get(row.metric, {}).values())
        for arm in (row.reference, row.arm)
    )
    return replace(row, base=replace(row.base, values=base), head=replace(row.head, values=head))


def _runs(samples: Iterable[Mapping[str, Any]]) -> _Runs:
    """Several samples of one run count as their mean."""
    values: dict[tuple[Place, int], dict[str, dict[tuple[int, str, int], list[float]]]] = {}
    for sample in samples:
        key = ((sample["testbox"], sample["unit_job"]), sample["arm"])
        run = (sample["k"], sample["boot"], sample["run"])
        of_metric = values.setdefault(key, {}).setdefault(sample["metric"], {})
        of_metric.setdefault(run, []).append(float(sample["value"]))
    return {
        key: {
            metric: {(boot, run): fmean(found) for (_, boot, run), found in sorted(runs.items())}
            for metric, runs in metrics.items()
        }
        for key, metrics in values.items()
    }


_DIFFER: Final = {
    "blocks": "BLOCKS A VERDICT",
    "compared": "compared by the job",
    "told": "may be the explanation",
}


def _differences(
    differing: Sequence[Mapping[str, Any]], kernels: Sequence[SheetKernel]
) -> Iterable[str]:
    """Differences of fact sheets as sentences; expected ones (the variant) in a single one."""
    for fact in differing:
        if fact["kind"] in _DIFFER:
            names = ", ".join(kernels[arm].name for arm in fact["arms"])
            where = f"{fact['testbox']}{f', {names}' if len(kernels) > 2 else ''}"
            yield f"{where}: {fact['words']} [{_DIFFER[fact['kind']]}]"
    variant = sorted({fact["fact"] for fact in differing if fact["kind"] == "variant"})
    if variant:
        yield f"the kernels themselves: {', '.join(variant)}"


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
        headline=True,
        base=base,
        head=head,
        change_pct=change,
        interval_pct=(float(interval[0]), float(interval[1])) if interval else None,
        verdict="changed" if better is None else "worse" if worse else "better",
    )
    kernels = tuple(
        SheetKernel(name=name, commit=point["commit"], subject=point.get("subject") or "")
        for name, point in (("parent", points[at - 1]), ("commit", points[at]))
    )
    cells = (Cell(side=base, rows={}), Cell(side=head, rows={"first": row}))
    jobs = [codec.typed(UnitJob, job) for job in bisection.get("unit_jobs") or ()]
    block = Block(
        testbox=row.testbox,
        label=row.label,
        unit_job=row.unit_job,
        metric=row.metric,
        unit=row.unit,
        better=row.better,
        headline=True,
        counter=False,
        cells=cells,
    )
    return Sheet(
        id=bisection["id"],
        tree=bisection["tree"],
        status="done",
        reason=None,
        against=("first",),
        kernels=kernels,
        blocks=(block,),
        commands={job.name: job.command for job in jobs},
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
