"""Compare one metric of two kernels. Boots are the replicates; runs in one boot are not independent.

Log inside, percent at the edge: an effect is `log(head / base)` of the means of boot means, so that swapping the sides negates it
and scaling every sample changes nothing. A metric with a value that is zero or negative (or whose rule says so) is compared by
its difference instead. Formulas: docs/statistics.md, "Comparing two kernels".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from scipy.special import stdtr, stdtrit

Verdict = Literal["worse", "better", "changed", "same", "unclear", "invalid"]
MORE_BOOTS_AT_MOST: Final = 1000  # beyond this "how many more" is not an answer anybody can use


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRuns:
    """The runs of one boot, in the metric's unit. On a paired testbox the `k` of base and head name the same perturbation."""

    k: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a metric is judged. Spreads are relative (0.01 is 1 %), of one boot mean unless they say otherwise."""

    better: Literal["higher", "lower"] | None = None
    klass: str = "kpi"  # the metric's class, for the reader; its numbers are the fields below
    min_effect_pct: float = 1.0  # smaller: hundredths of a percent get reported; larger: real losses are called unclear
    paired: bool = False  # compare boot k of head with boot k of base
    alpha: float = 0.005  # 1 in 200 comparisons of equal kernels may get a verdict with a direction; larger: false alarms
    interval_alpha: float = 0.05  # of the printed interval: readers expect 95 %; it decides nothing
    resolution: float = 0.0  # step of the printed number, in the metric's unit: rounding alone spreads by resolution / sqrt(12)
    spread_floor: float = 1e-4  # lower: identical values of a repeatable testbox become infinite evidence
    layout: float = 0.0  # spread frozen into a kernel image (alignment, link order): more boots never average it out
    prior_sd: float = 0.0  # spread of one boot (of one pair when paired) known from elsewhere ...
    prior_df: float = 0.0  # ... and how many degrees of freedom that is worth; 0: not known
    form: Literal["ratio", "difference"] = "ratio"  # difference: percentages and other metrics where a ratio means nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    boots: int
    runs: int
    mean: float | None  # of boot means
    stddev: float | None  # between boot means; None with one boot


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVerdict:
    base: Side
    head: Side
    change_pct: float | None  # 100 * (head.mean / base.mean - 1)
    interval_pct: tuple[float, float] | None  # 95 % interval around it (Rule.interval_alpha)
    verdict: Verdict
    reason: str | None  # one sentence for unclear, invalid and same
    level: str | None = None  # None: plain means of boot means
    effect: float | None = None  # log ratio; in the difference form the difference over the larger of the two mean magnitudes
    stderr: float | None = None  # of `effect`, on its scale
    p: float | None = None  # two-sided, of "no effect"
    more_boots: int | None = None  # a side; what would settle an unclear row if nothing else changes


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns boot means into numbers whose differences are effects."""

    ratio: bool
    unit: float  # difference form: what counts as 1 (100 %); ratio form: 1

    def of(self, value: float) -> float:
        return math.log(value) if self.ratio else value / self.unit

    def threshold(self, pct: float) -> float:
        return math.log1p(pct / 100.0) if self.ratio else pct / 100.0

    def pct(self, effect: float, base_mean: float) -> float | None:
        if self.ratio:
            return 100.0 * math.expm1(effect)  # overflow is kept away by the caller
        return 100.0 * effect * self.unit / abs(base_mean) if base_mean else None


@dataclass(frozen=True, slots=True)
class _Spread:
    """How well an effect is known."""

    one_boot: float  # variance that a single boot a side (a single pair) has
    variance: float  # of the effect as measured, without `fixed`
    fixed: float  # variance that no number of boots averages out
    df: float

    @property
    def sd(self) -> float:
        return math.sqrt(self.variance + self.fixed)


