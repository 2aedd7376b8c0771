"""The whole effect of one commit: each test that it changed, on each testbox and branch
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow

_RANK: Final = {"worse": 0, "changed": 1, "better": 2}
_MOST: Final = 200  # tests at most; the first ones describe an incident that changes more


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """A row and where it was measured.

    `document` is the stored row with its place, for the page.
    """

    row: ComparisonRow
    tree: str = ""
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """One test (unit job) and metric in every place where it was measured.

    `split`: better in one place and worse in another.
    """

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
        """Sort key: regressions first, then by size."""
        changed = [place.row for place in self.places if place.row.changed]
        return min((_RANK[row.verdict], -abs(row.change_pct or 0.0)) for row in changed)


def impacts(measured: Iterable[MeasuredRow], *, but: tuple[str, str] | None = None) -> list[Impact]:
    """Benchmark metrics that changed in at least one place, with every place where they were
    measured.

    `but` (unit job, metric) is left out. A test is represented by its headline metrics, by others
    only if those did not change, and never by an alias of a metric that was measured too.
    Split ones come first (a reader must not see one half alone), then the worst change.
    """
    groups: dict[tuple[str, str], list[MeasuredRow]] = {}
    for one in _without_aliases(measured):
        if one.row.klass in (None, "benchmark"):
            groups.setdefault((one.row.unit_job, one.row.metric), []).append(one)
    measured_impacts = [
        Impact(unit_job=job, metric=metric, places=_sorted(of))
        for (job, metric), of in groups.items()
        if (job, metric) != but
    ]
    changed = [impact for impact in measured_impacts if impact.changed]
    with_headline = {impact.unit_job for impact in changed if impact.headline}
    shown = [
        impact for impact in changed if impact.headline or impact.unit_job not in with_headline
    ]
    return sorted(shown, key=lambda i: (not i.split, *i.worst, i.unit_job, i.metric))[:_MOST]


def _without_aliases(measured: Iterable[MeasuredRow]) -> list[MeasuredRow]:
    given = list(measured)
    present = {(one.tree, one.row.key) for one in given}
    return [
        one
        for one in given
        if one.row.alias_of is None or (one.tree, one.row.original) not in present
    ]


def _sorted(measured: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
    return tuple(
        sorted(
            measured,
            key=lambda one: (_RANK.get(one.row.verdict, 3), one.row.testbox, one.tree),
        )
    )
