"""Select the rows of a comparison that are swings, the strongest of them, and pair evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import Direction
from swingbot.core.stats.compare import BootRuns
from swingbot.core.thresholds import EXPLAINED_SHARE


def swings(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Return the swings: headline metrics of a unit job whose verdict has a direction."""
    return [row for row in rows if row.headline and row.changed and row.change_pct is not None]


def strongest(rows: Sequence[ComparisonRow]) -> ComparisonRow:
    """Return the swing that is easiest to bisect: the largest multiple of its minimum effect.

    Ties are resolved by name.
    """
    return min(
        rows,
        key=lambda row: (-_times_its_minimum(row), row.key),
    )


def _times_its_minimum(row: ComparisonRow) -> float:
    assert row.change_pct is not None and row.min_effect_pct is not None, "a swing has both"
    return abs(row.change_pct) / row.min_effect_pct


def explains(own: ComparisonRow | None, whole_pct: float) -> bool:
    """Return True if the culprit's `own` row explains a swing of `whole_pct` percent over the
    branch.
    """
    if own is None or own.change_pct is None or not own.changed:
        return False
    return bool(
        own.change_pct * whole_pct > 0 and abs(own.change_pct) >= EXPLAINED_SHARE * abs(whole_pct)
    )


def pair_differences(base: Sequence[BootRuns], head: Sequence[BootRuns], form: str) -> list[float]:
    """Return head against base for each k with values on both sides, by k.

    Log ratios of boot means, or shares of the mean magnitude.
    """
    means = [
        {boot.k: math.fsum(boot.values) / len(boot.values) for boot in side if boot.values}
        for side in (base, head)
    ]
    ks = sorted(means[0].keys() & means[1].keys())
    pairs = [
        (means[0][k], means[1][k])
        for k in ks
        if math.isfinite(means[0][k]) and math.isfinite(means[1][k])
    ]
    if form == "ratio" and all(min(pair) > 0 for pair in pairs):
        return [math.log(h / b) for b, h in pairs]
    unit = max((abs(v) for pair in pairs for v in pair), default=0.0) or 1.0
    return [(h - b) / unit for b, h in pairs]


def direction_of(effect: float, better: str | None) -> Direction:
    """Return the direction of a change with this sign."""
    if better is None:
        return "changed"
    return "better" if (effect > 0) == (better == "higher") else "worse"
