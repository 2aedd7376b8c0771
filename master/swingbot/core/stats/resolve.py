"""What a number of boots can show, before any is spent. Exact: noncentral t, averaged over how well the noise is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtri, nctdtr, stdtrit

from swingbot.core.thresholds import FEWEST_UNPAIRED, POWER, SPREAD_FLOOR, VERDICT_ALPHA

MOST_BOOTS: Final = 100_000  # a side; more is not an answer anybody can use
_POINTS: Final = 16  # of the average over an uncertain noise; 16 and 64 agree to the third digit


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What `boots` a side can show on a testbox with a known noise."""

    boots: int
    sd: float  # relative spread of one boot mean
    paired: bool
    df: float
    layout: float
    alpha: float
    power: float
    resolves_pct: (
        float  # smallest change that gets a verdict with probability `power`; inf if none does
    )

    def boots_for(self, pct: float) -> int | None:
        """Boots a side that show a change of `pct` percent with the same probability; None when no number does."""
        if not pct > 0 or not math.isfinite(pct):
            raise ValueError(
                f"a change of {pct} % is nothing that can be resolved; give a number above 0"
            )
        effect = math.log1p(pct / 100.0)
        high = _fewest(self.paired)
        low = high - 1
        while self._power(high, effect) < self.power:
            low, high = high, high * 2
            if high > MOST_BOOTS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._power(middle, effect) >= self.power else (middle, high)
            )
        return high

    def words(self, wanted_pct: float = 1.0) -> str:
        """`6 boots a side resolve 2.1 %; 1 % needs 18`."""
        one = f"{self.boots} boot{'s' * (self.boots != 1)} a side resolve{'s' * (self.boots == 1)}"
        if math.isinf(self.resolves_pct):
            said = (
                f"{one} nothing"
                if self.boots < _fewest(self.paired)
                else f"{one} nothing on this testbox"
            )
        else:
            said = f"{one} {self.resolves_pct:.2g} %"
            if self.resolves_pct <= wanted_pct:
                return said
        need = self.boots_for(wanted_pct)
        return f"{said}; {wanted_pct:g} % " + (f"needs {need}" if need else "is out of reach here")

    def _power(self, boots: int, effect: float) -> float:
        return power_of(
            boots,
            effect,
            self.sd,
            paired=self.paired,
            alpha=self.alpha,
            df=self.df,
            layout=self.layout,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise:
    """What is known of a metric's noise beforehand. Spreads are relative (0.02 is 2 %).

    `run` is of a run within its boot, `boot` of boots among each other; on a paired testbox of what pairing does not cancel, so that a pair's
    difference has twice their variance. `df`: degrees of freedom behind that knowledge; few make an answer larger. `layout` is frozen into each image.
    ValueError: a spread below zero.
    """

    run: float
    boot: float
    df: float = math.inf
    layout: float = 0.0

    def __post_init__(self) -> None:
        if not (
            0 <= self.run < math.inf
            and 0 <= self.boot < math.inf
            and 0 <= self.layout < math.inf
            and self.df > 0
        ):
            raise ValueError(
                "spreads are finite numbers from 0 up, and their degrees of freedom are above 0"
            )


def plan_comparison(
    noise: KnownNoise,
    runs: int,
    boots: int,
    paired: bool,
    *,
    alpha: float = VERDICT_ALPHA,
    power: float = POWER,
) -> Resolution:
    """What `boots` a side of `runs` runs each resolve. ValueError: no runs, no boots."""
    if runs < 1 or boots < 1:
        raise ValueError("a comparison has at least one boot a side with one run")
    sd = max(math.sqrt(noise.boot * noise.boot + noise.run * noise.run / runs), SPREAD_FLOOR)
    pct = (
        _smallest(boots, sd, power, paired=paired, alpha=alpha, df=noise.df, layout=noise.layout)
        if boots >= _fewest(paired)
        else math.inf
    )
    return Resolution(
        boots=boots,
        sd=sd,
        paired=paired,
        df=noise.df,
        layout=noise.layout,
        alpha=alpha,
        power=power,
        resolves_pct=pct,
    )


def _fewest(paired: bool) -> int:
    """Boots a side below which no comparison has a direction."""
    return 2 if paired else FEWEST_UNPAIRED


def power_of(
    boots: int, effect: float, sd: float, *, paired: bool, alpha: float, df: float, layout: float
) -> float:
    """Probability that `boots` a side give a verdict in the right direction when the log ratio is `effect` and one boot mean spreads by `sd`."""
    own = float((boots - 1) * (1 if paired else 2))
    spreads = sd * np.sqrt(_scatter(df))
    variance = 2.0 * spreads**2 / boots
    total = np.sqrt(variance + 2.0 * layout**2)
    dfs = own * (total * total / variance) ** 2
    return float(np.mean(1.0 - nctdtr(dfs, effect / total, stdtrit(dfs, 1.0 - alpha / 2.0))))


def _scatter(df: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """True variance over the known one, at equally likely points: df / chi-squared of df."""
    if math.isinf(df):
        return np.ones(1)
    p = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(df / chdtri(df, p), dtype=np.float64)


def _smallest(
    boots: int, sd: float, power: float, *, paired: bool, alpha: float, df: float, layout: float
) -> float:
    def reached(effect: float) -> bool:
        return (
            power_of(boots, effect, sd, paired=paired, alpha=alpha, df=df, layout=layout) >= power
        )

    low, high = 0.0, sd
    while not reached(high):
        low, high = high, 2.0 * high
        if high > 20.0:
            return math.inf
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) else (middle, high)
    return 100.0 * math.expm1(high)
