"""What each item of a testbox's tuning list is worth there: boots with the item off beside boots
with the list as it is. Pure.

Formulas: docs/statistics.md, "What an item of a tuning list is worth".
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.special import stdtrit

from swingbot.core.plan.long_screening import NightSize, scaled
from swingbot.core.stats.history import Array
from swingbot.core.stats.rows import Rule
from swingbot.core.text.numbers import times_the_spread, two_digits
from swingbot.core.thresholds import MOVED_LEAST_SHARE
from swingbot_jobs.contract import facts, settings
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.definition import CMDLINE, Testbox
from swingbot_jobs.testbox.tuning import Tuning, TuningItem

# Chance that an interval of any item misses, for each metric. Smaller: intervals of few boots hold
# any effect.
ALPHA: Final = 0.05
# Boots of each state: fewer leave the spread unknown within a factor of five, more cost days.
FEWEST: Final = 8
MOST: Final = 20
_RELABELLED: Final = 13_000  # ways to label boots that are tried; all of them up to 8 a side
_FARTHEST: Final = 14.0  # logarithm of the largest ratio of spreads: a million
_GROUPS: Final = {"power": "no frequency driver"}  # what a machine without such facts lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedItems:
    """Unit jobs by item, with that item off; and by item why others are not switched."""

    jobs: Mapping[str, tuple[UnitJob, ...]]
    skipped: Mapping[str, str]


def night_size(items: int) -> NightSize:
    """Return the boots of a night that switches `items` items off, one at a time."""
    return NightSize(arms=1 + items, fewest=FEWEST, most=MOST)


def switched(
    testbox: Testbox,
    tuning: Tuning,
    unit_jobs: Sequence[UnitJob],
    known: Mapping[str, Any],
    trust: Trust,
) -> SwitchedItems:
    """Switch each item of the list off, one at a time.

    `known` are the facts of the testbox's latest boot, as they were before its job began; {} if
    there is none. `trust` is that of the kernel to boot.
    """
    jobs: dict[str, tuple[UnitJob, ...]] = {}
    skipped = {item.name: _left_out(item, known) for item in tuning.left_out}
    for item in tuning.items:
        off = tuple(_without(item, job) for job in unit_jobs)
        why = (
            _not_switched(item, known)
            or _unchanged(item, unit_jobs, off)
            or _refused(testbox, item, off, trust)
        )
        if why is None:
            jobs[item.name] = off
        else:
            skipped[item.name] = why
    return SwitchedItems(jobs=jobs, skipped=skipped)


def _set(item: TuningItem) -> list[str]:
    """Return the facts of an item that the runner sets."""
    return [name for name in item.boot if (fact := facts.known().get(name)) and fact.set]


def _without(item: TuningItem, job: UnitJob) -> UnitJob:
    """Return the job without what the item sets; what the job itself sets stays."""
    own = {name for name in item.boot if job.demand.get(name) != item.boot[name]} | set(job.sysctl)
    dropped = (set(_set(item)) | set(item.off) & set(item.boot)) - own
    demand = {name: value for name, value in job.demand.items() if name not in dropped}
    demand |= {name: value for name, value in item.off.items() if name not in own}
    return replace(
        job,
        demand=dict(sorted(demand.items())),
        cmdline=settings.joined(job.cmdline, item.off_cmdline),
    )


def _not_switched(item: TuningItem, known: Mapping[str, Any]) -> str | None:
    if not _set(item) and not item.off and not item.off_cmdline:
        if item.cmdline:
            return f"no later word on the command line undoes {item.cmdline}"
        if item.boot:
            return f"nothing sets {', '.join(item.boot)}: it is only checked"
        return "it concerns the idle system, which does not run during a job"
    return _absent(item, known)


def _absent(item: TuningItem, known: Mapping[str, Any]) -> str | None:
    """Return what the testbox lacks for the item; None if nothing, or if no boot has told."""
    for name in (*item.boot, *item.off) if known else ():
        if known.get(name) is None:
            fact = facts.known().get(name)
            return _GROUPS.get(fact.group if fact else "", f"its kernel reports no {name}")
    return None


def _left_out(item: TuningItem, known: Mapping[str, Any]) -> str:
    return _absent(item, known) or "left out by tuning_without in the testbox file"


def _unchanged(
    item: TuningItem, unit_jobs: Sequence[UnitJob], off: Sequence[UnitJob]
) -> str | None:
    if list(unit_jobs) == list(off):
        return f"the testbox's jobs or its file give {', '.join(item.boot)} themselves"
    return None


def _refused(
    testbox: Testbox, item: TuningItem, off: Sequence[UnitJob], trust: Trust
) -> str | None:
    if item.off_cmdline and CMDLINE not in testbox.can_set:
        return "its driver cannot set words of the kernel's command line"
    try:
        testbox.check_settings(off, trust)
    except ValueError as error:
        return str(error)
    return None


def by_reason(skipped: Mapping[str, str]) -> list[str]:
    """Return why items are not switched, in one line for each reason."""
    items: dict[str, list[str]] = {}
    for item, why in skipped.items():
        items.setdefault(why, []).append(item)
    return [f"{', '.join(names)}: {why}" for why, names in items.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval; all None if there are too few boots."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def beside(self, nothing: float) -> bool:
        """Return whether the interval leaves out the value that means no difference."""
        return (
            self.low is not None and self.high is not None and not self.low <= nothing <= self.high
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWorth:
    """One metric with an item off, against the list as it is.

    `level_pct` is the change of the level in per cent, `spread_ratio` the spread between boots over
    that with the list; `named` are those of `level` and `spread` that differ.
    """

    unit_job: str
    metric: str
    boots: int
    level_pct: Estimate
    spread_ratio: Estimate
    named: tuple[str, ...]
    words: str


def judge_item(
    job: UnitJob,
    metric: str,
    boots: tuple[Mapping[int, Sequence[float]], Mapping[int, Sequence[float]]],
    rule: Rule,
    items: int,
) -> ItemWorth:
    """Compare boots of the list as it is with boots that have an item off.

    Both map the number of a boot to the values of its runs; boots of equal number ran in one turn.
    `items` is how many items are compared.
    """
    usual, off = boots
    common = sorted(usual.keys() & off.keys())
    logs = scaled([*(usual[k] for k in common), *(off[k] for k in common)])
    means = [float(values.mean()) for values in logs]
    on, without = means[: len(common)], means[len(common) :]
    alpha = ALPHA / (2 * items)
    shift = mean_of([b - a for a, b in zip(on, without, strict=True)], alpha)
    level, spread = _percent(shift), _ratio(common, (on, without), alpha)
    least = MOVED_LEAST_SHARE * rule.min_effect_pct
    named = (
        *(("level",) if level.beside(0.0) and abs(level.value or 0.0) >= least else ()),
        *(("spread",) if spread.beside(1.0) else ()),
    )
    return ItemWorth(
        unit_job=job.name,
        metric=metric,
        boots=len(common),
        level_pct=level,
        spread_ratio=spread,
        named=named,
        words=_words(metric, level, spread, named),
    )


def mean_of(values: Sequence[float], alpha: float) -> Estimate:
    """Return the mean of differences with its interval at 1 - alpha (Student)."""
    n = len(values)
    if n < 2:
        return Estimate()
    middle = float(np.mean(values))
    half = float(stdtrit(n - 1, 1.0 - alpha / 2.0) * np.std(values, ddof=1) / math.sqrt(n))
    return Estimate(value=middle, low=middle - half, high=middle + half)


def _percent(shift: Estimate) -> Estimate:
    if shift.value is None or shift.low is None or shift.high is None:
        return shift
    value, low, high = (100.0 * math.expm1(v) for v in (shift.value, shift.low, shift.high))
    return Estimate(value=value, low=low, high=high)


def _ratio(turns: Sequence[int], sides: Sequence[Sequence[float]], alpha: float) -> Estimate:
    """Return the ratio of two spreads with its interval at 1 - alpha. A spread is the mean distance
    from a line, which takes out what drifts over the night.

    The interval holds the ratios by which one side can be scaled so that its share of the distances
    is not among the rarest of relabelled boots: a few boots far off, on one side by chance, widen
    it. All None if the boots are too few for that.
    """
    n = len(turns)
    if n < 3:
        return Estimate()
    on, off = _from_a_line(turns, sides)
    if not on.any() or not off.any():
        return Estimate()
    chosen = _relabelled(n)
    if 1.0 / len(chosen) > alpha / 2.0:
        return Estimate()
    low = _factor(chosen, (on, off), alpha / 2.0)
    high = _factor(chosen, (off, on), alpha / 2.0)
    return Estimate(value=float(off.sum() / on.sum()), low=low, high=1.0 / high)


def _from_a_line(turns: Sequence[int], sides: Sequence[Sequence[float]]) -> list[Array]:
    """Return each side's distances from a line: the median slope between two boots of a side
    (Theil and Sen), and the side's median. A boot far off moves neither."""
    x, (first, second) = np.asarray(turns, dtype=np.float64), np.triu_indices(len(turns), 1)
    values = [np.asarray(side, dtype=np.float64) for side in sides]
    rises = [(y[second] - y[first]) / (x[second] - x[first]) for y in values]
    level = [y - np.median(rises) * x for y in values]
    far = [np.abs(y - np.median(y)) for y in level]
    return [np.where(away > 1e-12, away, 0.0) for away in far]  # rounding of equal values