def compare(base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule) -> RowVerdict:
    """Judge head against base. Never raises for what was measured: what cannot be judged is `invalid` or `unclear` with a reason.

    ValueError: one `k` twice on a side (the caller mixed two series).
    """
    base, head, note = _usable(base, head, rule)
    sides = side(base), side(head)
    problem = _invalid(base, head)
    if problem:
        return RowVerdict(
            base=sides[0],
            head=sides[1],
            change_pct=None,
            interval_pct=None,
            verdict="invalid",
            reason=problem,
        )
    base_means, head_means = (
        [_mean(b.values) for b in base],
        [_mean(b.values) for b in head],
    )
    base_mean, head_mean = _mean(base_means), _mean(head_means)
    scale = _scale(base_means, head_means, rule)
    effect = scale.of(head_mean) - scale.of(base_mean)
    row = RowVerdict(
        base=sides[0],
        head=sides[1],
        change_pct=_change_pct(base_mean, head_mean),
        interval_pct=None,
        verdict="unclear",
        reason=note,
        effect=effect,
    )
    if min(len(base), len(head)) < 2:
        short = 2 - min(len(base), len(head))
        which = "pair of boots" if rule.paired and len(base) == len(head) else "boot on a side"
        return replace(
            row,
            reason=_join(
                note,
                f"only one {which}: how much boots differ is not known; give at least {short} more a side",
            ),
            more_boots=short,
        )
    pairs = rule.paired and [b.k for b in base] == [h.k for h in head]
    spread = _spread(
        [scale.of(v) for v in base_means],
        [scale.of(v) for v in head_means],
        pairs,
        _floor(rule, scale, base_mean, head_mean),
        rule,
    )
    return _judge(row, spread, scale, base_mean, rule, pairs)


def side(boots: Sequence[BootRuns]) -> Side:
    """n, mean and spread of one side, as rows print them."""
    means = [_mean(b.values) for b in boots if b.values]
    return Side(
        boots=len(means),
        runs=sum(len(b.values) for b in boots),
        mean=_mean(means) if means else None,
        stddev=_stddev(means) if len(means) > 1 else None,
    )


def resolves(
    boots: int,
    cv_boot: float,
    *,
    alpha: float = 0.005,
    power: float = 0.8,
    paired: bool = False,
) -> float:
    """Smallest change in percent that `boots` a side show with probability `power`; `cv_boot` is the relative spread of a boot mean
    (of a pair difference when paired). math.inf with fewer than 2 boots. The usual t approximation, a little optimistic below 4 boots."""
    if boots < 2:
        return math.inf
    df, variance = (boots - 1, cv_boot**2 / boots) if paired else (2 * boots - 2, 2 * cv_boot**2 / boots)
    return 100.0 * math.expm1((_t(1 - alpha / 2, df) + _t(power, df)) * math.sqrt(variance))


def _usable(base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule) -> tuple[list[BootRuns], list[BootRuns], str | None]:
    """Boots that gave values, by k; on a paired testbox only those with a partner, and a note if that left some out."""
    by_k = [_by_k(base, "base"), _by_k(head, "head")]
    common = sorted(by_k[0].keys() & by_k[1].keys())
    lonely = len(by_k[0]) + len(by_k[1]) - 2 * len(common)
    if rule.paired and common and lonely and (len(common) >= 2 or min(map(len, by_k)) < 2):
        note = f"{lonely} boot{'s' * (lonely > 1)} without a partner on the other side left out"
        return [by_k[0][k] for k in common], [by_k[1][k] for k in common], note
    return (
        [by_k[0][k] for k in sorted(by_k[0])],
        [by_k[1][k] for k in sorted(by_k[1])],
        None,
    )


def _by_k(boots: Sequence[BootRuns], name: str) -> dict[int, BootRuns]:
    found: dict[int, BootRuns] = {}
    for boot in boots:
        if boot.k in found:
            raise ValueError(f"{name}: boot {boot.k} is given twice; each boot of a series has its own number")
        found[boot.k] = boot
    return {k: boot for k, boot in found.items() if boot.values}


def _invalid(base: Sequence[BootRuns], head: Sequence[BootRuns]) -> str | None:
    empty = [name for name, boots in (("base", base), ("head", head)) if not boots]
    if empty:
        return f"no boot of the {' and of the '.join(empty)} gave a value of this metric"
    if not all(math.isfinite(v) for boots in (base, head) for b in boots for v in b.values):
        return "a value is not a finite number"
    return None


def _scale(base: Sequence[float], head: Sequence[float], rule: Rule) -> _Scale:
    if rule.form == "ratio" and min(*base, *head) > 0:
        return _Scale(True, 1.0)
    unit = max(abs(_mean(base)), abs(_mean(head))) or max(map(abs, (*base, *head))) or 1.0
    return _Scale(False, unit)


def _floor(rule: Rule, scale: _Scale, base_mean: float, head_mean: float) -> float:
    """Spread of one boot mean, as an effect, that no set of samples can go below."""
    smallest = min(base_mean, head_mean) if scale.ratio else scale.unit
    return max(rule.spread_floor, rule.resolution / math.sqrt(12.0) / smallest)


