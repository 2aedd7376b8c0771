"""Compare one metric of two kernels. Boots are the replicates; runs in one boot are not
independent.

An effect is `log(head / base)` of the levels of both sides; percentages are computed only for
output. Swapping the sides negates an effect, and scaling all samples does not change it. Counts
are compared by their square roots. Shares, and metrics with values of zero or less, are compared
by their difference. Formulas: docs/statistics.md, "Comparing two kernels".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from swingbot.core.model.comparison_row import (
    Bounds,
    ComparisonRow,
    LayoutSpread,
    Points,
    Side,
    Verdict,
)
from swingbot.core.stats.interleaving import blocks_of
from swingbot.core.stats.modes import (
    fewest_apart,
    mixture_p,
    more_together,
    most_in_smaller_mode,
    separation_p,
)
from swingbot.core.stats.moments import change_pct
from swingbot.core.stats.repeated_digits import repeated_digits
from swingbot.core.stats.rounding import printed_step, rounding_bias, tied_step
from swingbot.core.stats.rows import Alone, BootRuns, Rule
from swingbot.core.stats.samples import BootUnits, Levels, draw, impossible, levels, plain_side
from swingbot.core.stats.spread import EffectSpread, counted, spread_of
from swingbot.core.stats.spread_change import spread_change
from swingbot.core.stats.trend import drift, drifts_differ_p, together_p, trend_p
from swingbot.core.stats.unseen_path import excluded
from swingbot.core.text.numbers import rounded_up, times_the_spread, two_digits
from swingbot.core.thresholds import FAR_RUN_SDS, FEWEST_UNPAIRED

__all__ = ["BootRuns", "Rule", "compare"]

MORE_BOOTS_AT_MOST: Final = 1000  # larger estimates of "how many more boots" are useless
_ROUNDING_SHARE: Final = 0.25  # of half the interval; rounding is named from here on


def compare(
    base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule, *, invalid: str | None = None
) -> ComparisonRow:
    """Judge head against base.

    Measured values never raise: what cannot be judged is `invalid` or `unclear`, with a reason.
    `invalid` is a known objection to this comparison, such as differing facts; the numbers are
    still computed. Raises ValueError if a side has the same `k` twice (the caller mixed two
    series).
    """
    lost, few = _lost(base, head, rule)
    blocks = blocks_of(base, head)
    if blocks is None:
        return _judged(draw(base, head, rule), rule, few, _join(invalid, lost))
    rule = replace(rule, paired=False, family=rule.family and Alone(rule.family.rows))
    row = _judged(draw(blocks.base, blocks.head, rule), rule, few, _join(invalid, lost))
    sides = [plain_side(side) for side in draw(base, head, rule).sides]
    if row.verdict == "unclear" and min(len(blocks.base), len(blocks.head)) < 2:
        row = replace(
            row, reason=_join(few, "boot the two in turns that mirror: b h h b"), more_boots=None
        )
    return replace(
        row,
        base=replace(sides[0], mean=row.base.mean),
        head=replace(sides[1], mean=row.head.mean),
        reason=_join(blocks.note, row.reason),
    )


def _judged(drawn: BootUnits, rule: Rule, few: str | None, invalid: str | None) -> ComparisonRow:
    """Judge the units; `few` says which results are missing, `invalid` is a known objection."""
    problem = impossible(drawn, rule)
    if problem:
        return _nothing(drawn, rule, _join(invalid, problem))
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return _computed(drawn, rule, few, invalid)
    except (ArithmeticError, ValueError):  # such as 0 next to 1e200, whose square overflows
        why = (
            "the values span too many orders of magnitude to compute with; leave out values that"
            " were not measured"
        )
        return _nothing(drawn, rule, _join(invalid, why))


def _computed(drawn: BootUnits, rule: Rule, few: str | None, invalid: str | None) -> ComparisonRow:
    if rule.poisson and not all(v.is_integer() for s in drawn.sides for b in s for v in b.values):
        rule = replace(rule, poisson=False)  # a rate, not a count of events
    measured = levels(drawn, rule)
    drifting, drift_note = _drift(drawn, measured, rule)
    unsteady, run_note = _run_drift(drawn, measured, rule)
    row = replace(
        _row(measured, rule),
        reason=_join(drawn.note, _join(few, _join(measured.note, _join(drift_note, run_note)))),
    )
    if min(len(drawn.base), len(drawn.head)) < 2:
        row = _short(row, drawn, rule)
    else:
        row = _with_spread_change(_judge(row, measured, drawn, rule), measured, drawn.pairs, rule)
    against = _join(invalid, _join(drifting, unsteady))
    if against:
        return replace(row, verdict="invalid", reason=against, more_boots=None)
    # boots of equal images with equal k are one on a paired testbox; MemTotal is always the same
    if row.changed or rule.paired or rule.klass == "counter":
        return row
    stuck = repeated_digits(
        [[tuple(boot.values) for boot in side] for side in drawn.sides], paired=False
    )
    if not stuck:
        return row
    said = None if row.verdict == "same" else row.reason
    return replace(row, verdict="unclear", reason=_join(said, stuck), more_boots=None)


def _nothing(drawn: BootUnits, rule: Rule, reason: str | None) -> ComparisonRow:
    """Return a row whose numbers cannot be compared at all."""
    base, head = (plain_side(side) for side in drawn.sides)
    return replace(_unjudged(base, head, rule), verdict="invalid", reason=reason)


def _row(measured: Levels, rule: Rule) -> ComparisonRow:
    base, head = measured.at
    d = measured.scale.of(head) - measured.scale.of(base)
    return replace(
        _unjudged(*measured.sides, rule),
        change_pct=change_pct(base, head),
        level=measured.level,
        tail=measured.tail,
        effect=measured.scale.effect(d),
    )


def _unjudged(base: Side, head: Side, rule: Rule) -> ComparisonRow:
    return ComparisonRow(
        klass=rule.klass,
        better=rule.better,
        min_effect_pct=rule.min_effect_pct,
        paired=rule.paired,
        base=base,
        head=head,
        change_pct=None,
        interval_pct=None,
        points=Points(change=None, interval=None) if rule.points else None,
        verdict="unclear",
    )


def _rounding(drawn: BootUnits, measured: Levels, rule: Rule) -> tuple[float, float]:
    """Return (what rounding may add to the effect, on the scale; the step of the values).

    Counts are not rounded. Outliers that a level leaves out do not make up for rounding, and the
    runs of a boot do not if it counts by their median.
    """
    if rule.form == "root" or not rule.rounding:
        return 0.0, 0.0
    runs = (v for side in drawn.sides for boot in side for v in boot.values)
    step = max(printed_step(runs), *map(tied_step, measured.units))
    total = 0.0
    for side, units, kept, level in zip(
        (drawn.base, drawn.head), measured.units, measured.kept, measured.at, strict=True
    ):
        values = (
            [units[i] for i in kept]
            if measured.medians
            else [v for i in kept for boot in side[i] for v in boot.values]
        )
        size = abs(level) or 1.0
        total += measured.scale.stretch(size) * rounding_bias(values, step) / size
    return total, step


def _short(row: ComparisonRow, drawn: BootUnits, rule: Rule) -> ComparisonRow:
    """Reject a comparison with a single boot, which says nothing about how much boots differ."""
    short = 2 - min(len(drawn.base), len(drawn.head))
    which = "pair of boots" if drawn.pairs else "boot on a side"
    return replace(
        row,
        reason=_join(
            row.reason,
            f"only one {which}: how much boots differ is not known; add at least"
            f" {short} more per side",
        ),
        more_boots=short,
        points=Points(change=_points(row), interval=None) if rule.points else None,
    )


def _judge(row: ComparisonRow, measured: Levels, drawn: BootUnits, rule: Rule) -> ComparisonRow:
    pairs, scale, (base, head) = drawn.pairs, measured.scale, measured.at
    if base == head == 0 and not any(v for units in measured.units for v in units):
        return replace(
            row, verdict="same", reason=_join(row.reason, "every value of both sides is 0")
        )
    spread, d = spread_of(measured, pairs, rule), scale.of(head) - scale.of(base)
    rounding, step = _rounding(drawn, measured, rule)
    least, half, shown = (
        scale.threshold(rule.min_effect_pct),
        spread.half(rule.alpha) + rounding,
        spread.half(rule.interval_alpha) + rounding,
    )
    # Outliers that only one side has may belong to its kernel, and be twice as many.
    aside, with_them = abs(measured.aside), d + measured.aside
    low, high = (
        d - shown + min(2.0 * measured.aside, 0.0),
        d + shown + max(2.0 * measured.aside, 0.0),
    )
    row = replace(
        row,
        interval_pct=_interval(scale.pct(low, base), scale.pct(high, base)),
        stderr=scale.slope(d) * spread.governing.sd,
        df=spread.governing.df,
        p=_finite(spread.p(math.copysign(max(abs(d) - rounding, 0.0), d))),
        layout=_layout(spread.governing, rule),
        margin_pct=_finite(scale.margin(abs(d) + half + aside)),
        points=Points(change=_points(row), interval=_interval(100.0 * low, 100.0 * high))
        if rule.points
        else None,
        reason=_join(
            row.reason,
            f"the values come in steps of {step:.6g}, and their rounding alone may change the"
            f" result by {_about(scale.margin(rounding), rule)}"
            if rounding >= _ROUNDING_SHARE * shown
            else None,
        ),
    )
    against = 2.0 * aside if d * measured.aside < 0.0 else 0.0
    directed = abs(d) > half and abs(d) >= least
    if directed and abs(d) > half + against:
        row = replace(row, verdict=_direction(d, rule))
        return row if pairs or rule.unimodal else _unless_modes(row, measured, rule, spread, d)
    if directed or abs(d) + half <= least < abs(d) + half + aside:
        pct = None if rule.points else scale.pct(with_them, base)
        change = math.copysign(scale.margin(abs(with_them)), with_them) if pct is None else pct
        return replace(
            row,
            reason=_join(
                row.reason,
                "only one side has outliers, and with them the change is"
                f" {_about(change, rule, '+')}",
            ),
        )
    if abs(d) + half <= least:
        above = _margin(scale.margin(abs(d) + half + aside), rule)
        return replace(
            row,
            verdict="same",
            reason=_join(row.reason, f"no change above {above}{_unseen(row, measured, rule)}"),
        )
    target = (abs(d) if abs(d) >= least else least - abs(d)) - rounding
    more = _more_boots(row, target, spread, rule, pairs, measured.trimmed)
    if more is not None and not pairs and not rule.unimodal:
        more = max(more, _modes_apart(measured, rule, spread, d).short)
    many = (
        f"about {more} more boot{'s' * (more > 1)} a side would settle it"
        if more is not None
        else "no reasonable number of boots would settle it"
        + ("; its layout spread is assumed" if row.layout and row.layout.assumed else "")
    )
    if abs(d) > half:
        why = f"there is a change, but it may be below {_amount(rule.min_effect_pct, rule)}"
    elif abs(d) >= least:
        why = f"no change at all cannot be ruled out at {100 * (1 - rule.alpha):g} %"
    else:
        why = f"a change above {_amount(rule.min_effect_pct, rule)} cannot be ruled out"
    return replace(row, reason=_join(row.reason, f"{why}; {many}"), more_boots=more)


def _unseen(row: ComparisonRow, measured: Levels, rule: Rule) -> str:
    """Say which paths that some runs or boots take are excluded, where none is far off."""
    sides = (row.base, row.head)
    spreads = [side.stddev if side.runs == side.boots else side.stddev_within for side in sides]
    known = [spread for spread in spreads if spread is not None]
    level = min(abs(side.mean or 0.0) for side in sides)
    if measured.note or row.paired or measured.scale.form == "root" or not known or not level:
        return ""
    off = FAR_RUN_SDS * max(known) * (1.0 if rule.points else 100.0 / level)
    size = _amount(rounded_up(max(off, rule.min_effect_pct)), rule)
    fewest = (min(side.boots for side in sides), min(side.runs for side in sides))
    return f", and {excluded(*fewest, size)}"


def _layout(spread: EffectSpread, rule: Rule) -> LayoutSpread | None:
    if not rule.layout:
        return None
    fixed = spread.fixed * rule.layout**2 / (rule.layout**2 + rule.day**2)
    return LayoutSpread(
        sd_pct=100.0 * rule.layout,
        df=None if math.isinf(rule.layout_df) else rule.layout_df,
        share=fixed / (spread.variance + spread.fixed),
    )


@dataclass(frozen=True, slots=True)
class _Apart:
    """How often modes of boots alone would separate the sides of a row, if its boots fell into
    two."""

    often: float  # share of comparisons, or of tables, of equal kernels
    short: int  # boots that each side lacks for a direction


def _modes_apart(measured: Levels, rule: Rule, spread: EffectSpread, d: float) -> _Apart:
    """Two modes at the distance d.

    The spread of the noise record limits the share of the smaller mode. Without a record any share
    is possible, and fewer than FEWEST_UNPAIRED boots get no direction. A family whose arms agree in
    their spread shows no modes.
    """
    n, m = map(len, measured.units)
    rows = rule.family.rows if rule.family else 1
    pooled = spread.shared is not None and spread.shared.pooled is not None
    fewest = FEWEST_UNPAIRED if rows == 1 or pooled else fewest_apart(rows)
    short = max(0, fewest - min(n, m))
    most = 0.5
    if rule.sd_at_most is not None:
        most = most_in_smaller_mode(abs(d), rule.sd_at_most * measured.scale.relative)
        needed = more_together(n, m, most, rule.alpha / rows)
        short = min(short, needed) if pooled else needed
    return _Apart(min(1.0, rows * separation_p(n, m, most)), short)


def _unless_modes(
    row: ComparisonRow, measured: Levels, rule: Rule, spread: EffectSpread, d: float
) -> ComparisonRow:
    """Make a row with a direction unclear if two modes of boots would cause it too often."""
    rows = rule.family.rows if rule.family else 1
    apart = _modes_apart(measured, rule, spread, d)
    if apart.short > 0:
        of = f"tables of {rows} rows" if rows > 1 else "comparisons"
        record = ", as the noise record allows" if rule.sd_at_most is not None else ""
        return replace(
            row,
            verdict="unclear",
            reason=_join(
                row.reason,
                f"the sides are apart, but if boots fall into two modes{record}, so few boots do"
                f" that in {two_digits(100 * apart.often)} % of {of} of equal kernels;"
                f" {apart.short} more boot{'s' * (apart.short > 1)} a side would settle it",
            ),
            more_boots=apart.short,
        )
    mapped = [
        [measured.scale.of(units[i]) for i in keep]
        for units, keep in zip(measured.units, measured.kept, strict=True)
    ]
    p = mixture_p(mapped[0], mapped[1])
    if p is None or p * rows < rule.alpha:
        return row
    return replace(
        row,
        verdict="unclear",
        reason=_join(
            row.reason,
            "boots fall into two modes, and equal kernels fill them as unevenly in"
            f" {two_digits(100 * p)} % of comparisons",
        ),
    )


def _with_spread_change(
    row: ComparisonRow, measured: Levels, pairs: bool, rule: Rule
) -> ComparisonRow:
    """Add a change of the spread between boots to the row, if there is one."""
    if pairs or not rule.headlines or not rule.spread_change_p:
        return row
    mapped = [[measured.scale.of(v) for v in side] for side in measured.units]
    ratio = spread_change(mapped[0], mapped[1], rule.spread_change_p / rule.headlines)
    if ratio is None:
        return row
    times = (
        times_the_spread(ratio)
        if ratio > 1.0
        else f"the spread between boots is {two_digits(1.0 / ratio)} times smaller"
    )
    return replace(
        row,
        spread_ratio=ratio,
        reason=_join(row.reason, times if row.changed else f"same mean, {times}"),
    )


def _lost(
    base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule
) -> tuple[str | None, str | None]:
    """Return (why too many runs are missing or None, which runs are missing or None)."""
    bad: list[str] = []
    some: list[str] = []
    for name, boots in (("base", base), ("head", head)):
        lost = sum(b.lost for b in boots)
        asked = lost + sum(len(b.values) for b in boots)
        if lost:
            (bad if lost > rule.lost_share * asked else some).append(
                f"{lost} of {asked} runs of {name} gave no result"
            )
    return (
        f"{' and '.join(bad)}: the remaining runs may be the lucky ones" if bad else None,
        "; ".join(some) or None,
    )


def _drift(drawn: BootUnits, measured: Levels, rule: Rule) -> tuple[str | None, str | None]:
    """Return (a drift that makes the comparison invalid, a note on a harmless drift), or None
    each."""
    scale, (base, head) = measured.scale, measured.at
    values = [[scale.of(v) for v in units] for units in measured.units]
    series = [[h - b for b, h in zip(*values, strict=True)]] if drawn.pairs else values
    long_enough = [s for s in series if len(s) > 2]
    if not long_enough or not rule.trend_alpha:
        return None, None
    p = trend_p(long_enough)
    note_p = rule.trend_note_alpha / rule.headlines if rule.headlines else 0.0
    if p >= max(rule.trend_alpha, note_p):
        return None, None
    far = max((drift(s) for s in long_enough), key=abs)
    units = "pairs" if drawn.pairs else "boots"
    amount = _about(math.copysign(scale.margin(abs(far)), far), rule, "+")
    said = f"the {units} drift by {amount} in the order they ran"
    noted = f"{said}: 1 in {1 / p:.0f} by chance" if p < note_p else None
    if p >= rule.trend_alpha or abs(far) < scale.threshold(rule.min_effect_pct):
        return None, noted
    if abs(far) < abs(scale.of(head) - scale.of(base)) / 2.0:
        return None, said
    return f"{said}, beyond chance (1 in {1 / rule.trend_alpha:.0f})", None


def _run_drift(drawn: BootUnits, measured: Levels, rule: Rule) -> tuple[str | None, str | None]:
    """Do the same for drifts of runs within their boots.

    A drift on both sides cancels. If the drifts differ, the change depends on the number of runs.
    """
    try:
        sides = [
            [[measured.scale.of(v) for v in b.values] for b in boots if len(b.values) > 2]
            for boots in drawn.sides
        ]
    except ValueError:  # a single run cannot be mapped to the scale
        return None, None
    if 2 * min(together_p(series) for series in sides) >= rule.trend_alpha:
        return None, None
    base, head = (
        math.fsum(drift(values) for values in series) / len(series) if series else 0.0
        for series in sides
    )
    least = measured.scale.threshold(rule.min_effect_pct)
    said = [
        _about(math.copysign(measured.scale.margin(abs(far)), far), rule, "+")
        for far in (base, head)
    ]
    if abs(base - head) >= least and drifts_differ_p(*sides) < rule.trend_alpha:
        how = f"the runs drift within their boots, by {said[0]} in base and {said[1]} in head"
        return (
            f"{how}, beyond chance (1 in {1 / rule.trend_alpha:.0f}): the change depends on the"
            " number of runs",
            None,
        )
    if max(abs(base), abs(head)) >= least:
        return (
            None,
            f"the runs drift within their boots, by {said[0]} in base and {said[1]} in head; the"
            " drifts do not differ detectably, so they cancel (warmup: 1 drops the first run)",
        )
    return None, None


def _points(row: ComparisonRow) -> float | None:
    return None if row.base.mean is None or row.head.mean is None else row.head.mean - row.base.mean


def _direction(d: float, rule: Rule) -> Verdict:
    if rule.better is None:
        return "changed"
    return "better" if (d > 0) == (rule.better == "higher") else "worse"


def _interval(low: float | None, high: float | None) -> Bounds | None:
    """Return None if a bound is missing or not finite."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return low, high


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _more_boots(
    row: ComparisonRow, target: float, spread: EffectSpread, rule: Rule, pairs: bool, trimmed: bool
) -> int | None:
    """Return how many more boots per side narrow half the interval to `target`, if effect and
    spread do not change.

    None beyond MORE_BOOTS_AT_MOST.
    """
    have = min(row.base.boots, row.head.boots)

    def settled(n: int) -> bool:
        m = counted(n, trimmed)
        df = (m - 1) * (1 if pairs else 2) + max(rule.prior_df, 0.0)
        return spread.at(m, df).half(rule.alpha) < target

    low, high = have, have + MORE_BOOTS_AT_MOST
    if not settled(high):
        return None
    while high - low > 1:
        halfway = (low + high) // 2
        low, high = (low, halfway) if settled(halfway) else (halfway, high)
    return high - have


def _margin(pct: float, rule: Rule) -> str:
    """Round up to two digits so that the claim stays true, but never above the rule's minimum."""
    return _amount(min(rounded_up(pct), rule.min_effect_pct), rule)


def _amount(value: float, rule: Rule) -> str:
    return f"{value:g} {('point' if value == 1.0 else 'points') if rule.points else '%'}"


def _about(value: float, rule: Rule, sign: Literal["", "+"] = "") -> str:
    return f"{two_digits(value, sign)} {'points' if rule.points else '%'}"


def _join(note: str | None, reason: str | None) -> str | None:
    return f"{note}; {reason}" if note and reason else note or reason
