"""Select the rows of a comparison that are swings, the strongest of them, and pair evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swingbot.core.bisect.thresholds import SPREAD_PAIRS, SPREAD_STEP_ALPHA
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import Direction
from swingbot.core.stats.compare import BootRuns
from swingbot.core.stats.evidence import Answer
from swingbot.core.stats.path_share import pair_odds
from swingbot.core.stats.spread_change import spread_change
from swingbot.core.text.numbers import two_digits
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


def path_odds(
    base: Sequence[BootRuns], head: Sequence[BootRuns], form: str, least: float
) -> list[float]:
    """Return the evidence of far-off runs after each of the pairs of `pair_differences`; `least` is
    the minimum effect. Empty if the runs cannot be mapped to the scale of effects."""
    sides = [{b.k: [float(v) for v in b.values] for b in side if b.values} for side in (base, head)]
    values = [v for side in sides for runs in side.values() for v in runs]
    ks = sorted(sides[0].keys() & sides[1].keys())
    if not ks or not all(map(math.isfinite, values)):
        return []
    ratio = form == "ratio" and min(values) > 0
    unit = math.fsum(map(abs, values)) / len(values) or 1.0
    scaled = [
        [np.log(side[k]) if ratio else np.array(side[k]) / unit for k in ks] for side in sides
    ]
    return pair_odds(scaled[0], scaled[1], least)


def direction_of(effect: float, better: str | None) -> Direction:
    """Return the direction of a change with this sign."""
    if better is None:
        return "changed"
    return "better" if (effect > 0) == (better == "higher") else "worse"


def direction_of_spread(times: float, better: str | None) -> Direction:
    """Return the direction of a change of the spread between boots by this factor."""
    if better is None:
        return "changed"
    return "worse" if times > 1.0 else "better"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadDecision:
    """What pairs say of a suspected change of the spread between boots."""

    answer: Answer
    pairs: int
    mean: float  # change of the level: log ratio, or share
    spread_ratio: float | None  # head's spread over base's, if shown
    reason: str


def decide_spread(
    base: Sequence[BootRuns], head: Sequence[BootRuns], form: str, *, wider: bool
) -> SpreadDecision:
    """Decide whether the boots of head spread further than those of base (`wider`), or less far.

    Their spreads are compared after each number of pairs in `SPREAD_PAIRS`, at `SPREAD_STEP_ALPHA`
    each. Depends only on the boots, not on when it is called.
    """
    sides = [
        {boot.k: math.fsum(boot.values) / len(boot.values) for boot in side if boot.values}
        for side in (base, head)
    ]
    ks = sorted(sides[0].keys() & sides[1].keys())
    positive = form == "ratio" and all(value > 0 for side in sides for value in side.values())
    levels = [[math.log(side[k]) if positive else side[k] for k in ks] for side in sides]
    mean = math.fsum(pair_differences(base, head, form)) / max(len(ks), 1)
    for pairs in (pairs for pairs in SPREAD_PAIRS if pairs <= len(ks)):
        ratio = spread_change(levels[0][:pairs], levels[1][:pairs], SPREAD_STEP_ALPHA)
        if ratio is not None and (ratio > 1.0) == wider:
            return SpreadDecision(
                answer="accept",
                pairs=pairs,
                mean=mean,
                spread_ratio=ratio,
                reason=f"{two_digits(ratio)} times the spread between boots in {pairs} pairs",
            )
    more = len(ks) < SPREAD_PAIRS[-1]
    return SpreadDecision(
        answer="more" if more else "reject",
        pairs=len(ks),
        mean=mean,
        spread_ratio=None,
        reason=(
            f"{len(ks)} pairs show no change of the spread between boots" + (" yet" if more else "")
        ),
    )
