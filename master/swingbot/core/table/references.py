"""The reference of each row of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from swingbot.core.model.records import Arm
from swingbot.core.model.statuses import Reference
from swingbot.core.table.layout import KERNEL

# The rules; any other reference is the name of a row.
RULES: Final[Mapping[Reference, str]] = {
    "above": "the row above",
    "first": "the first row",
    "base": "the base",
    "pair": "the base under the same conditions",
}

Axes = Mapping[str, str]  # a row's label on each axis; {} without axes


def in_words(reference: Reference) -> str:
    """Return a reference as a phrase: `the row above`, `row no_merge`."""
    return RULES.get(reference, f"row {reference}")


def references(
    reference: Reference,
    rows: Sequence[Axes],
    missing: Collection[int] = (),
    *,
    names: Sequence[str] = (),
) -> list[tuple[int, int]]:
    """Return (reference, row) indices for each row that is compared.

    `above`: the previous kernel under the same other conditions, or the row above if there is only
    one kernel. `missing` rows are skipped: the next row is compared with the nearest row above that
    was measured. `first`: the first row. `base`: the first kernel under the conditions of the first
    row. `pair`: the first kernel under the row's own conditions. Anything else is the name of the
    row that all others are compared with; if it is not in `names`, nothing is compared.
    """
    if reference == "above":
        return _above(rows, missing)
    if reference == "pair":
        return _pairs(rows)
    if reference not in RULES and reference not in names:
        return []
    common = 0 if reference in RULES else names.index(reference)
    return [(common, index) for index in range(len(rows)) if index != common]


def references_of(
    reference: Reference, arms: Sequence[Arm], missing: Collection[int] = ()
) -> list[tuple[int, int]]:
    """As `references`, of arms."""
    names = [arm.name for arm in arms]
    return references(reference, [arm.axes for arm in arms], missing, names=names)


def _above(rows: Sequence[Axes], missing: Collection[int]) -> list[tuple[int, int]]:
    one_kernel = len({axes.get(KERNEL) for axes in rows}) < 2
    last: dict[frozenset[tuple[str, str]], int] = {}
    pairs = []
    for index, axes in enumerate(rows):
        own = frozenset[tuple[str, str]]() if one_kernel else condition(axes)
        if own in last:
            pairs.append((last[own], index))
        if index not in missing or own not in last:
            last[own] = index
    return pairs


def _pairs(rows: Sequence[Axes]) -> list[tuple[int, int]]:
    base = rows[0].get(KERNEL) if rows else None
    at = {condition(axes): index for index, axes in enumerate(rows) if axes.get(KERNEL) == base}
    return [
        (at[condition(axes)], index)
        for index, axes in enumerate(rows)
        if axes.get(KERNEL) != base and condition(axes) in at
    ]


def condition(axes: Axes) -> frozenset[tuple[str, str]]:
    """Return the position of a row on the axes other than the kernel."""
    return frozenset((name, label) for name, label in axes.items() if name != KERNEL)
