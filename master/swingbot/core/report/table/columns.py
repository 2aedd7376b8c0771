"""The columns that a table shows beside its numbers: locks, free memory, code size, symbols.

What is one number per kernel becomes a column of the table. Anything else is text below it.
A new column is an entry of `COLUMNS`; every other name is that of a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any, Final

from swingbot.core.report.table.code_size import SECTIONS
from swingbot.core.report.table.sheet import Columns, ColumnText, ColumnValues, Place
from swingbot.core.stats.free_memory import Sample, ZoneMemory, free_memory
from swingbot.core.text.plain import cut

# Metric -> column title. The share of samples is of cycles where there is a PMU (perf-profile). The
# others are shares of the time of all CPUs (lock-contention).
_SAMPLES: Final = "perf-profile.lock_slowpath"
_TIME: Final = {
    "lock-contention.spinning_pct": "spin %",
    "lock-contention.spinning_pct.zone": "zone lock %",
    "lock-contention.spinning_pct.lru": "LRU lock %",
}
_HUGE: Final = 9  # order of a huge page of 2 MiB
_SYMBOLS: Final = 10  # maximum number of symbols listed
_SELF: Final = "perf-profile.self."
_LEAST_SHARE: Final = 1.0  # minimum change of a symbol, in percentage points of samples


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSources:
    """Input besides the rows: samples, bytes of each section of each row's kernel, and what differs
    in the code of a pair (reference, row), as lines.
    """

    names: Sequence[str]  # by row
    samples: Sequence[Mapping[str, Any]]
    sizes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    growth: Mapping[tuple[int, int], Sequence[str]] = field(default_factory=dict)
    references: Sequence[tuple[int, int]] = ()  # (reference, row)
    measured: bool = True  # some boot came up


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`name` is the word of a request, `monitor` the program that provides it (None: every boot
    has it), `metrics` the samples to load, as SQL LIKE patterns.
    """

    name: str
    monitor: str | None = None
    metrics: tuple[str, ...] = ()
    make: Callable[[ColumnSources], Columns]


def column(name: str) -> Column:
    """Return the column of this name, which may be a metric."""
    return COLUMNS.get(name) or Column(name=name, metrics=(name,), make=partial(_metric, name))


def columns_of(names: Iterable[str], sources: ColumnSources) -> Columns:
    """Compute all columns, in order."""
    parts = [column(name).make(sources) for name in names]
    return Columns(
        values=[values for part in parts for values in part.values],
        texts=[text for part in parts for text in part.texts],
    )


def _metric(name: str, sources: ColumnSources) -> Columns:
    title = name.partition(".")[2] or name
    column = ColumnValues(title=cut(title, 18), values=_means(sources.samples, name))
    return Columns(values=[column] if column.values else [])


def _locks(sources: ColumnSources) -> Columns:
    sampled = _column("spin % of samples", sources, _SAMPLES)
    timed = [
        column for metric, title in _TIME.items() for column in _column(title, sources, metric)
    ]
    return Columns(
        values=[*sampled, *timed],
        texts=[
            ColumnText(heading=words)
            for words in _notes_on_locks(bool(sampled), bool(timed), sources.measured)
        ],
    )


def _column(title: str, sources: ColumnSources, metric: str) -> list[ColumnValues]:
    values = _means(sources.samples, metric)
    return [ColumnValues(title=title, values=values)] if values else []


def _notes_on_locks(sampled: bool, timed: bool, measured: bool) -> Iterable[str]:
    if sampled:
        yield (
            "spin % of samples: in the slow path of queued spin locks, by perf record: a share of"
            " cycles where there is a PMU. Elsewhere a timer takes the samples, and misses locks"
            " taken with interrupts disabled."
        )
    if timed:
        yield (
            "spin %: share of the time of all CPUs spent spinning, from perf lock contention. Zone"
            " and LRU locks are identified by their callers."
        )
    if measured and not sampled and not timed:
        yield (
            "Locks: not recorded by any run (needs a kernel configuration with tracing, and"
            " more than one CPU)."
        )


def _buddyinfo(sources: ColumnSources) -> Columns:
    by_arm: dict[tuple[Place, int], list[Sample]] = {}
    for sample in sources.samples:
        if sample["metric"].startswith("buddyinfo."):
            place = (sample["testbox"], sample["unit_job"])
            by_arm.setdefault((place, sample["arm"]), []).append(
                Sample(sample["boot"], sample["run"], sample["metric"], float(sample["value"]))
            )
    memory = {key: free_memory(samples) for key, samples in by_arm.items()}
    unusable: dict[tuple[Place | None, int], float] = {
        key: after.unusable[_HUGE]
        for key, zones in memory.items()
        if (zone := _largest(zones)) and (after := zone.after) and len(after.unusable) > _HUGE
    }
    below = [
        ColumnText(
            heading=f"Free blocks by order after the runs, on {place[0]}, {cut(place[1], 60)}:",
            lines=_blocks(place, memory, sources.names),
        )
        for place in dict.fromkeys(place for place, _ in memory)
    ]
    return Columns(
        values=[ColumnValues(title=f"unusable {_HUGE}", values=unusable)] if unusable else [],
        texts=below,
    )


