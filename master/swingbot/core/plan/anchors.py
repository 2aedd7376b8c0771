"""Detect drift of a testbox from boots of one kernel, the anchor, then and now, and boots of one
anchor that differ as two kernels would.

Formulas: docs/statistics.md, "Noise records".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import fdtrc, stdtr

from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.text.numbers import two_digits
from swingbot.core.thresholds import MOVED_LEAST_SHARE, MOVED_LEVEL_P, MOVED_SPREAD_P, SPREAD_FLOOR


def moved(
    before: Sequence[float], now: Sequence[float], record: NoiseRecord | None, min_effect: float
) -> str | None:
    """Return why the testbox has drifted; None without evidence or with too little data.

    `before`, `now`: boot means of the anchor in the metric's unit. `min_effect`: a log ratio.
    """
    if not before or not now or not all(math.isfinite(v) for v in (*before, *now)):
        return None
    past, fresh = _scaled(before, now)
    noise = _noise(past, record)
    if not noise.known:
        return None
    sd, shift = max(noise.sd, SPREAD_FLOOR), float(fresh.mean() - past.mean())
    t = shift / (sd * math.sqrt(1.0 / len(past) + 1.0 / len(fresh) + _days(record, sd)))
    if (
        2.0 * float(stdtr(noise.df, -abs(t))) < MOVED_LEVEL_P
        and abs(shift) >= MOVED_LEAST_SHARE * min_effect
    ):
        side = "above" if shift > 0 else "below"
        return (
            "the same kernel is now"
            f" {two_digits(100.0 * abs(math.expm1(shift)))} % {side} its level of"
            f" {len(past)} earlier boots"
        )
    if len(fresh) > 1 and float(fresh.std(ddof=1)) >= MOVED_LEAST_SHARE * min_effect:
        ratio = float(fresh.var(ddof=1)) / sd**2
        if float(fdtrc(len(fresh) - 1, noise.df, ratio)) < MOVED_SPREAD_P:
            return (
                f"boots of the same kernel now spread {two_digits(math.sqrt(ratio))} times as much"
                " as they did"
            )
    return None


def claims(boots: Sequence[BootRuns], rule: Rule) -> str | None:
    """Return what a comparison claims of two halves of the boots of one kernel; None: no change.

    The halves mirror (b h h b), as base and head do. `rule` is the metric's on this testbox.
    """
    halves = [
        [boot for n, boot in enumerate(boots) if (n % 4 in (1, 2)) == later]
        for later in (False, True)
    ]
    row = compare(halves[0], halves[1], replace(rule, paired=False))
    if not row.changed or row.change_pct is None:
        return None
    return (
        f"two halves of {len(boots)} boots of one kernel are {two_digits(abs(row.change_pct))} %"
        " apart, which a comparison calls a change"
    )


def _noise(
    past: np.ndarray[tuple[int], np.dtype[np.float64]], record: NoiseRecord | None
) -> Spread:
    """Return the noise of one boot mean: the record's, or that of the earlier boots."""
    if record is not None and record.boot_mean.known:
        return record.boot_mean
    return (
        Spread(sd=max(float(np.std(past, ddof=1)), SPREAD_FLOOR), df=len(past) - 1.0)
        if len(past) > 1
        else Spread()
    )


def _days(record: NoiseRecord | None, sd: float) -> float:
    """Return the variance between two days, in units of the variance of a boot mean."""
    return 2.0 * (record.day.sd / sd) ** 2 if record is not None and record.day.known else 0.0


def _scaled(
    before: Sequence[float], now: Sequence[float]
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]
]:
    past, fresh = np.asarray(before, dtype=np.float64), np.asarray(now, dtype=np.float64)
    if min(float(past.min()), float(fresh.min())) > 0:
        return np.log(past), np.log(fresh)
    unit = float(np.abs(past).mean()) or 1.0
    return past / unit, fresh / unit
