"""Stage 1 of detection: which metrics of a new tip look different enough that fresh boots are worth their time.

Cheap, and wrong now and then by design: what passes here is only suspected. Formulas: docs/statistics.md, "From a swing to a bisection".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from swingbot.core.incident.level import beyond
from swingbot.core.model.statuses import SwingSource
from swingbot.core.thresholds import (
    CREEP_TIPS,
    MAD_EFFICIENCY,
    SCREEN_BOOTS,
    SCREEN_FEWEST_TIPS,
    SCREEN_MIDDLE_SHARE,
    SCREEN_P,
    SCREEN_TIPS,
    SPREAD_FLOOR,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A metric of a tip that looks different. `effect` is a log ratio (or share), its sign that of the change."""

    source: SwingSource
    effect: float
    p: float
    anchor: int | None = (
        None  # creep: how many tips back; an index into the levels, the latest first
    )
    why: str


def against_history(
    tip: Sequence[float], levels: Sequence[float], min_effect: float
) -> Alarm | None:
    """The mean of the tip's boot means against the last tips' levels (the latest first): median and median absolute deviation.

    The middle boot must be as far off, and show at least half the minimum, so that one wild boot raises no alarm.
    """
    recent = levels[:SCREEN_TIPS]
    if len(recent) < SCREEN_FEWEST_TIPS or not tip:
        return None
    past, now = _scaled([recent, tip])
    centre = float(np.median(past))
    sd = max(1.4826 * float(np.median(np.abs(past - centre))), SPREAD_FLOOR)
    effect, middle = float(now.mean()) - centre, float(np.median(now)) - centre
    near = min(abs(effect), abs(middle))
    p = _p(near / (sd * math.sqrt(1.0 + math.pi / 2 / len(past))), MAD_EFFICIENCY * len(past))
    if (
        p >= SCREEN_P
        or abs(effect) < min_effect
        or middle * effect <= 0
        or abs(middle) < SCREEN_MIDDLE_SHARE * min_effect
    ):
        return None
    return Alarm(
        source="history",
        effect=effect,
        p=p,
        why=f"{_pct(effect)} against the median of the last {len(past)} tips, p = {p:.2g}",
    )


def against_anchors(
    tip: Sequence[float], levels: Sequence[float], min_effect: float
) -> Alarm | None:
    """Small steps that add up: the tip against the tips `CREEP_TIPS` back. The nearest one that shows it, for its range is the shortest.

    Noise is judged by what neighbouring tips differ in, which a slow creep hardly changes.
    """
    if not tip:
        return None
    for back in CREEP_TIPS:
        if len(levels) < back:
            return None
        past, now = _scaled([levels[:back], tip])
        # A neighbour on either side steadies the anchor's level without moving it.
        around = past[max(0, back - 3) : back]
        sd = max(1.4826 * float(np.median(np.abs(np.diff(past)))) / math.sqrt(2.0), SPREAD_FLOOR)
        effect = float(now.mean() - np.median(around))
        p = _p(effect / (sd * math.sqrt(1.0 + 1.0 / len(around))), MAD_EFFICIENCY * (back - 1))
        if p < SCREEN_P and abs(effect) >= min_effect:
            return Alarm(
                source="creep",
                effect=effect,
                p=p,
                anchor=back - 1,
                why=f"{_pct(effect)} against the tip {back} back, p = {p:.2g}",
            )
    return None


def against_expected(effect: float, expected: Sequence[float], min_effect: float) -> Alarm | None:
    """A tip whose range has changes that people expect (log ratios): held against the new level. None where nothing else worth mentioning is left."""
    left = beyond(effect, expected)
    if abs(left) < min_effect:
        return None
    why = f"{_pct(effect)} against its base, {_pct(left)} against the level that is expected"
    return Alarm(source="expected", effect=left, p=0.0, why=why)


def boots_to_extend(
    boots: int, more: int | None, effect: float | None, min_effect: float
) -> int | None:
    """How many boots a side an unclear row gets in all: what would settle it, at least half as many again; None where that is beyond the budget."""
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


def _p(t: float, df: float) -> float:
    return float(2.0 * stdtr(max(df, 3.0), -abs(t)))


def _pct(effect: float) -> str:
    return f"{100.0 * math.expm1(min(effect, 50.0)):+.2f} %"
