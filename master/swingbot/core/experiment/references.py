"""Which row of a table each row is compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from swingbot.core.experiment.layout import KERNEL
from swingbot.core.model.statuses import ReferenceRule

WORDS: Final[Mapping[ReferenceRule, str]] = {
    "above": "the row above",
    "first": "the first row",
    "base": "the base",
    "pair": "the base under the same conditions",
}

Axes = Mapping[str, str]  # a row's label on each axis; {} where there are none


def references(
    rule: ReferenceRule, rows: Sequence[Axes], missing: Collection[int] = ()
) -> list[tuple[int, int]]:
    """(reference, row) for each row that is compared, by their places in the table.

    `above`: the kernel before it under the same other conditions; where there is only one kernel,
    the row above. Rows that are `missing` are passed over: the next one is compared with the
    nearest row above that was measured. `first`: the first row. `base`: the first kernel, which all others are held
    against, under the conditions of the first row. `pair`: the first kernel under the row's own.
    """
    if rule == "above":
        return _above(rows, missing)
    if rule == "pair":
        return _pairs(rows)
    return [(0, place) for place in range(1, len(rows))]


def _above(rows: Sequence[Axes], missing: Collection[int]) -> list[tuple[int, int]]:
    one_kernel = len({axes.get(KERNEL) for axes in rows}) < 2
    last: dict[frozenset[tuple[str, str]], int] = {}
    found = []
    for place, axes in enumerate(rows):
        own = frozenset[tuple[str, str]]() if one_kernel else condition(axes)
        if own in last:
            found.append((last[own], place))
        if place not in missing or own not in last:
            last[own] = place
    return found


def _pairs(rows: Sequence[Axes]) -> list[tuple[int, int]]:
    base = rows[0].get(KERNEL) if rows else None
    at = {condition(axes): place for place, axes in enumerate(rows) if axes.get(KERNEL) == base}
    return [
        (at[condition(axes)], place)
        for place, axes in enumerate(rows)
        if axes.get(KERNEL) != base and condition(axes) in at
    ]


def condition(axes: Axes) -> frozenset[tuple[str, str]]:
    """Where a row lies on the axes besides the kernel."""
    return frozenset((name, label) for name, label in axes.items() if name != KERNEL)
