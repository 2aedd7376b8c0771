"""Free memory by zone and order on the pages of a boot and of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swingbot.core.stats.free_memory import PREFIXES, Sample, ZoneMemory, free_memory

from ..ports import Row

Place = tuple[str, str]  # testbox, unit job
__all__ = ["PREFIXES", "of_boot", "of_table"]


def of_boot(document: Row, samples: Iterable[Row]) -> list[Row]:
    """A table for each unit job of a boot: means over its runs."""
    by_place: dict[Place, dict[str, list[Sample]]] = {}
    for one in samples:
        place = (document["testbox"], one["unit_job"])
        by_place.setdefault(place, {}).setdefault("", []).append(
            Sample(document["id"], one["number"], one["metric"], one["value"])
        )
    return _tables(by_place)


def of_table(samples: Iterable[Row], names: Sequence[str]) -> list[Row]:
    """A table for each testbox and unit job: means over the boots of each kernel, by `names`."""
    by_place: dict[Place, dict[str, list[Sample]]] = {}
    for one in samples:
        place = (one["testbox"], one["unit_job"])
        by_place.setdefault(place, {name: [] for name in names})[names[one["arm"]]].append(
            Sample(one["boot"], one["run"], one["metric"], one["value"])
        )
    return _tables(by_place)


def _tables(samples: Mapping[Place, Mapping[str, Sequence[Sample]]]) -> list[Row]:
    tables = [
        {"testbox": testbox, "unit_job": unit_job, "zones": _zones(sides)}
        for (testbox, unit_job), sides in sorted(samples.items())
    ]
    return [table for table in tables if table["zones"]]


def _zones(sides: Mapping[str, Sequence[Sample]]) -> list[Row]:
    """Each zone of any side with a row for each side and moment, the first side first."""
    zones: dict[tuple[int, str], list[Row]] = {}
    for side, samples in sides.items():
        for zone in free_memory(samples):
            zones.setdefault((zone.node, zone.zone), []).extend(_rows(side, zone))
    return [
        {
            "node": node,
            "zone": zone,
            "orders": max(len(row["blocks"]) for row in rows),
            "rows": rows,
        }
        for (node, zone), rows in sorted(zones.items())
        if rows
    ]


def _rows(side: str, zone: ZoneMemory) -> list[Row]:
    return [
        {
            "side": side,
            "moment": word,
            "boots": zone.boots,
            "blocks": list(moment.blocks),
            "unusable": list(moment.unusable),
        }
        for word, moment in (("before", zone.before), ("after", zone.after))
        if moment is not None
    ]
