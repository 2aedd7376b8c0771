"""Changes from parsing a raw result again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class ChangedValues(NamedTuple):
    """Values of one metric of one run, before and after; empty if there were or are none."""

    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def kind(self) -> Literal["added", "gone", "changed"]:
        if not self.old:
            return "added"
        return "changed" if self.new else "gone"


def changes(
    old: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]]
) -> dict[str, ChangedValues]:
    """Metrics whose values differ in any bit, by name."""
    both = {
        metric: ChangedValues(tuple(old.get(metric, ())), tuple(new.get(metric, ())))
        for metric in sorted({*old, *new})
    }
    return {metric: change for metric, change in both.items() if change.old != change.new}
