"""All that one commit does: the tests that it changed, better and worse, on each testbox and branch where it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core.stats.row import CHANGED
from swingbot.core.text.numbers import change

Row = Mapping[
    str, Any
]  # a comparison row as DESIGN section 8 words it; `tree` and `commit` may say where it was measured
_RANK: Final = {"worse": 0, "changed": 1, "better": 2}
_SHOWN: Final = (
    *("testbox", "label", "tree", "branch", "commit", "comparison"),
    *("unit", "better", "base", "head", "change_pct", "interval_pct", "level", "verdict"),
)
_MOST: Final = 200  # tests at most; an incident that changes more is known by the first ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """One test (unit job) and metric: the rows of every place where it was measured. `split`: better in one place and worse in another."""

    unit_job: str
    metric: str
    rows: tuple[Row, ...]

    @property
    def split(self) -> bool:
        return {"worse", "better"} <= {row["verdict"] for row in self.rows}

    @property
    def headline(self) -> bool:
        return any(row.get("headline") for row in self.rows)

    @property
    def worst(self) -> tuple[int, float]:
        """For sorting: what got worse first, then the larger change."""
        changed = [row for row in self.rows if row["verdict"] in CHANGED]
        return min((_RANK[row["verdict"]], -abs(row["change_pct"] or 0.0)) for row in changed)

    def to_json(self) -> dict[str, Any]:
        return {
            "unit_job": self.unit_job,
            "metric": self.metric,
            "split": self.split,
            "places": [
                {key: row.get(key) for key in _SHOWN} | {"words": words_of(row)}
                for row in self.rows
            ],
        }


def words_of(row: Row) -> str:
    """The change with its direction as a word; what is no change says so."""
    if row["verdict"] in CHANGED:
        return change(row["change_pct"], row["better"])
    return {"same": "no change", "unclear": "unclear"}.get(row["verdict"], "not comparable")


def impacts(rows: Iterable[Row], *, but: tuple[str, str] | None = None) -> list[Impact]:
    """Benchmark metrics that changed in at least one place, with every place where they were measured; `but` (unit job, metric) is left out.

    A test is told by its headline metrics; by others only where these did not change (a total of one flow is that flow once more).
    Split ones first (a reader must not see one half alone), then by the worst change.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.get("class", "benchmark") == "benchmark":
            groups.setdefault((row["unit_job"], row["metric"]), []).append(row)
    found = [
        Impact(unit_job=job, metric=metric, rows=_sorted(of))
        for (job, metric), of in groups.items()
        if (job, metric) != but
    ]
    changed = [impact for impact in found if any(row["verdict"] in CHANGED for row in impact.rows)]
    told = {impact.unit_job for impact in changed if impact.headline}
    shown = [impact for impact in changed if impact.headline or impact.unit_job not in told]
    return sorted(shown, key=lambda i: (not i.split, *i.worst, i.unit_job, i.metric))[:_MOST]


def _sorted(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(
        sorted(
            rows,
            key=lambda row: (_RANK.get(row["verdict"], 3), row["testbox"], row.get("tree") or ""),
        )
    )
