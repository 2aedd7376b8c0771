"""The reference of each row of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from swingbot.core.model.statuses import ReferenceRule
from swingbot.core.table.layout import KERNEL

WORDS: Final[Mapping[ReferenceRule, str]] = {
    "above": "the row above",
    "first": "the first row",
    "base": "the base",
    "pair": "the base under the same conditions",
}

Axes = Mapping[str, str]  # a row's label on each axis; {} without axes


def references(
    rule: ReferenceRule, rows: Sequence[Axes], missing: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Return (reference, row) indices for each row that is compared.

    `above`: the previous kernel under the same other conditions, or the row above if there is only
    one kernel. `missing` rows are skipped: the next row is compared with the nearest row above that
    was measured. `first`: the first row. `base`: the first kernel under the conditions of the first
    row. `pair`: the first kernel under the row's own conditions.
    """
    if rule == "above":
        return _above(rows, missing)
    if rule == "pair":
        return _pairs(rows)
    return [(0, place) for place in range(1, len(rows))]


def _above(rows: Sequence[Axes], missing: Collection[int]) -> list[tuple[int, int]]:
    one_kernel = len({axes.get(KERNEL) for axes in rows}) < 2
    last: dict[frozenset[tuple[str, str]], int] = {}
    pairs = []
    for place, axes in enumerate(rows):
        own = frozenset[tuple[str, str]]() if one_kernel else condition(axes)
        if own in last:
            pairs.append((last[own], place))
        if place not in missing or own not in last:
            last[own] = place
    return pairs


def _pairs(rows: Sequence[Axes]) -> list[tuple[int, int]]:
    base = rows[0].get(KERNEL) if rows else None
    at = {condition(axes): place for place, axes in enumerate(rows) if axes.get(KERNEL) == base}
    return [
        (at[condition(axes)], place)
        for place, axes in enumerate(rows)
        if axes.get(KERNEL) != base and condition(axes) in at
    ]


def condition(axes: Axes) -> frozenset[tuple[str, str]]:
    """Return the position of a row on the axes other than the kernel."""
    return frozenset((name, label) for name, label in axes.items() if name != KERNEL)
