"""All that one commit does: the tests that it changed, better and worse, on each testbox and branch where it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.text.numbers import change

_RANK: Final = {"worse": 0, "changed": 1, "better": 2}
_MOST: Final = 200  # tests at most; an incident that changes more is known by the first ones


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """A row and where it was measured. `document` is what the page shows of it: the row as it was read, with its place."""

    row: ComparisonRow
    tree: str = ""
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """One test (unit job) and metric in every place where it was measured. `split`: better in one place and worse in another."""

    unit_job: str
    metric: str
    places: tuple[MeasuredRow, ...]

    @property
    def changed(self) -> bool:
        return any(place.row.changed for place in self.places)

    @property
    def split(self) -> bool:
        return {"worse", "better"} <= {place.row.verdict for place in self.places}

    @property
    def headline(self) -> bool:
        return any(place.row.headline for place in self.places)

    @property
    def worst(self) -> tuple[int, float]:
        """For sorting: what got worse first, then the larger change."""
        changed = [place.row for place in self.places if place.row.changed]
        return min((_RANK[row.verdict], -abs(row.change_pct or 0.0)) for row in changed)


def words_of(row: ComparisonRow) -> str:
    """The change with its direction as a word; what is no change says so."""
    if row.changed:
        return change(row.change_pct, row.better)
    return {"same": "no change", "unclear": "unclear"}.get(row.verdict, "not comparable")


def impacts(measured: Iterable[MeasuredRow], *, but: tuple[str, str] | None = None) -> list[Impact]:
    """Benchmark metrics that changed in at least one place, with every place where they were measured; `but` (unit job, metric) is left out.

    A test is told by its headline metrics, by others only where these did not change, and by no
    alias of a metric that was measured beside it.
    Split ones first (a reader must not see one half alone), then by the worst change.
    """
    groups: dict[tuple[str, str], list[MeasuredRow]] = {}
    for one in _without_aliases(measured):
        if one.row.klass in (None, "benchmark"):
            groups.setdefault((one.row.unit_job, one.row.metric), []).append(one)
    found = [
        Impact(unit_job=job, metric=metric, places=_sorted(of))
        for (job, metric), of in groups.items()
        if (job, metric) != but
    ]
    changed = [impact for impact in found if impact.changed]
    told = {impact.unit_job for impact in changed if impact.headline}
    shown = [impact for impact in changed if impact.headline or impact.unit_job not in told]
    return sorted(shown, key=lambda i: (not i.split, *i.worst, i.unit_job, i.metric))[:_MOST]


def _without_aliases(measured: Iterable[MeasuredRow]) -> list[MeasuredRow]:
    given = list(measured)
    there = {(one.tree, one.row.key) for one in given}
    return [
        one
        for one in given
        if one.row.alias_of is None or (one.tree, one.row.original) not in there
    ]


def _sorted(measured: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
    return tuple(
        sorted(
            measured,
            key=lambda one: (_RANK.get(one.row.verdict, 3), one.row.testbox, one.tree),
        )
    )
