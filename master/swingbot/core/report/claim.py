"""What rows claim, in the words of a mail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.table.verdict import excluded
from swingbot.core.text.numbers import change, change_with_interval, count, times_the_spread

Row = Mapping[str, Any]  # the document of a row


def claim_of(row: ComparisonRow) -> str:
    """Return such as `12.0% worse`, or `3.1 times the spread between boots`."""
    if row.spread_changed and row.spread_ratio is not None:
        return times_the_spread(row.spread_ratio)
    return change(row.change_pct, row.better)


def claims_of(rows: Sequence[Row], named: int, *, intervals: bool = False) -> Iterator[str]:
    """Yield what changed, the worst and largest first, then what is excluded.

    Of each kind of change `named` rows are named, with their `intervals` if wanted.
    """
    for verdict in ("worse", "changed", "better"):
        found = [row for row in rows if row["verdict"] == verdict]
        found.sort(key=lambda row: -abs(row["change_pct"] or 0.0))
        claims = [
            f"{row['metric']} {_size(row, interval=intervals)} on {row['testbox']}"
            for row in found[:named]
        ]
        if claims:
            more = f" and {len(found) - named} more" if len(found) > named else ""
            yield f"{', '.join(claims)}{more}"
    if same := [row for row in rows if row["verdict"] == "same"]:
        bound = f" of {size} or more" if (size := excluded(same)) else ""
        testboxes = {row["testbox"] for row in same}
        where = f"{len(testboxes)} testboxes" if len(testboxes) > 1 else testboxes.pop()
        yield f"no change{bound} in {count(len(jobs_of(same)), 'test')} on {where}"


def _size(row: Row, *, interval: bool) -> str:
    if interval:
        return change_with_interval(row["change_pct"], row["interval_pct"], row["better"])
    return change(row["change_pct"], row["better"])


def jobs_of(rows: Iterable[Row]) -> set[str]:
    return {row["unit_job"] for row in rows}
