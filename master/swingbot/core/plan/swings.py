"""Which rows of a comparison are swings that somebody should hear of, and which one to bisect first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Row = Mapping[str, Any]  # a comparison row as DESIGN section 8 words it, with `headline` and `min_effect_pct`

# A commit explains a swing of the whole branch if it alone makes at least this share of it: less, and another commit has a part in it.
EXPLAINED_SHARE: Final = 0.6


def swings(rows: Sequence[Row]) -> list[Row]:
    """Rows that count as swings: the headline metric of a unit job, and a verdict with a direction."""
    return [row for row in rows if row.get("headline") and row["verdict"] in ("worse", "better", "changed") and row["change_pct"] is not None]


def strongest(rows: Sequence[Row]) -> Row:
    """The row that is easiest to bisect: its effect is the most times its metric's minimum; ties go by name."""
    return min(rows, key=lambda row: (-abs(row["change_pct"]) / row["min_effect_pct"], row["testbox"], row["unit_job"], row["metric"]))


def explains(own: Row | None, whole_pct: float) -> bool:
    """Whether the culprit's `own` row accounts for a swing of `whole_pct` per cent between the ends of the branch."""
    if own is None or own["change_pct"] is None or own["verdict"] not in ("worse", "better", "changed"):
        return False
    return bool(own["change_pct"] * whole_pct > 0 and abs(own["change_pct"]) >= EXPLAINED_SHARE * abs(whole_pct))
