"""What a row claims, in the words of a mail: a change of the level, or of the spread."""

from __future__ import annotations

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.text.numbers import change, times_the_spread


def claim_of(row: ComparisonRow) -> str:
    """Return such as `12.0% worse`, or `3.1 times the spread between boots`."""
    if row.spread_changed and row.spread_ratio is not None:
        return times_the_spread(row.spread_ratio)
    return change(row.change_pct, row.better)
