"""Compare one metric of two kernels. Boots are the replicates; runs in one boot are not independent.

Log inside, percent at the edge: an effect is `log(head / base)` of the levels of the two sides, so that swapping the sides negates it
and scaling every sample changes nothing. Counts are compared by their roots; shares, and metrics with a value that is zero or negative,
by their difference. Formulas: docs/statistics.md, "Comparing two kernels".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from swingbot.core.model.comparison_row import Bounds, ComparisonRow, Points, Side, Verdict
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.stats.samples import Drawn, Levels, draw, impossible, levels, plain_side
from swingbot.core.stats.spread import Spread, counted, spread_of
from swingbot.core.stats.trend import drift, together_p, trend_p

__all__ = ["BootRuns", "Rule", "compare"]

MORE_BOOTS_AT_MOST: Final = 1000  # beyond this "how many more" is not an answer anybody can use


def compare(
    base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule, *, invalid: str | None = None
) -> ComparisonRow:
    """Judge head against base. Never raises for what was measured: what cannot be judged is `invalid` or `unclear` with a reason.

    `invalid`: what is known against this comparison from elsewhere, such as facts that differ; its numbers are still given.
    ValueError: one `k` twice on a side (the caller mixed two series).
    """
    lost, few = _lost(base, head, rule)
    drawn = draw(base, head, rule)
    problem = impossible(drawn, rule)
    if problem:
        return _nothing(drawn, rule, _join(invalid, problem))
    if rule.poisson and not all(v.is_integer() for s in drawn.sides for b in s for v in b.values):
        rule = replace(rule, poisson=False)  # a rate, not a count of events
    found = levels(drawn, rule)
    drifting, drift_note = _drift(drawn, found, rule)
    unsteady, run_note = _run_drift(drawn, found, rule)
    row = replace(
        _row(found, rule),
        reason=_join(drawn.note, _join(few, _join(found.note, _join(drift_note, run_note)))),
    )
    row = (
        _short(row, drawn, rule)
        if min(len(drawn.base), len(drawn.head)) < 2
        else _judge(row, found, drawn.pairs, rule)
    )
    against = _join(invalid, _join(lost, _join(drifting, unsteady)))
    return replace(row, verdict="invalid", reason=against, more_boots=None) if against else row


def _nothing(drawn: Drawn, rule: Rule, reason: str | None) -> ComparisonRow:
    """The row of numbers that cannot be compared at all."""
    base, head = (plain_side(side) for side in drawn.sides)
    return replace(_unjudged(base, head, rule), verdict="invalid", reason=reason)


def _row(found: Levels, rule: Rule) -> ComparisonRow:
    base, head = found.at
    d = found.scale.of(head) - found.scale.of(base)
    return replace(
        _unjudged(*found.sides, rule),
        change_pct=_change_pct(base, head),
        level=found.level,
        effect=found.scale.effect(d),
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


def _short(row: ComparisonRow, drawn: Drawn, rule: Rule) -> ComparisonRow:
    """One boot tells nothing of how boots differ."""
    short = 2 - min(len(drawn.base), len(drawn.head))
    which = "pair of boots" if drawn.pairs else "boot on a side"
    return replace(
        row,
        reason=_join(
            row.reason,
            f"only one {which}: how much boots differ is not known; give at least {short} more a side",
        ),
        more_boots=short,
        points=Points(change=_points(row), interval=None) if rule.points else None,
    )


def _judge(row: ComparisonRow, found: Levels, pairs: bool, rule: Rule) -> ComparisonRow:
    scale, (base, head) = found.scale, found.at
    if base == head == 0 and not any(v for units in found.units for v in units):
        return replace(
            row, verdict="same", reason=_join(row.reason, "every value of both sides is 0")
        )
    spread, d = spread_of(found, pairs, rule), scale.of(head) - scale.of(base)
    least, half, shown = (
        scale.threshold(rule.min_effect_pct),
        spread.half(rule.alpha),
        spread.half(rule.interval_alpha),
    )
    row = replace(
        row,
        interval_pct=_interval(scale.pct(d - shown, base), scale.pct(d + shown, base)),
        stderr=scale.slope(d) * spread.sd,
        df=spread.df,
        p=_finite(spread.p(d)),
        margin_pct=_finite(scale.margin(abs(d) + half)),
        points=Points(
            change=_points(row), interval=_interval(100.0 * (d - shown), 100.0 * (d + shown))
        )
        if rule.points
        else None,
    )
    if abs(d) > half and abs(d) >= least:
        return replace(row, verdict=_direction(d, rule))
    if abs(d) + half <= least:
        return replace(
            row,
            verdict="same",
            reason=_join(
                row.reason, f"no change above {_margin(scale.margin(abs(d) + half), rule)}"
            ),
        )
    more = _more_boots(row, d, spread, least, rule, pairs, found.trimmed)
    many = (
        f"about {more} more boot{'s' * (more > 1)} a side would settle it"
        if more is not None
        else "no reasonable number of boots would settle it"
    )
    if abs(d) > half:
        why = f"there is a change, but it may be below {_amount(rule.min_effect_pct, rule)}"
    elif abs(d) >= least:
        why = f"no change at all cannot be ruled out at {100 * (1 - rule.alpha):g} %"
    else:
        why = f"a change above {_amount(rule.min_effect_pct, rule)} cannot be ruled out"
    return replace(row, reason=_join(row.reason, f"{why}; {many}"), more_boots=more)


def _lost(
    base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule
) -> tuple[str | None, str | None]:
    """(why too many runs are missing, else None; what is missing in words, else None)."""
    bad: list[str] = []
    some: list[str] = []
    for name, boots in (("base", base), ("head", head)):
        lost = sum(b.lost for b in boots)
        asked = lost + sum(len(b.values) for b in boots)
        if lost:
            (bad if lost > rule.lost_share * asked else some).append(
                f"{lost} of {asked} runs of {name} gave no result"
            )
    return f"{' and '.join(bad)}: what is left may be the lucky ones" if bad else None, "; ".join(
        some
    ) or None


def _drift(drawn: Drawn, found: Levels, rule: Rule) -> tuple[str | None, str | None]:
    """(why a drift makes the comparison void, else None; a note on a drift that cannot explain the change, else None)."""
    scale, (base, head) = found.scale, found.at
    values = [[scale.of(v) for v in units] for units in found.units]
    series = [[h - b for b, h in zip(*values, strict=True)]] if drawn.pairs else values
    long_enough = [s for s in series if len(s) > 2]
    if not long_enough or trend_p(long_enough) >= rule.trend_alpha:
        return None, None
    far = max((drift(s) for s in long_enough), key=abs)
    if abs(far) < scale.threshold(rule.min_effect_pct):
        return None, None
    what = "pairs" if drawn.pairs else "boots"
    said = f"the {what} drift by {_amount(math.copysign(scale.margin(abs(far)), far), rule, '+.2g')} in the order they ran"
    if abs(far) < abs(scale.of(head) - scale.of(base)) / 2.0:
        return None, said
    return f"{said}, beyond chance (1 in {1 / rule.trend_alpha:.0f})", None


def _run_drift(drawn: Drawn, found: Levels, rule: Rule) -> tuple[str | None, str | None]:
    """The same of the runs within their boots: what both sides do alike cancels, what they do not makes the change depend on how many runs there are."""
    try:
        sides = [
            [[found.scale.of(v) for v in b.values] for b in boots if len(b.values) > 2]
            for boots in drawn.sides
        ]
    except ValueError:  # a single run has no place on the scale
        return None, None
    if 2 * min(together_p(series) for series in sides) >= rule.trend_alpha:
        return None, None
    base, head = (
        math.fsum(drift(values) for values in series) / len(series) if series else 0.0
        for series in sides
    )
    least = found.scale.threshold(rule.min_effect_pct)
    said = [
        _amount(math.copysign(found.scale.margin(abs(far)), far), rule, "+.2g")
        for far in (base, head)
    ]
    if abs(base - head) >= least:
        how = f"the runs drift within their boots, by {said[0]} in base and {said[1]} in head"
        return (
            f"{how}, beyond chance (1 in {1 / rule.trend_alpha:.0f}): the change depends on the number of runs",
            None,
        )
    if max(abs(base), abs(head)) >= least:
        return (
            None,
            f"the runs drift within their boots, by {said[0]} in base and {said[1]} in head: alike, so it cancels (warmup: 1 leaves the first out)",
        )
    return None, None


def _change_pct(base: float, head: float) -> float | None:
    """As anyone recomputes it from the printed levels; None for a base of zero. Negative bases count by their magnitude."""
    change = 100.0 * ((head - base) / abs(base)) if base else math.nan
    return change if math.isfinite(change) else None


def _points(row: ComparisonRow) -> float | None:
    return None if row.base.mean is None or row.head.mean is None else row.head.mean - row.base.mean


def _direction(d: float, rule: Rule) -> Verdict:
    if rule.better is None:
        return "changed"
    return "better" if (d > 0) == (rule.better == "higher") else "worse"


def _interval(low: float | None, high: float | None) -> Bounds | None:
    """None where an end is missing or has no number."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return low, high


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _more_boots(
    row: ComparisonRow,
    d: float,
    spread: Spread,
    least: float,
    rule: Rule,
    pairs: bool,
    trimmed: bool,
) -> int | None:
    """How many more boots a side give a verdict if effect and spread stay as they are; None beyond MORE_BOOTS_AT_MOST."""
    size = abs(d)
    target = size if size >= least else least - size
    have = min(row.base.boots, row.head.boots)

    def settled(n: int) -> bool:
        m = counted(n, trimmed)
        df = (m - 1) * (1 if pairs else 2) + max(rule.prior_df, 0.0)
        return (
            Spread(spread.one_boot, spread.one_boot / m, spread.fixed, df).half(rule.alpha) < target
        )

    low, high = have, have + MORE_BOOTS_AT_MOST
    if not settled(high):
        return None
    while high - low > 1:
        halfway = (low + high) // 2
        low, high = (low, halfway) if settled(halfway) else (halfway, high)
    return high - have


def _margin(pct: float, rule: Rule) -> str:
    """Rounded up to two digits, so that what is said stays true; never above the rule's minimum, which was shown."""
    step = 10.0 ** (math.floor(math.log10(pct)) - 1) if pct > 0 else 1.0
    return _amount(
        min(float(f"{math.ceil(pct / step - 1e-9) * step:.2g}"), rule.min_effect_pct), rule
    )


def _amount(value: float, rule: Rule, form: str = "g") -> str:
    return f"{value:{form}} {'points' if rule.points else '%'}"


def _join(note: str | None, reason: str | None) -> str | None:
    return f"{note}; {reason}" if note and reason else note or reason