def _largest(zones: Sequence[ZoneMemory]) -> ZoneMemory | None:
    """Return the zone with the most free pages after the runs."""

    def pages(zone: ZoneMemory) -> float:
        blocks = zone.after.blocks if zone.after else ()
        return sum(count * (1 << order) for order, count in enumerate(blocks))

    return max(zones, key=pages, default=None)


def _blocks(
    place: Place, memory: Mapping[tuple[Place, int], Sequence[ZoneMemory]], names: Sequence[str]
) -> list[str]:
    lines = []
    for (where, arm), zones in sorted(memory.items()):
        if where != place:
            continue
        lines.append(f"  {cut(names[arm], 60)}")
        lines += [
            f"    Node {zone.node}, zone {zone.zone:>8}"
            + "".join(f" {round(count):>5}" for count in zone.after.blocks)
            for zone in zones
            if zone.after is not None
        ]
    return lines


def _size(sources: ColumnSources) -> Columns:
    columns = [
        ColumnValues(
            title=part,
            values={
                (None, arm): float(sizes[part])
                for arm, sizes in sources.sizes.items()
                if part in sizes
            },
        )
        for part in SECTIONS
    ]
    return Columns(
        values=[column for column in columns if column.values], texts=list(_sizes_below(sources))
    )


def _sizes_below(sources: ColumnSources) -> Iterable[ColumnText]:
    for (reference, arm), lines in sources.growth.items():
        pair = f"{cut(sources.names[arm], 40)} against {cut(sources.names[reference], 40)}"
        if lines:
            yield ColumnText(heading=f"Code of {pair}:", lines=[f"  {line}" for line in lines])
        else:
            yield ColumnText(heading=f"Code of {pair}: nothing changed")


def _profile(sources: ColumnSources) -> Columns:
    shares: dict[tuple[Place, int], dict[str, float]] = {}
    for metric in {s["metric"] for s in sources.samples if s["metric"].startswith(_SELF)}:
        symbol = metric.removeprefix(_SELF)
        for (place, arm), share in _means(sources.samples, metric).items():
            if place is not None:
                shares.setdefault((place, arm), {})[symbol] = share
    below = []
    for place in dict.fromkeys(place for place, _ in shares):
        for reference, arm in sources.references:
            base, head = shares.get((place, reference), {}), shares.get((place, arm), {})
            moved = sorted(
                (
                    (head.get(one, 0.0) - base.get(one, 0.0), one)
                    for one in base.keys() | head.keys()
                ),
                key=lambda pair: (-abs(pair[0]), pair[1]),
            )
            lines = [
                f"  {by:>+7.2f}  {base.get(symbol, 0.0):>6.2f} {head.get(symbol, 0.0):>6.2f}"
                f"  {cut(symbol, 50)}"
                for by, symbol in moved[:_SYMBOLS]
                if abs(by) >= _LEAST_SHARE
            ]
            if lines:
                heading = (
                    f"Symbols of {cut(sources.names[arm], 40)} against"
                    f" {cut(sources.names[reference], 40)} on {place[0]}, points of samples:"
                )
                below.append(ColumnText(heading=heading, lines=lines))
    return Columns(texts=below)


def _means(
    samples: Iterable[Mapping[str, Any]], metric: str
) -> dict[tuple[Place | None, int], float]:
    """Return the mean of boot means of a metric by (place, arm)."""
    boots: dict[tuple[Place | None, int], dict[Any, list[float]]] = {}
    for sample in samples:
        if sample["metric"] == metric:
            key = ((sample["testbox"], sample["unit_job"]), sample["arm"])
            boots.setdefault(key, {}).setdefault(sample["boot"], []).append(float(sample["value"]))
    return {key: fmean(map(fmean, found.values())) for key, found in boots.items()}


COLUMNS: Final[Mapping[str, Column]] = {
    column.name: column
    for column in (
        Column(
            name="locks",
            monitor="lock-contention",
            metrics=("lock-contention.spinning_pct%", _SAMPLES),
            make=_locks,
        ),
        Column(name="buddyinfo", metrics=("buddyinfo.%",), make=_buddyinfo),
        Column(name="size", make=_size),
        Column(name="profile", monitor="perf-profile", metrics=(f"{_SELF}%",), make=_profile),
    )
}
