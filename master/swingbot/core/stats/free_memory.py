"""Free memory by zone and order from `buddyinfo` samples, of one boot or averaged over boots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from swingbot_jobs.reading import buddy
from swingbot_jobs.reading.buddy import Zone

PREFIXES: Final = {"buddyinfo.before.": "before", "buddyinfo.after.": "after"}


class Sample(NamedTuple):
    """One value of one run. `boot` and `run` only need to identify boots and runs."""

    boot: str | int
    run: str | int
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A zone immediately before or after the runs. Element i of each list is for order i.

    `blocks` are free blocks of 2^i pages. `unusable` is the share of the free pages in smaller
    blocks (buddy.unusable_index).
    """

    blocks: tuple[float, ...]
    unusable: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneMemory:
    """One zone of one node; `boots` is the number of boots averaged. None: not in any run."""

    node: int
    zone: str
    boots: int
    before: Moment | None
    after: Moment | None


def free_memory(samples: Iterable[Sample]) -> list[ZoneMemory]:
    """Return the mean over boots of each boot's mean over its runs, by node and zone.

    Other metrics are ignored. A zone whose number of orders differs between runs is left out, as
    these are different kernels. Empty without `buddyinfo` samples.
    """
    snapshots: dict[tuple[str, str | int], dict[str | int, dict[str, float]]] = {}
    for sample in samples:
        for prefix, moment in PREFIXES.items():
            if sample.metric.startswith(prefix):
                run = snapshots.setdefault((moment, sample.boot), {}).setdefault(sample.run, {})
                run[sample.metric.removeprefix(prefix)] = sample.value
    of_boots: dict[Zone, dict[str, list[Moment]]] = {}
    for (moment, _), runs in snapshots.items():
        for zone, blocks in _by_zone(runs.values()).items():
            one = _mean([_moment(counts) for counts in blocks])
            of_boots.setdefault(zone, {}).setdefault(moment, []).extend([one] if one else [])
    return [_zone(zone, moments) for zone, moments in sorted(of_boots.items())]


def _by_zone(runs: Iterable[Mapping[str, float]]) -> dict[Zone, list[list[float]]]:
    zones: dict[Zone, list[list[float]]] = {}
    for run in runs:
        for zone, blocks in buddy.by_zone(run).items():
            zones.setdefault(zone, []).append(blocks)
    return zones


def _moment(blocks: Sequence[float]) -> Moment:
    unusable = [buddy.unusable_index(blocks, order) for order in range(len(blocks))]
    return Moment(blocks=tuple(blocks), unusable=tuple(unusable))


def _mean(moments: Sequence[Moment]) -> Moment | None:
    if len({len(moment.blocks) for moment in moments}) != 1:
        return None
    return Moment(
        blocks=_means([moment.blocks for moment in moments]),
        unusable=_means([moment.unusable for moment in moments]),
    )


def _means(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))


def _zone(zone: Zone, moments: Mapping[str, Sequence[Moment]]) -> ZoneMemory:
    return ZoneMemory(
        node=zone.node,
        zone=zone.zone,
        boots=max(len(boots) for boots in moments.values()),
        before=_mean(moments.get("before", [])),
        after=_mean(moments.get("after", [])),
    )
