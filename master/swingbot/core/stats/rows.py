"""What a comparison is made of: boots of runs, and a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

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
LARGEST: Final = 1e300  # as the database has it: beyond it squares and sums of doubles end


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What a tool tells of runs that it averaged itself, such as `perf stat -r 10`."""

    runs: int  # averaged, at least 2
    error: float  # standard error of their mean, relative to it (0.01 is 1 %)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRuns:
    """The runs of one boot, in the metric's unit. On a paired testbox equal `k` (or equal `block`, where given) mean the same perturbation."""

    k: int  # its own in a series; boots of a side ran in this order
    values: tuple[float, ...]
    block: int | None = (
        None  # several boots of a side under one condition, such as the same hour; None: k is the block
    )
    lost: int = 0  # runs that were asked for and gave no value
    at: float | None = None  # when it ran, in any unit, or its place in the order; None: not known
    repeats: Repeats | None = None  # `values` is one mean of so many runs; None: each is a run

    @property
    def runs(self) -> int:
        return self.repeats.runs if self.repeats is not None else len(self.values)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a spread is a spread of: equal bases can be pooled."""

    form: Form  # the scale; differences are in the metric's unit
    medians: bool  # boots count by the median of their runs
    trimmed: bool  # the middle boots count
    pairs: bool  # of pair differences, not of boots


@dataclass(frozen=True, slots=True)
class Pooled:
    """Variance of one boot about the level of its arm, or of one pair difference, from all rows of a family that agree in it."""

    variance: float
    df: float
    independent: tuple[float, float]  # rows that count as independent: at alpha, at interval_alpha
    own_share: float  # of the family's alpha, at which the row's own boots are judged beside it


class Family(Protocol):
    """The rows of a table that hold together, as one of them sees it: `core/stats/family.py`."""

    @property
    def rows(self) -> int:
        """How many rows there are, at least 2."""
        ...

    def pooled(self, basis: Basis) -> Pooled | None:
        """None where the arms do not agree in their spread, or this row's arms do not agree with the others."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """A family from which a row learns nothing but how many rows hold together."""

    rows: int

    def pooled(self, basis: Basis) -> Pooled | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a metric is judged; `core/thresholds.py` says what the defaults mean. Spreads are relative (0.01 is 1 %), of one boot mean unless they say otherwise."""

    better: Literal["higher", "lower"] | None = None
    klass: str = "kpi"  # the metric's class, for the reader; its numbers are the fields below
    min_effect_pct: float = MIN_EFFECT_PCT  # points if `points`
    paired: bool = False  # compare boot k of head with boot k of base
    alpha: float = VERDICT_ALPHA
    interval_alpha: float = INTERVAL_ALPHA
    resolution: float = 0.0  # step of the printed number, in the metric's unit: rounding alone spreads by resolution / sqrt(12)
    spread_floor: float = SPREAD_FLOOR
    layout: float = 0.0  # spread frozen into a kernel image (alignment, link order): more boots never average it out
    prior_sd: float = 0.0  # spread of one boot (of one pair when paired) known from elsewhere ...
    prior_df: float = 0.0  # ... and how many degrees of freedom that is worth; 0: not known
    form: Form = "ratio"  # root: counts; difference: percentages and other metrics where a ratio means nothing
    points: bool = False  # a share in percent: the minimum effect and the margins are points of it, not percent of its level
    poisson: bool = (
        False  # whole numbers of independent events: their root cannot spread less than 1/2
    )
    positive: bool = False  # a value of zero or less is a mistake of the measurement
    least: float | None = None  # a value below it is a mistake of the measurement
    robust: bool = True  # leave out wild runs and boots if there are any; False: always plain means
    wild_alpha: float = WILD_ALPHA  # at each of the two levels: runs, boots
    trend_alpha: float = TREND_ALPHA
    trend_note_alpha: float = TREND_NOTE_ALPHA  # divided by `headlines`
    spread_change_p: float = SPREAD_CHANGE_P  # divided by `headlines`; 0: not looked for
    headlines: int = 1  # metrics that a reader looks at together with this one
    # Boots are known not to fall into modes (a testbox that counts instructions), or the change is known from other
    # boots: fewer than FEWEST_UNPAIRED boots a side may then have a direction.
    unimodal: bool = False
    lost_share: float = LOST_SHARE
    family: Family | None = None  # rows that hold together with this one; None: it stands alone
