"""What a number of boots can show, before any is spent. Exact: noncentral t, averaged over how well the noise is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import chdtri, nctdtr, ndtr, stdtrit

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
from swingbot.core.thresholds import (
    FEWEST_UNPAIRED,
    POWER,
    SPREAD_FLOOR,
    VERDICT_ALPHA,
)

MOST_BOOTS: Final = 100_000  # a side; more is not an answer anybody can use
_POINTS: Final = 16  # of the average over an uncertain noise; 16 and 64 agree to the third digit
# Of the average over the spread that a row's own boots happen to have: of pairs, of each side.
_OWN_POINTS: Final = 32
_SIDE_POINTS: Final = 8
_REST_POINTS: Final = 4  # of the spread of the other kernels, which is better known

Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRows:
    """Rows of a table that are to hold together: at least two."""

    arms: int
    rows: int
    forest: Forest | None  # the shape of a table whose rows form one
    information: float  # degrees of freedom of a pooled pair variance for each that it counts
    own_share: float  # of alpha, at which a row's own boots are judged

    @classmethod
    def of(cls, pairs: Sequence[Edge]) -> PlannedRows:
        """Of (reference, row) pairs of arms."""
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
    table: PlannedRows | None = None  # rows that hold together; None: a single comparison

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
        """`6 boots a side resolve 2.1 %; 1 % needs 18`; of a table `6 boots a kernel resolve 2.4 % in a table of 7 rows; ...`."""
        each = "a kernel" if self.table else "a side"
        one = f"{self.boots} boot{'s' * (self.boots != 1)} {each} resolve{'s' * (self.boots == 1)}"
        if math.isinf(self.resolves_pct):
            said = (
                f"{one} nothing"
                if self.boots < _fewest(self.paired)
                else f"{one} nothing on this testbox"
            )
        else:
            where = f" in a table of {self.table.rows} rows" if self.table else ""
            said = f"{one} {self.resolves_pct:.2g} %{where}"
            if self.resolves_pct <= wanted_pct:
                return said
        need = self.boots_for(wanted_pct)
        return f"{said}; {wanted_pct:g} % " + (f"needs {need}" if need else "is out of reach here")

    def _power(self, boots: int, effect: float) -> float:
        return _power_in(self, boots, effect)


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
    return _planned(noise, runs, boots, paired, alpha, power, None)


def plan_family(
    noise: KnownNoise,
    runs: int,
    boots: int,
    paired: bool,
    pairs: Sequence[Edge],
    *,
    power: float = POWER,
) -> Resolution:
    """What `boots` of `runs` runs of each kernel resolve in each row of a table, if all rows hold together and arms spread alike.

    `pairs`: (reference, row) indices of kernels. A single row is planned as a comparison.
    ValueError: no rows, no runs, no boots.
    """
    if not pairs:
        raise ValueError("a table has at least one row: a pair of kernels to compare")
    table = PlannedRows.of(pairs) if len(pairs) > 1 else None
    return _planned(noise, runs, boots, paired, VERDICT_ALPHA, power, table)


def _planned(
    noise: KnownNoise,
    runs: int,
    boots: int,
    paired: bool,
    alpha: float,
    power: float,
    table: PlannedRows | None,
) -> Resolution:
    if runs < 1 or boots < 1:
        raise ValueError("a comparison has at least one boot a side with one run")
    blank = Resolution(
        boots=boots,
        sd=max(math.sqrt(noise.boot * noise.boot + noise.run * noise.run / runs), SPREAD_FLOOR),
        paired=paired,
        df=noise.df,
        layout=noise.layout,
        alpha=alpha,
        power=power,
        resolves_pct=math.inf,
        table=table,
    )
    return replace(blank, resolves_pct=_smallest(blank)) if boots >= _fewest(paired) else blank


def _power_in(plan: Resolution, boots: int, effect: float) -> float:
    if plan.table is not None:
        return _power_of_row(plan, plan.table, boots, effect)
    return power_of(
        boots,
        effect,
        plan.sd,
        paired=plan.paired,
        alpha=plan.alpha,
        df=plan.df,
        layout=plan.layout,
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


def _power_of_row(plan: Resolution, table: PlannedRows, boots: int, effect: float) -> float:
    """As `power_of`, of one row of a table: the pooled spread and the row's own have to show the change.

    Averaged over both spreads at equally likely points; the own boots are part of the pool.
    """
    each, alpha = float(boots - 1), plan.alpha * table.own_share
    true = plan.sd**2 * _scatter(plan.df)[:, None, None] * 2.0 / boots
    share, own = _own_shares(each, plan.paired)
    mine, fixed = true * share, 2.0 * plan.layout**2
    half = _half(mine, fixed, own, alpha)
    if table.own_share * table.rows > 1.0:
        all_df = each * (table.rows * table.information if plan.paired else table.arms)
        part = each * (1.0 if plan.paired else 2.0)
        rest = true * _chi2_share(max(all_df - part, 1.0), _REST_POINTS)
        pooled = (part * mine + (all_df - part) * rest) / all_df
        forest = None if plan.paired else table.forest
        rows = independent_rows(plan.alpha, forest, table.rows, all_df)
        half = np.maximum(half, _half(pooled, fixed, all_df, sidak(plan.alpha, rows)))
    return float(np.mean(ndtr((effect - half) / np.sqrt(true + fixed))))


def _own_shares(each: float, paired: bool) -> tuple[Values, Values]:
    """(measured variance over the true one, degrees of freedom) of a row's own boots, as a column; two sides by Welch's form."""
    if paired:
        share = _chi2_share(each, _OWN_POINTS)
        return share[:, None], np.full((len(share), 1), each)
    one = _chi2_share(each, _SIDE_POINTS)
    a, b = (side.reshape(-1, 1) for side in np.meshgrid(one, one))
    return (a + b) / 2.0, each * (a + b) ** 2 / (a * a + b * b)


def _half(variance: Values, fixed: float, df: Values | float, alpha: float) -> Values:
    """Half the width of a deciding interval, as `core/stats/spread.py` has it."""
    sure = 1.0 - alpha / 2.0
    total = df * ((variance + fixed) / variance) ** 2
    return np.asarray(
        np.maximum(
            stdtrit(total, sure) * np.sqrt(variance + fixed), stdtrit(df, sure) * np.sqrt(variance)
        ),
        dtype=np.float64,
    )


def _chi2_share(df: float, points: int) -> Values:
    """A measured variance over the true one, at equally likely points."""
    p = (np.arange(points) + 0.5) / points
    return np.asarray(chdtri(df, p) / df, dtype=np.float64)


def _smallest(plan: Resolution) -> float:
    """Percent; inf where no change has the power."""

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
