"""Input of a comparison: boots with their runs, and a rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from swingbot.core.thresholds import (
    INTERVAL_ALPHA,
    LOST_SHARE,
    MIN_EFFECT_PCT,
    SPREAD_CHANGE_P,
    SPREAD_FLOOR,
    TREND_ALPHA,
    TREND_NOTE_ALPHA,
    VERDICT_ALPHA,
    WILD_ALPHA,
)

Form = Literal["ratio", "root", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Runs that a tool averaged itself, such as `perf stat -r 10`."""

    runs: int  # number of runs averaged, at least 2
    error: float  # standard error of their mean, relative to it (0.01 is 1 %)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRuns:
    """The runs of one boot, in the metric's unit.

    On a paired testbox, equal `k` (or equal `block`, if given) mean the same perturbation.
    """

    k: int  # unique in a series; boots of a side ran in this order
    values: tuple[float, ...]
    # shared by boots of a side under one condition, such as the same hour; None: k is the block
    block: int | None = None
    lost: int = 0  # runs that were requested but gave no value
    at: float | None = None  # time in any unit, or position in the order; None: not known
    repeats: Repeats | None = None  # `values` is one mean of this many runs; None: single runs

    @property
    def runs(self) -> int:
        return self.repeats.runs if self.repeats is not None else len(self.values)


def with_lost_runs(
    boots: Sequence[BootRuns], took_place: Iterable[int], runs: int
) -> list[BootRuns]:
    """Return the boots of one metric with the number of lost runs out of `runs`, including boots
    without any value. `took_place`: k of the boots that took place, successful or not.
    """
    present = [BootRuns(k=b.k, values=b.values, lost=max(0, runs - len(b.values))) for b in boots]
    known = {boot.k for boot in boots}
    return present + [BootRuns(k=k, values=(), lost=runs) for k in took_place if k not in known]


@dataclass(frozen=True, slots=True)
class Basis:
    """Kind of a spread: estimates with an equal basis can be pooled."""

    form: Form  # the scale; differences are in the metric's unit
    medians: bool  # a boot's value is the median of its runs
    trimmed: bool  # the level is a trimmed mean of boots
    pairs: bool  # spread of pair differences, not of boots


@dataclass(frozen=True, slots=True)
class Pooled:
    """Variance of one boot about its arm's level, or of one pair difference, pooled over a
    family."""

    variance: float
    df: float
    independent: tuple[float, float]  # equivalent independent rows at alpha and interval_alpha
    own_share: float  # share of the family's alpha at which the row's own boots are judged


class Family(Protocol):
    """The simultaneous rows of a table as seen by one of them: `core/stats/family.py`."""

    @property
    def rows(self) -> int:
        """Return the number of rows, at least 2."""
        ...

    def pooled(self, basis: Basis) -> Pooled | None:
        """Return None if the arms, or this row's arms and the others, disagree in their spread."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """A family that contributes only its number of rows."""

    rows: int

    def pooled(self, basis: Basis) -> Pooled | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Thresholds for judging a metric; `core/thresholds.py` explains the defaults.

    Spreads are relative (0.01 is 1 %), of one boot mean unless stated otherwise.
    """

    better: Literal["higher", "lower"] | None = None
    klass: str = "kpi"  # metric class, for display; its numbers are the fields below
    min_effect_pct: float = MIN_EFFECT_PCT  # points if `points`
    paired: bool = False  # compare boot k of head with boot k of base
    alpha: float = VERDICT_ALPHA
    interval_alpha: float = INTERVAL_ALPHA
    spread_floor: float = SPREAD_FLOOR
    # spread frozen into a kernel image (alignment, link order); more boots do not average it out
    layout: float = 0.0
    layout_df: float = math.inf  # degrees of freedom of `layout`; inf: assumed, or known exactly
    day: float = 0.0  # spread between the days on which the two kernels were booted
    prior_sd: float = 0.0  # known spread of one boot (of one pair if paired) ...
    prior_df: float = 0.0  # ... and its degrees of freedom; 0: not known
    # No larger spread between boots, all modes included, is compatible with the noise record;
    # limits the share of boots in a second mode. None: not known
    sd_at_most: float | None = None
    form: Form = "ratio"  # root: counts; difference: percentages, and metrics without useful ratios
    points: bool = False  # share in percent: minimum effect and margins are percentage points
    poisson: bool = False  # counts of independent events, whose root has a spread of at least 1/2
    rounding: bool = True  # widens intervals; False: the values as printed are compared
    positive: bool = False  # a value of zero or less is a measurement error
    least: float | None = None  # a lower value is a measurement error
    robust: bool = True  # leave out outlying runs and boots; False: always plain means
    wild_alpha: float = WILD_ALPHA  # at each of the two levels: runs, boots
    trend_alpha: float = TREND_ALPHA
    trend_note_alpha: float = TREND_NOTE_ALPHA  # divided by `headlines`
    spread_change_p: float = SPREAD_CHANGE_P  # divided by `headlines`; 0: not tested
    headlines: int = 1  # number of metrics that a reader sees together
    # Boots are known to have no modes (the testbox counts instructions), or other boots have shown
    # the change. Fewer than FEWEST_UNPAIRED boots per side may then have a direction.
    unimodal: bool = False
    lost_share: float = LOST_SHARE
    family: Family | None = None  # simultaneous rows including this one; None: single comparison
