"""The numbers of an experiment, ready to print in any format; built from the read model's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.model.statuses import Reference
from swingbot_jobs.language.program import Better

Place = tuple[str, str]  # testbox, unit job


# (place, arm, metric) -> (boot, run) -> samples of the run
_Runs = dict[tuple[Place, int, str], dict[tuple[str, int], list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementColumn:
    """An additional column of the table: one number per place and kernel.

    With place None the number is the same everywhere.
    """

    title: str
    values: Mapping[tuple[Place | None, int], float]

    def of(self, place: Place, arm: int) -> float | None:
        """Return the number for one cell, or None if it is not known."""
        return self.values.get((place, arm), self.values.get((None, arm)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """A block of text below the tables."""

    heading: str
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplements:
    """Additional output of a table: columns, and blocks of text below it."""

    columns: Sequence[SupplementColumn] = ()
    below: Sequence[TextBlock] = ()


NOTHING_BESIDE: Final = Supplements()


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetKernel:
    """The kernel of a row, for the reader."""

    name: str
    commit: str
    subject: str
    compiler: str
    kconfig: str
    settings: Mapping[str, Any]
    trouble: str | None  # reason if there is no kernel
    incident: str | None = None  # id of the incident whose culprit this commit is


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One kernel's measurement of one metric on one testbox, in the metric's unit."""

    side: Side | None  # None: nothing was measured
    # by reference; empty for a kernel that is only a reference
    rows: Mapping[Reference, ComparisonRow]
    beside: Mapping[str, float] = field(default_factory=dict)  # column -> mean of boot means


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

    @property
    def is_alias(self) -> bool:
        """Whether all rows repeat the numbers of another metric."""
        rows = [row for cell in self.cells for row in cell.rows.values()]
        return bool(rows) and all(row.alias_of for row in rows)

    @property
    def place(self) -> Place:
        return self.testbox, self.unit_job


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSheet:
    id: str
    tree: str
    status: str
    reason: str | None
    boots: int  # per kernel
    against: tuple[Reference, ...]
    kernels: tuple[SheetKernel, ...]
    blocks: tuple[Block, ...]
    columns: tuple[str, ...] = ()  # titles of the additional columns
    below: tuple[TextBlock, ...] = ()

    def shown(self, *, counters: bool = False) -> list[Block]:
        """Return the headline metrics; with `counters`, all metrics except aliases."""
        return [
            block for block in self.blocks if block.headline or (counters and not block.is_alias)
        ]


def sheet_of_experiment(
    experiment: Mapping[str, Any],
    samples: Iterable[Mapping[str, Any]] = (),
    beside: Supplements = NOTHING_BESIDE,
) -> ExperimentSheet:
    """Build a sheet from `experiment` as JSON and `samples` of metrics that need run values."""
    kernels = tuple(_kernel(arm) for arm in experiment["arms"])
    runs = _runs(samples)
    groups: dict[tuple[str, str, str], list[ComparisonRow]] = {}
    counters = {}
    for row_json in experiment["rows"]:
        row = ComparisonRow.from_json(row_json)
        groups.setdefault(row.key, []).append(row)
        counters[row.key] = bool(row_json.get("counter"))
    return ExperimentSheet(
        id=experiment["id"],
        tree=experiment["tree"],
        status=experiment["status"],
        reason=experiment["reason"],
        boots=experiment["boots"],
        against=tuple(experiment["against"]),
        kernels=kernels,
        blocks=tuple(
            _block(rows, len(kernels), counters[key], runs, beside.columns)
            for key, rows in groups.items()
        ),
        columns=tuple(column.title for column in beside.columns),
        below=tuple(beside.below),
    )


def _kernel(arm: Mapping[str, Any]) -> SheetKernel:
    variant = arm["variant"]
    return SheetKernel(
        name=arm["name"],
        commit=variant["commit"],
        subject=variant.get("subject") or "",
        compiler=variant["compiler"],
        kconfig=variant["kconfig"],
        settings=arm["settings"],
        incident=arm.get("incident"),
        trouble=(arm["reason"] or "does not build") if arm["state"] == "failed" else None,
    )


def _block(
    rows: Sequence[ComparisonRow],
    kernels: int,
    counter: bool,
    runs: _Runs,
    columns: Sequence[SupplementColumn],
) -> Block:
    rows = [_with_values(row, runs) for row in rows]
    some = rows[0]
    sides: dict[int, Side] = {}
    for row in rows:
        sides.setdefault(row.reference, row.base)
    for row in rows:
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
                beside={
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
        tuple(fmean(values) for values in runs.get((place, arm, row.metric), {}).values())
        for arm in (row.reference, row.arm)
    )
    return replace(row, base=replace(row.base, values=base), head=replace(row.head, values=head))


def _runs(samples: Iterable[Mapping[str, Any]]) -> _Runs:
    runs: _Runs = {}
    for sample in samples:
        key = ((sample["testbox"], sample["unit_job"]), sample["arm"], sample["metric"])
        run = (sample["boot"], sample["run"])
        runs.setdefault(key, {}).setdefault(run, []).append(float(sample["value"]))
    return runs