def _spread(base: Sequence[float], head: Sequence[float], pairs: bool, floor: float, rule: Rule) -> _Spread:
    """Of the mean pair difference, or Welch's. Values are on the scale where differences are effects."""
    if pairs:
        s2, df = _variance(
            [h - b for b, h in zip(base, head, strict=True)],
            math.sqrt(2.0) * floor,
            rule,
        )
        parts = [(s2, len(base), df)]
    else:
        parts = [_variance_and_n(values, floor, rule) for values in (base, head)]
    fixed = 2.0 * rule.layout**2
    variance = sum(s2 / n for s2, n, _ in parts)
    df = (variance + fixed) ** 2 / sum((s2 / n) ** 2 / df for s2, n, df in parts)
    return _Spread(one_boot=sum(s2 for s2, _, _ in parts), variance=variance, fixed=fixed, df=df)


def _variance_and_n(values: Sequence[float], floor: float, rule: Rule) -> tuple[float, int, float]:
    s2, df = _variance(values, floor, rule)
    return s2, len(values), df


def _variance(values: Sequence[float], floor: float, rule: Rule) -> tuple[float, float]:
    """Variance of one value and its degrees of freedom. A known spread counts as `prior_df` more observations of it."""
    df = len(values) - 1
    s2 = _stddev(values) ** 2
    if rule.prior_df > 0:
        s2 = (df * s2 + rule.prior_df * rule.prior_sd**2) / (df + rule.prior_df)
    return max(s2, floor**2), df + max(rule.prior_df, 0.0)


def _judge(
    row: RowVerdict,
    spread: _Spread,
    scale: _Scale,
    base_mean: float,
    rule: Rule,
    pairs: bool,
) -> RowVerdict:
    assert row.effect is not None
    effect, least = row.effect, scale.threshold(rule.min_effect_pct)
    half = _t(1 - rule.alpha / 2, spread.df) * spread.sd
    row = replace(
        row,
        interval_pct=_interval(scale, effect, _t(1 - rule.interval_alpha / 2, spread.df) * spread.sd, base_mean),
        stderr=spread.sd,
        p=2.0 * float(stdtr(spread.df, -abs(effect) / spread.sd)),
    )
    if abs(effect) > half and abs(effect) >= least:
        return replace(row, verdict=_direction(effect, rule))
    if abs(effect) + half <= least:
        return replace(
            row,
            verdict="same",
            reason=_join(row.reason, f"no change above {rule.min_effect_pct:g} %"),
        )
    more = _more_boots(row, spread, least, rule, pairs)
    many = f"about {more} more boot{'s' * (more > 1)} a side would settle it" if more is not None else "no reasonable number of boots would settle it"
    if abs(effect) > half:
        why = f"there is a change, but it may be below {rule.min_effect_pct:g} %"
    elif abs(effect) >= least:
        why = f"no change at all cannot be ruled out at {100 * (1 - rule.alpha):g} %"
    else:
        why = f"a change above {rule.min_effect_pct:g} % cannot be ruled out"
    return replace(row, reason=_join(row.reason, f"{why}; {many}"), more_boots=more)


def _change_pct(base_mean: float, head_mean: float) -> float | None:
    """As anyone recomputes it from the printed means; None for a base of zero. Negative bases count by their magnitude."""
    return 100.0 * (head_mean - base_mean) / abs(base_mean) if base_mean else None


def _direction(effect: float, rule: Rule) -> Verdict:
    if rule.better is None:
        return "changed"
    return "better" if (effect > 0) == (rule.better == "higher") else "worse"


def _interval(scale: _Scale, effect: float, half: float, base_mean: float) -> tuple[float, float] | None:
    low, high = (scale.pct(min(e, 700.0), base_mean) for e in (effect - half, effect + half))
    return None if low is None or high is None else (low, high)


def _more_boots(row: RowVerdict, spread: _Spread, least: float, rule: Rule, pairs: bool) -> int | None:
    """How many more boots a side give a verdict if effect and spread stay as they are; None beyond MORE_BOOTS_AT_MOST."""
    assert row.effect is not None
    size = abs(row.effect)
    target = size if size >= least else least - size
    have = min(row.base.boots, row.head.boots)

    def settled(n: int) -> bool:
        variance = spread.one_boot / n
        df = ((variance + spread.fixed) / variance) ** 2 * ((n - 1) * (1 if pairs else 2) + max(rule.prior_df, 0.0))
        return _t(1 - rule.alpha / 2, df) * math.sqrt(variance + spread.fixed) < target

    low, high = have, have + MORE_BOOTS_AT_MOST
    if not settled(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high - have


def _t(p: float, df: float) -> float:
    return float(stdtrit(df, p))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _stddev(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _join(note: str | None, reason: str) -> str:
    return f"{note}; {reason}" if note else reason