@functools.cache
def _relabelled(n: int) -> Array:
    """Return which n of 2 n boots are of one side, a row a choice: all, or many of them."""
    if math.comb(2 * n, n) <= _RELABELLED:
        chosen = np.array(list(itertools.combinations(range(2 * n), n)))
    else:
        chosen = np.random.default_rng(0).random((_RELABELLED, 2 * n)).argsort(axis=1)[:, :n]
    rows = np.zeros((len(chosen), 2 * n))
    np.put_along_axis(rows, chosen, 1.0, axis=1)
    return rows


def _factor(chosen: Array, sides: Sequence[Array], alpha: float) -> float:
    """Return the smallest factor between the sides whose chance of so large a second side is alpha.

    The chance grows with the factor; 40 halvings of its logarithm leave no digit that is printed.
    """
    below, above = -_FARTHEST, _FARTHEST
    for _ in range(40):
        middle = (below + above) / 2.0
        away = np.concatenate([sides[0], sides[1] * math.exp(-middle)])
        own = away[len(sides[0]) :].sum() * (1.0 - 1e-9)
        likely = float(np.mean(chosen @ away >= own)) > alpha
        below, above = (below, middle) if likely else (middle, above)
    return math.exp(below)


def _words(metric: str, level: Estimate, spread: Estimate, named: Sequence[str]) -> str:
    if level.value is None or level.low is None or level.high is None:
        return f"{metric}: too few boots"
    said = f"{metric} {_signed(level.value)} % ({_signed(level.low)} to {_signed(level.high)})"
    if spread.value is not None and spread.low is not None and spread.high is not None:
        said += (
            f", {times_the_spread(spread.value)}"
            f" ({two_digits(spread.low)} to {two_digits(spread.high)})"
        )
    if "spread" in named and spread.value is not None:
        more = spread.value**2
        said += (
            f": a comparison needs {two_digits(more if more > 1 else 1 / more)} times as many boots"
            f" {'without' if more > 1 else 'with'} it"
        )
    return said if named else f"{said}: no difference found"


def _signed(value: float) -> str:
    return two_digits(value, "+")
