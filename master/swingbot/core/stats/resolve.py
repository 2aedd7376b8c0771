"""Predict what a number of boots can show, before any boot.

Exact: noncentral t, averaged over the uncertainty of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import chdtri, nctdtr, ndtr, stdtrit

from swingbot.core.stats.modes import least_apart
from swingbot.core.stats.simultaneous import (
    Edge,
    Forest,
    forest_of,
    independent_rows,
    information,
    own_share,
    sidak,
    uses_of,
)
from swingbot.core.text.numbers import two_digits
from swingbot.core.thresholds import (
    FEWEST_UNPAIRED,
    POWER,
    SPREAD_FLOOR,
    VERDICT_ALPHA,
)

USEFUL_BOOTS: Final = 100_000  # per side; larger answers are useless
_POINTS: Final = 16  # for averaging over uncertain noise; 16 and 64 agree to the third digit
# For averaging over the spread of a row's own boots: of pairs, of each side
_OWN_POINTS: Final = 32
_SIDE_POINTS: Final = 8
_REST_POINTS: Final = 4  # for the spread of the other kernels, which is better known

Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRows:
    """At least two rows of a table that are compared simultaneously."""

    arms: int
    rows: int
    forest: Forest | None  # the shape of the table; None if its rows do not form a forest
    information: float  # degrees of freedom of a pooled pair variance, per nominal one
    own_share: float  # share of alpha at which a row's own boots are judged

    @classmethod
    def of(cls, pairs: Sequence[Edge]) -> PlannedRows:
        """Build from (reference, row) pairs of arms."""
        uses = uses_of(pairs)
        return cls(
            arms=len(uses),
            own_share=own_share(len(pairs), max(uses.values())),
            rows=len(pairs),
            forest=forest_of(pairs),
            information=information(pairs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Smallest change that `boots` boots per side can show on a testbox with known noise."""

    boots: int
    sd: float  # relative spread of one boot mean
    paired: bool
    df: float
    layout: float
    layout_df: float
    alpha: float
    power: float
    resolves_pct: (
        float  # smallest change that gets a verdict with probability `power`; inf if none does
    )
    table: PlannedRows | None = None  # simultaneous rows; None: a single comparison
    sd_at_most: float | None = None  # as in `KnownNoise`

    def boots_for(self, pct: float) -> int | None:
        """Return the boots per side that show a change of `pct` percent; None if none suffices."""
        if not pct > 0 or not math.isfinite(pct):
            raise ValueError(f"a change of {pct} % cannot be resolved; give a number above 0")
        effect = math.log1p(pct / 100.0)
        high = self.fewest
        low = high - 1
        while self._power(high, effect) < self.power:
            low, high = high, high * 2
            if high > USEFUL_BOOTS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self._power(middle, effect) >= self.power else (middle, high)
            )
        return high

    def words(self, wanted_pct: float = 1.0) -> str:
        """Return such as `6 boots a side resolve 2.1 %; 1 % needs 18`.

        For a table: `6 boots a kernel resolve 2.4 % in a table of 7 rows; ...`.
        """
        each = "a kernel" if self.table else "a side"
        one = f"{self.boots} boot{'s' * (self.boots != 1)} {each} resolve{'s' * (self.boots == 1)}"
        if math.isinf(self.resolves_pct):
            said = (
                f"{one} nothing" if self.boots < self.fewest else f"{one} nothing on this testbox"
            )
        else:
            where = f" in a table of {self.table.rows} rows" if self.table else ""
            said = f"{one} {two_digits(self.resolves_pct)} %{where}"
            if self.resolves_pct <= wanted_pct:
                return said
        need = self.boots_for(wanted_pct)
        return f"{said}; {wanted_pct:g} % " + (f"needs {need}" if need else "is out of reach here")

    @property
    def fewest(self) -> int:
        """The boots per side below which no comparison has a direction."""
        return 2 if self.paired or self.sd_at_most is not None else FEWEST_UNPAIRED

    def least(self, boots: int) -> float:
        """Return the smallest effect that two modes of boots do not explain."""
        if self.paired or self.sd_at_most is None:
            return 0.0
        if self.table is not None and boots >= FEWEST_UNPAIRED:
            return 0.0  # arms that agree in their spread have no separate modes
        rows = self.table.rows if self.table is not None else 1
        return self.sd_at_most * least_apart(boots, self.alpha / rows)

    def _power(self, boots: int, effect: float) -> float:
        return _power_in(self, boots, effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise:
    """Prior knowledge of a metric's noise. Spreads are relative (0.02 is 2 %).

    `run` is the spread of a run within its boot, `boot` that between boots. On a paired testbox,
    `boot` is what pairing does not cancel, so that a pair difference has twice these variances.
    `df` are the degrees of freedom behind these estimates; few make answers larger. `layout` is
    frozen into each image, with `layout_df` degrees of freedom. No larger spread of a boot mean
    than `sd_at_most`, modes included, is compatible with the noise record; None: unknown. Raises
    ValueError for a negative spread.
    """

    run: float
    boot: float
    df: float = math.inf
    layout: float = 0.0
    layout_df: float = math.inf
    sd_at_most: float | None = None

    def __post_init__(self) -> None:
        if not (
            0 <= self.run < math.inf
            and 0 <= self.boot < math.inf
            and 0 <= self.layout < math.inf
            and self.df > 0
        ):
            raise ValueError(
                "spreads must be finite and not negative, and their degrees of freedom above 0"
            )


def plan_family(
    noise: KnownNoise,
    runs: int,
    boots: int,
    paired: bool,
    pairs: Sequence[Edge],
    *,
    alpha: float = VERDICT_ALPHA,
    power: float = POWER,
) -> Resolution:
    """Predict each row of a table with `boots` boots of `runs` runs per kernel.

    All rows are compared simultaneously, and all arms have the same spread. `pairs` are
    (reference, row) indices of kernels. A single row is planned as a comparison. Raises ValueError
    without rows, runs or boots.
    """
    if not pairs:
        raise ValueError("a table must have at least one row, that is, a pair of kernels")
    if runs < 1 or boots < 1:
        raise ValueError("a comparison needs at least one boot per side with one run")
    blank = Resolution(
        boots=boots,
        sd=max(math.sqrt(noise.boot * noise.boot + noise.run * noise.run / runs), SPREAD_FLOOR),
        paired=paired,
        df=noise.df,
        layout=noise.layout,
        layout_df=noise.layout_df,
        alpha=alpha,
        power=power,
        resolves_pct=math.inf,
        table=PlannedRows.of(pairs) if len(pairs) > 1 else None,
        sd_at_most=noise.sd_at_most,
    )
    return replace(blank, resolves_pct=_smallest(blank)) if boots >= blank.fewest else blank


def _power_in(plan: Resolution, boots: int, effect: float) -> float:
    if plan.table is not None:
        return _power_of_row(plan, plan.table, boots, effect)
    if plan.least(boots) > 0.0 or math.isfinite(plan.layout_df):
        return _power_beyond(plan, boots, effect)
    return power_of(
        boots,
        effect,
        plan.sd,
        paired=plan.paired,
        alpha=plan.alpha,
        df=plan.df,
        layout=plan.layout,
    )


def power_of(
    boots: int, effect: float, sd: float, *, paired: bool, alpha: float, df: float, layout: float
) -> float:
    """Return the probability of a verdict in the right direction with `boots` boots per side.

    `effect` is the log ratio, `sd` the standard deviation of one boot mean.
    """
    own = float((boots - 1) * (1 if paired else 2))
    spreads = sd * np.sqrt(_scatter(df))
    variance = 2.0 * spreads**2 / boots
    total = np.sqrt(variance + 2.0 * layout**2)
    dfs = own * (total * total / variance) ** 2
    return float(np.mean(1.0 - nctdtr(dfs, effect / total, stdtrit(dfs, 1.0 - alpha / 2.0))))


def _power_beyond(plan: Resolution, boots: int, effect: float) -> float:
    """Return the same as `power_of` where the measured effect must also exceed `plan.least`, or the
    spread between layouts is an estimate.

    Averaged over the spread of the boots at equally likely points.
    """
    true = plan.sd**2 * _scatter(plan.df)[:, None] * 2.0 / boots
    share, own = _own_shares(float(boots - 1), plan.paired)
    fixed = 2.0 * plan.layout**2
    half = np.maximum(_half(true * share.T, fixed, own.T, plan, plan.alpha), plan.least(boots))
    return float(np.mean(ndtr((effect - half) / np.sqrt(true + fixed))))


def _scatter(df: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return true over known variance at equally likely points: df / chi-squared of df."""
    if math.isinf(df):
        return np.ones(1)
    p = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(df / chdtri(df, p), dtype=np.float64)


def _power_of_row(plan: Resolution, table: PlannedRows, boots: int, effect: float) -> float:
    """Return the same as `power_of` for a row of a table.

    Both the pooled spread and the row's own must show the change. The result is averaged over both
    spreads at equally likely points; the row's boots are part of the pool.
    """
    each, alpha = float(boots - 1), plan.alpha * table.own_share
    true = plan.sd**2 * _scatter(plan.df)[:, None, None] * 2.0 / boots
    share, own = _own_shares(each, plan.paired)
    mine, fixed = true * share, 2.0 * plan.layout**2
    half = np.maximum(_half(mine, fixed, own, plan, alpha), plan.least(boots))
    if table.own_share * table.rows > 1.0:
        all_df = each * (table.rows * table.information if plan.paired else table.arms)
        part = each * (1.0 if plan.paired else 2.0)
        rest = true * _chi2_share(max(all_df - part, 1.0), _REST_POINTS)
        pooled = (part * mine + (all_df - part) * rest) / all_df
        forest = None if plan.paired else table.forest
        rows = independent_rows(plan.alpha, forest, table.rows, all_df)
        half = np.maximum(half, _half(pooled, fixed, all_df, plan, sidak(plan.alpha, rows)))
    return float(np.mean(ndtr((effect - half) / np.sqrt(true + fixed))))


def _own_shares(each: float, paired: bool) -> tuple[Values, Values]:
    """Return (measured over true variance, degrees of freedom) of a row's own boots, as columns.

    Two sides are combined by Welch's form.
    """
    if paired:
        share = _chi2_share(each, _OWN_POINTS)
        return share[:, None], np.full((len(share), 1), each)
    one = _chi2_share(each, _SIDE_POINTS)
    a, b = (side.reshape(-1, 1) for side in np.meshgrid(one, one))
    return (a + b) / 2.0, each * (a + b) ** 2 / (a * a + b * b)


def _half(
    variance: Values, fixed: float, df: Values | float, plan: Resolution, alpha: float
) -> Values:
    """Return half the width of a deciding interval, as `core/stats/spread.py` computes it."""
    sure = 1.0 - alpha / 2.0
    part = variance / (variance + fixed)
    both_df = 1.0 / (part**2 / df + (1.0 - part) ** 2 / plan.layout_df)
    both = stdtrit(both_df, sure) * np.sqrt(variance + fixed)
    boots, layout = stdtrit(df, sure) * np.sqrt(variance), stdtrit(plan.layout_df, sure)
    return np.asarray(
        np.maximum(np.maximum(both, boots), layout * math.sqrt(fixed)), dtype=np.float64
    )


def _chi2_share(df: float, points: int) -> Values:
    """Return measured over true variance at equally likely points."""
    p = (np.arange(points) + 0.5) / points
    return np.asarray(chdtri(df, p) / df, dtype=np.float64)


def _smallest(plan: Resolution) -> float:
    """Return the smallest change in percent with the required power; inf if there is none."""

    def reached(effect: float) -> bool:
        return _power_in(plan, plan.boots, effect) >= plan.power

    low, high = 0.0, plan.sd
    while not reached(high):
        low, high = high, 2.0 * high
        if high > 20.0:
            return math.inf
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) else (middle, high)
    return 100.0 * math.expm1(high)
