"""Stage 1 of detection: select the metrics of a new tip that justify fresh boots.

Cheap, and sometimes wrong by design: metrics that pass are only suspected. Formulas:
docs/statistics.md, "From a swing to a bisection".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from swingbot.core.incident.level import beyond, in_percent, log_ratio
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import SwingSource
from swingbot.core.stats.history import baseline, sd_between
from swingbot.core.stats.moments import stddev
from swingbot.core.stats.rows import Rule
from swingbot.core.stats.tip_spreads import latest_change, tip_spread
from swingbot.core.text.numbers import two_digits
from swingbot.core.thresholds import (
    CREEP_EFFICIENCY,
    CREEP_P_SHARE,
    CREEP_TIPS,
    SCREEN_ANCHOR_TIPS,
    SCREEN_BASE_P,
    SCREEN_BEFORE_SHARE,
    SCREEN_BOOTS,
    SCREEN_FEWEST_TIPS,
    SCREEN_FIRST_P,
    SCREEN_FRESH_SHARE,
    SCREEN_MIDDLE_SHARE,
    SCREEN_MORE_BOOTS,
    SCREEN_P,
    SCREEN_TIPS,
    SCREEN_WHOLE_P,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedSwing:
    """A conspicuous metric of a tip. `effect` is a signed log ratio (or share)."""

    source: SwingSource
    effect: float
    p: float
    # creep and spread: number of tips back; an index into the levels (spreads), latest first
    anchor: int | None = None
    times: float | None = None  # spread: that of the boots, in multiples of what it was
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TipBoots:
    """The boots of an earlier tip; `stddev` is between boots, None for a single one."""

    mean: float
    stddev: float | None
    boots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricHistory:
    """History of a metric on a branch before a tip."""

    levels: Sequence[float] = ()  # of earlier tips, latest first
    # Spreads between boots of earlier tips and their means, latest first; they may go back further
    spreads: Sequence[TipBoots] = ()
    min_effect: float  # log ratio (or share)
    # Boots per side of every tip; later boots test what these raised. None: boots are repeatable.
    first: int | None = None
    day_sd: float = 0.0  # spread between days, from the testbox's noise record; 0: not known


def suspect(row: ComparisonRow, tip: Sequence[float], past: MetricHistory) -> SuspectedSwing | None:
    """Return a suspected swing of a tip; `row` compares it with its base, `tip` are boot means by
    k."""
    if row.changed and row.change_pct is not None and _sure(row, past):
        effect = log_ratio(row.change_pct)
        why = f"{row.change_pct:+.2f} % against its base, {row.verdict}"
        return SuspectedSwing(source="base", effect=effect, p=0.0, why=why)
    if row.verdict == "invalid":
        return None
    return against_levels(tip, past) or against_spreads(tip, past)


def boots_wanted(
    row: ComparisonRow, tip: Sequence[float], boots: int, past: MetricHistory
) -> int | None:
    """Return the boots per side that a tip needs in total before it is judged; None if enough.

    `row` is judged at `screen_rule`. An unclear row gets the boots that settle it, within a
    budget. A difference after the first boots gets `SCREEN_MORE_BOOTS` before any pair is booted.
    """
    if row.verdict == "unclear":
        more = boots_to_extend(boots, row.more_boots, row.effect, past.min_effect)
        if more is not None:
            return more
    if past.first is None or boots != past.first or row.verdict == "invalid":
        return None
    looks = (against_history, against_anchors)
    odd = row.changed or any(look(tip, past, SCREEN_FIRST_P) is not None for look in looks)
    return boots + SCREEN_MORE_BOOTS if odd else None


def screen_rule(rule: Rule, past: MetricHistory) -> Rule:
    """Return the rule for a tip against its base; repeated looks at an unclear row share its P."""
    return replace(rule, alpha=min(rule.alpha, SCREEN_BASE_P)) if past.first is not None else rule


def _sure(row: ComparisonRow, past: MetricHistory) -> bool:
    return past.first is None or row.p is None or row.p < SCREEN_BASE_P


def against_levels(tip: Sequence[float], past: MetricHistory) -> SuspectedSwing | None:
    """Compare a tip's boot means with earlier tips: `against_history`, then `against_anchors`.

    If there are later boots, the first ones raise the alarm and the later ones test it: all boots
    together must still raise it, and the later ones alone must show `SCREEN_FRESH_SHARE` of it.
    """
    seen = tip[: past.first]
    fresh = tip[len(seen) :]
    for look in (against_history, against_anchors):
        if not fresh:
            alarm = look(tip, past, SCREEN_P)
        else:
            alarm = look(seen, past, SCREEN_FIRST_P)
            if alarm is not None:
                alarm = _tested(alarm, look(tip, past, SCREEN_WHOLE_P), seen, fresh)
        if alarm is not None:
            return alarm
    return None


def _tested(
    alarm: SuspectedSwing,
    whole: SuspectedSwing | None,
    seen: Sequence[float],
    fresh: Sequence[float],
) -> SuspectedSwing | None:
    """Return the alarm of all boots if the boots that did not raise it show enough of it."""
    first, later = _scaled([seen, fresh])
    remaining = alarm.effect + float(later.mean() - first.mean())
    enough = remaining * alarm.effect > 0 and abs(remaining) >= SCREEN_FRESH_SHARE * abs(
        alarm.effect
    )
    return whole if whole is not None and whole.effect * alarm.effect > 0 and enough else None


def against_history(
    tip: Sequence[float], past: MetricHistory, level: float = SCREEN_P
) -> SuspectedSwing | None:
    """Compare the tip's mean with the level expected from the last tips; None if P >= `level`.

    The median boot must deviate too, by at least half the minimum, so that a single outlier raises
    no alarm.
    """
    min_effect = past.min_effect
    recent = past.levels[:SCREEN_TIPS]
    if len(recent) < SCREEN_FEWEST_TIPS or not tip:
        return None
    before, now = _scaled([recent, tip])
    expected = baseline(before[::-1])
    mean, middle = float(now.mean()), float(np.median(now))
    effect, ahead = mean - expected.median, mean - expected.centre
    p = expected.p(min(abs(ahead), abs(middle - expected.centre)))
    if (
        p >= level
        or abs(effect) < min_effect
        or min(effect * ahead, effect * (middle - expected.median)) <= 0
        or effect * (middle - expected.centre) <= 0
        or abs(middle - expected.median) < SCREEN_MIDDLE_SHARE * min_effect
    ):
        return None
    return SuspectedSwing(
        source="history",
        effect=effect,
        p=p,
        why=f"{in_percent(effect)} against the median of the last {len(before)} tips, p = {p:.2g}",
    )


def against_anchors(
    tip: Sequence[float], past: MetricHistory, level: float = SCREEN_P
) -> SuspectedSwing | None:
    """Detect small steps that add up, by comparing the tip with the tips `CREEP_TIPS` back.

    The nearest one that shows a change is used, as its range is the shortest. The median boot must
    show the change too, and the tip before half of it. The noise is that of tips so far apart,
    without a straight line through all of them.
    """
    levels = past.levels
    if not tip:
        return None
    for back in CREEP_TIPS:
        if len(levels) < back:
            return None
        older, now = _scaled([levels[: max(CREEP_TIPS)], tip])
        # A few neighbours on the near side steady the level of the anchor, which may be off by
        # chance.
        around = older[back - SCREEN_ANCHOR_TIPS : back]
        anchor = float(np.median(around))
        effect, middle, before = (float(v) - anchor for v in (now.mean(), np.median(now), older[0]))
        sides = min(effect * middle, effect * before)
        near = min(abs(effect), abs(middle), abs(before) / SCREEN_BEFORE_SHARE)
        sd = math.hypot(
            sd_between(older[::-1], back) * math.sqrt((1.0 + math.pi / 2 / len(around)) / 2.0),
            math.sqrt(2.0) * past.day_sd,
        )
        p = float(2.0 * stdtr(max(CREEP_EFFICIENCY * len(older), 3.0), -near / sd))
        if p < level * CREEP_P_SHARE and abs(effect) >= past.min_effect and sides > 0:
            return SuspectedSwing(
                source="creep",
                effect=effect,
                p=p,
                anchor=back - 1,
                why=f"{in_percent(effect)} against the tip {back} back, p = {p:.2g}",
            )
    return None


def against_spreads(tip: Sequence[float], past: MetricHistory) -> SuspectedSwing | None:
    """Compare the spread between boots of the last tips with that of the tips before them.

    The place of the change is not certain: its anchor is half as many tips further back. Boots of
    a repeatable testbox do not spread by chance.
    """
    if past.first is None:
        return None
    known = [
        (back, tip_spread(boots.mean, boots.stddev, boots.boots), boots.mean)
        for back, boots in enumerate(past.spreads)
    ][::-1]
    tips = [(back, spread, mean) for back, spread, mean in known if spread is not None]
    mean = math.fsum(tip) / max(len(tip), 1)
    own = tip_spread(mean, stddev(tip) if len(tip) > 1 else None, len(tip))
    if own is None:
        return None
    change = latest_change([*(spread for _, spread, _ in tips), own])
    if change is None:
        return None
    late = len(tips) + 1 - change.at
    anchor, _, _ = tips[max(0, change.at - 1 - late // 2)]
    older, now = _scaled([[level for _, _, level in tips[: change.at]], [mean]])
    effect = float(now[0] - np.median(older))
    return SuspectedSwing(
        source="spread",
        effect=effect,
        p=change.p,
        anchor=anchor,
        times=change.times,
        why=(
            f"{two_digits(change.times)} times the spread between boots in the last {late} tips, p"
            f" = {change.p:.1g}; {in_percent(effect)} against the median of the tips before"
        ),
    )


def against_expected(
    effect: float, expected: Sequence[float], min_effect: float
) -> SuspectedSwing | None:
    """Compare a tip whose range has expected changes (log ratios) with the expected level.

    None if the remaining change is not relevant.
    """
    rest = beyond(effect, expected)
    if abs(rest) < min_effect:
        return None
    why = (
        f"{in_percent(effect)} against its base, {in_percent(rest)} against the level that is"
        " expected"
    )
    return SuspectedSwing(source="expected", effect=rest, p=0.0, why=why)


def boots_to_extend(
    boots: int, more: int | None, effect: float | None, min_effect: float
) -> int | None:
    """Return the boots per side for an unclear row in total; None if beyond the budget.

    As many as would settle it, and at least half as many again.
    """
    if (
        effect is None
        or more is None
        or abs(effect) < min_effect
        or boots >= SCREEN_BOOTS
        or boots + more > SCREEN_BOOTS
    ):
        return None
    return min(SCREEN_BOOTS, max(boots + more, boots + math.ceil(boots / 2)))


def _scaled(
    groups: Sequence[Sequence[float]],
) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    values = [np.asarray(g, dtype=np.float64) for g in groups]
    if min(float(v.min()) for v in values) > 0:
        return [np.log(v) for v in values]
    unit = float(np.mean(np.abs(np.concatenate(values)))) or 1.0
    return [v / unit for v in values]
