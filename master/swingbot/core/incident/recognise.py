"""Whether a known culprit still has its effect in a rebased branch, from mostly one pair of boots.

Formulas: docs/incidents.md, "Rebased branches".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from swingbot.core.incident.level import in_percent
from swingbot.core.thresholds import (
    SPREAD_FLOOR,
    STILL_LEFT_SDS,
    STILL_PAIRS,
    STILL_PRIOR,
    STILL_SHARE,
    STILL_SPREAD,
    STILL_SURE,
)

Answer = Literal["still", "gone", "more", "unclear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNoise:
    """Noise of one pair difference of log boot means: its sd, the degrees of freedom, and layout's
    sd.
    """

    sd: float
    df: float
    layout: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """`more`: measure another pair; `unclear`: more would not help.

    `probability`: of still present.
    """

    answer: Answer
    probability: float
    words: str


def recognise(diffs: Sequence[float], expected: float, noise: PairNoise) -> Recognition:
    """Judge pairs of the copy against its parent; `diffs` and `expected` are log ratios.

    Weighs "the change it was found with, within STILL_SPREAD of it" against "no change, or no more
    than layout explains". Raises ValueError for a difference that is not finite.
    """
    if not all(math.isfinite(d) for d in diffs):
        raise ValueError("a pair difference is not a finite number")
    if not diffs or not math.isfinite(expected) or expected == 0.0:
        return Recognition(answer="unclear", probability=STILL_PRIOR, words="no pair came up")
    n, mean = len(diffs), math.fsum(diffs) / len(diffs)
    own = max(noise.sd, SPREAD_FLOOR) ** 2 / n + 2.0 * noise.layout**2
    wide = math.sqrt(own + (STILL_SPREAD * expected) ** 2)
    df = max(noise.df, 1.0)
    there = _log_density(mean - expected, df, wide)
    none = _log_density(mean, df, math.sqrt(own))
    odds = math.log(STILL_PRIOR / (1.0 - STILL_PRIOR)) + there - none
    p = 1.0 / (1.0 + math.exp(-min(max(odds, -700.0), 700.0)))
    share = mean / expected
    words = (
        f"{in_percent(mean)} in {n} pair{'s' * (n > 1)} of boots, {in_percent(expected)}"
        f" when it was found, P(still there) = {p:.3g}"
    )
    weaker = share + 2.0 * math.sqrt(own) / abs(expected) < STILL_SHARE
    if p >= STILL_SURE and not weaker:
        return Recognition(answer="still", probability=p, words=words)
    if p <= 1.0 - STILL_SURE or (weaker and n > 1):
        return Recognition(answer="gone", probability=p, words=words)
    return Recognition(answer="more" if n < STILL_PAIRS else "unclear", probability=p, words=words)


def _log_density(deviation: float, df: float, scale: float) -> float:
    """Student's t, without the constant that depends on `df` alone."""
    return -math.log(scale) - (df + 1.0) / 2.0 * math.log1p((deviation / scale) ** 2 / df)


def beyond_known(left: float, errors: Sequence[float], min_effect: float) -> bool:
    """Return True if a tip shows more than its known culprits explain.

    `left` is the rest of its effect, `errors` the standard errors of all parts (log ratios).
    """
    return abs(left) >= min_effect and abs(left) >= STILL_LEFT_SDS * math.hypot(*errors, 0.0)
