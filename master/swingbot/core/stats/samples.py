"""Derive the compared numbers from boots and runs: selection, pairing, value of each boot."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from swingbot.core.model.comparison_row import Side, Tail
from swingbot.core.stats.modes import fisher_p
from swingbot.core.stats.moments import change_pct, mean, pooled, squares, stddev
from swingbot.core.stats.robust import median, middle, wild
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.stats.scale import Scale, scale_for
from swingbot.core.text.numbers import two_digits
from swingbot.core.thresholds import FEWEST_WITH_WILD, SLOW_PATH_P, WILD_OWN_P
from swingbot_jobs import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class BootUnits:
    """The boots of both sides in units.

    A unit is one boot, or on a paired testbox all boots of a side in one block.
    """

    base: list[list[BootRuns]]
    head: list[list[BootRuns]]
    pairs: bool  # unit i of base belongs to unit i of head
    note: str | None

    @property
    def sides(self) -> tuple[list[BootRuns], list[BootRuns]]:
        return [b for unit in self.base for b in unit], [b for unit in self.head for b in unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The values to compare.

    `units` has one value per unit and side; `kept` are the indices of the units in the level.
    """

    units: tuple[list[float], list[float]]
    kept: tuple[tuple[int, ...], tuple[int, ...]]
    # (variance of one boot due to its runs, degrees of freedom); None without repeats or with
    # outliers
    runs: tuple[float, int] | None
    trimmed: bool
    medians: bool
    sides: tuple[Side, Side]
    scale: Scale
    level: str | None
    note: str | None
    tail: Tail | None  # runs far off on one side beyond chance
    # effect of outliers that only one side has, and that its level leaves out; on the scale, signed
    aside: float

    @property
    def at(self) -> tuple[float, float]:
        base, head = (side.mean for side in self.sides)
        assert base is not None
        assert head is not None
        return base, head


def draw(base: Sequence[BootRuns], head: Sequence[BootRuns], rule: Rule) -> BootUnits:
    """Select the boots with values, by k; on a paired testbox only those with a partner.

    A note says how many were left out. Raises ValueError if a side has the same `k` twice (the
    caller mixed two series).
    """
    by_block = [_by_block(base, "base", rule), _by_block(head, "head", rule)]
    timed = all(b.at is not None for b in (*base, *head))

    def when(unit: Sequence[BootRuns]) -> tuple[float, int]:
        return (mean([b.at for b in unit if b.at is not None]) if timed else 0.0), unit[0].k

    common = sorted(
        by_block[0].keys() & by_block[1].keys(),
        key=lambda k: (when([*by_block[0][k], *by_block[1][k]])[0], k),
    )
    pairs = rule.paired and bool(common) and (len(common) >= 2 or min(map(len, by_block)) < 2)
    if not pairs:
        sides = [[[b] for unit in blocks.values() for b in unit] for blocks in by_block]
        one_by_one = [sorted(side, key=when) for side in sides]
        return BootUnits(base=one_by_one[0], head=one_by_one[1], pairs=False, note=None)
    lonely = sum(len(unit) for blocks in by_block for k, unit in blocks.items() if k not in common)
    note = (
        f"{lonely} boot{'s' * (lonely > 1)} without a partner on the other side left out"
        if lonely
        else None
    )
    return BootUnits(
        base=[by_block[0][k] for k in common],
        head=[by_block[1][k] for k in common],
        pairs=True,
        note=note,
    )


def _by_block(boots: Sequence[BootRuns], name: str, rule: Rule) -> dict[int, list[BootRuns]]:
    seen: set[int] = set()
    blocks: dict[int, list[BootRuns]] = {}
    for boot in sorted(boots, key=lambda b: b.k):
        if boot.k in seen:
            raise ValueError(
                f"{name}: boot {boot.k} occurs twice; each boot of a series must have its own"
                " number"
            )
        seen.add(boot.k)
        if boot.values:
            blocks.setdefault(boot.k if boot.block is None else boot.block, []).append(boot)
    return blocks


def impossible(drawn: BootUnits, rule: Rule) -> str | None:
    """Return why nothing can be computed, or None."""
    empty = [name for name, side in zip(("base", "head"), drawn.sides, strict=True) if not side]
    if empty:
        return f"no boot of the {' and of the '.join(empty)} gave a value of this metric"
    values = [v for side in drawn.sides for b in side for v in b.values]
    if not all(math.isfinite(v) for v in values):
        return "a value is not a finite number"
    if max(map(abs, values)) >= limits.SAMPLE_VALUE:
        return "a value is too large to compute with"
    if rule.positive and min(values) <= 0:
        return (
            f"a {rule.klass} of {min(values):g} is not possible:"
            " zero or less is not a valid measurement"
        )
    if rule.least is not None and min(values) < rule.least:
        return (
            f"a {rule.klass} of {min(values):g} is not possible: it cannot be below {rule.least:g}"
        )
    return None


def plain_side(boots: Sequence[BootRuns]) -> Side:
    """Return n, mean and spreads of one side from means of boots; missing values stay None."""
    boots = [b for b in boots if b.values]
    usable = all(abs(v) < limits.SAMPLE_VALUE for b in boots for v in b.values)
    return (
        _side(boots, [mean(b.values) for b in boots], None)
        if boots and usable
        else Side(boots=len(boots), runs=_runs(boots), mean=None, stddev=None)
    )


def levels(drawn: BootUnits, rule: Rule) -> Levels:
    """Return the value of each unit and the level of each side.

    These are plain means unless there are outlying runs or boots.
    """
    means = [[mean(b.values) for b in side] for side in drawn.sides]
    runs = _harmonic([b.runs for side in drawn.sides for b in side])
    scale = scale_for(means[0], means[1], rule, runs)
    wild_runs = _wild_runs(drawn, scale, rule) if rule.robust else []
    tail = _slow_path(wild_runs, drawn)
    slow_path = None if tail is None else _describe_tail(tail)
    if tail is not None:
        wild_runs, rule = [], replace(rule, robust=False)
    one = median if wild_runs else mean
    units = [
        [mean([one(b.values) for b in unit]) for unit in side] for side in (drawn.base, drawn.head)
    ]
    scale = scale_for(units[0], units[1], rule, runs)
    wild_units = _wild_units(units, scale, drawn.pairs, rule) if rule.robust else []
    second_mode = (_unchanged_pair if drawn.pairs else _second_mode)(
        units, scale, wild_units, drawn
    )
    if second_mode is not None:
        wild_units = []
    kept = (
        _kept(units, scale, drawn.pairs)
        if wild_units
        else tuple(tuple(range(len(side))) for side in units)
    )
    sides = tuple(
        _side(boots, [one(b.values) for b in boots], mean([side[i] for i in keep]))
        for boots, side, keep in zip(drawn.sides, units, kept, strict=True)
    )
    # One boot far off was disturbed; a run, or two boots, may belong to the kernel.
    outside = {int(g >= len(drawn.sides[0])) for g, _ in wild_runs} | {s for s, _ in wild_units}
    lone = len(outside) == 1 and bool(wild_runs or len(wild_units) > 1)
    return Levels(
        tail=tail,
        aside=_aside(means, sides, scale) if lone else 0.0,
        units=(units[0], units[1]),
        kept=(kept[0], kept[1]),
        runs=None if wild_runs or wild_units else _of_runs(drawn, scale, runs),
        trimmed=bool(wild_units),
        medians=bool(wild_runs),
        sides=(sides[0], sides[1]),
        scale=scale,
        level=_name(bool(wild_runs), kept, units, bool(wild_units), drawn.pairs),
        note="; ".join(
            filter(None, (slow_path, _describe_outliers(wild_runs, wild_units, drawn), second_mode))
        )
        or None,
    )


def _wild_runs(drawn: BootUnits, scale: Scale, rule: Rule) -> list[tuple[int, int]]:
    """Return (boot, counted through both sides; run) of outlying runs.

    On a paired testbox, an effect that all boots show at the same run (a warm-up) is not an
    outlier.
    """
    groups = _mapped([b.values for side in drawn.sides for b in side], scale)
    if sum(len(g) - 1 for g in groups) <= FEWEST_WITH_WILD:
        return []
    if drawn.pairs and len({len(g) for g in groups}) == 1:
        off = [[v - mean(g) for v in g] for g in groups]
        habit = [median([g[i] for g in off]) for i in range(len(groups[0]))]
        groups = [[v - h for v, h in zip(g, habit, strict=True)] for g in groups]
    return _wild_on_both_counts(groups, len(drawn.sides[0]), rule, scale)


def _slow_path(wild_runs: Sequence[tuple[int, int]], drawn: BootUnits) -> Tail | None:
    """Return the outlying runs that lie on one side beyond chance; None if they do not.

    They belong to that kernel, so that they count. Runs of a boot are not independent: chance must
    explain neither the runs nor the boots that have one (Fisher's exact test).
    """
    base, head = (
        _runs_of_side(name, boots, {(g - first, i) for g, i in wild_runs})
        for name, boots, first in zip(
            ("base", "head"), drawn.sides, (0, len(drawn.sides[0])), strict=True
        )
    )
    of_runs = fisher_p([len(base.wild), len(head.wild)], [base.runs, head.runs])
    of_boots = fisher_p([base.with_wild, head.with_wild], list(map(len, drawn.sides)))
    if max(of_runs, of_boots) >= SLOW_PATH_P or not (base.usual and head.usual):
        return None
    less, more = sorted((base, head), key=lambda side: len(side.wild) / side.runs)
    percentile: Literal[1, 99] = 99 if median(more.wild) > median(more.usual) else 1
    base_at, head_at = (
        float(np.percentile([*side.usual, *side.wild], percentile)) for side in (base, head)
    )
    return Tail(
        side="base" if more is base else "head",
        far=len(more.wild),
        runs=more.runs,
        other_far=len(less.wild),
        other_runs=less.runs,
        apart_pct=change_pct(median(more.usual), median(more.wild)),
        rest_pct=change_pct(mean(base.usual), mean(head.usual)),
        percentile=percentile,
        base=base_at,
        head=head_at,
    )


def _describe_tail(tail: Tail) -> str:
    far = "far off" if tail.apart_pct is None else f"about {tail.apart_pct:+.0f} % off"
    other = "base" if tail.side == "head" else "head"
    return (
        f"{tail.far} of {tail.runs} runs of {tail.side} are {far} the others, and"
        f" {tail.other_far} of {tail.other_runs} of {other}: a path that 1 run in"
        f" {tail.runs / tail.far:.0f} takes, which counts"
        + ("" if tail.rest_pct is None else _describe_rest(tail.rest_pct))
        + f"; p{tail.percentile} of the runs {tail.base:.4g} -> {tail.head:.4g}"
    )


def _describe_rest(rest_pct: float) -> str:
    return f"; the other runs change by {two_digits(rest_pct, '+')} %"


@dataclass(frozen=True, slots=True)
class _SideRuns:
    """Outlying and other runs of one side, and how many of its boots have outlying ones."""

    name: str
    wild: list[float]
    usual: list[float]
    with_wild: int

    @property
    def runs(self) -> int:
        return len(self.wild) + len(self.usual)


def _runs_of_side(
    name: str, boots: Sequence[BootRuns], wild_runs: Collection[tuple[int, int]]
) -> _SideRuns:
    """`wild_runs` are (boot, run), also of boots that the side does not have."""
    values = {(g, i): v for g, boot in enumerate(boots) for i, v in enumerate(boot.values)}
    wild = values.keys() & wild_runs
    return _SideRuns(
        name,
        [values[run] for run in sorted(wild)],
        [v for run, v in values.items() if run not in wild],
        len({g for g, _ in wild}),
    )


def _aside(means: Sequence[Sequence[float]], sides: Sequence[Side], scale: Scale) -> float:
    """Return by how much plain means of boots change more than the levels of the sides."""
    robust = [[side.mean] for side in sides if side.mean is not None]
    base, head, base_level, head_level = map(mean, _mapped([*means, *robust], scale))
    return (head - base) - (head_level - base_level)


def _wild_on_both_counts(
    groups: Sequence[Sequence[float]], split: int, rule: Rule, scale: Scale
) -> list[tuple[int, int]]:
    """Return outliers among all values that are also outliers on their own side.

    A noisier side thus has no more outliers. The first `split` groups are base's. Within its own
    side a value is tested at WILD_OWN_P, as few values determine their spread badly.
    """
    least = scale.threshold(rule.min_effect_pct)
    outliers = wild(groups, rule.wild_alpha, least)
    if not outliers or split in (0, len(groups)):
        return outliers
    kept = set()
    for first, side in ((0, groups[:split]), (split, groups[split:])):
        mine = [(g, i) for g, i in outliers if first <= g < first + len(side)]
        if sum(len(group) - 1 for group in side if len(group) > 2) < FEWEST_WITH_WILD - 1:
            kept.update(mine)
            continue
        own = {(first + g, i) for g, i in wild(side, WILD_OWN_P, least)} if mine else set()
        kept.update(one for one in mine if one in own)
    return sorted(kept)


def _mapped(groups: Sequence[Sequence[float]], scale: Scale) -> list[list[float]]:
    """Map runs to the scale of effects.

    Uses shares of the overall level if a value cannot be mapped (a run of 0 among others).
    """
    try:
        return [[scale.of(v) for v in group] for group in groups]
    except ValueError:
        level = mean([abs(mean(group)) for group in groups])
        return [[v / level for v in group] for group in groups]


def _of_runs(drawn: BootUnits, scale: Scale, runs: float) -> tuple[float, int] | None:
    boots = [b for side in drawn.sides for b in side]
    parts = _within_parts(boots, _mapped([b.values for b in boots], scale), scale)
    spread = pooled(parts)
    return None if spread is None else (spread * spread / runs, sum(df for _, _, df in parts))


def _within_parts(
    boots: Sequence[BootRuns], groups: Sequence[Sequence[float]], scale: Scale | None
) -> list[tuple[float, float, int]]:
    """Return (squares, unit, degrees of freedom) of the runs of each boot that has at least two.

    `groups` are the runs on `scale`, or as measured if it is None.
    """
    parts = []
    for boot, runs in zip(boots, groups, strict=True):
        if boot.repeats is not None:
            n, value = boot.repeats.runs, abs(mean(boot.values))
            sd = boot.repeats.error * math.sqrt(n)
            unit = sd * value if scale is None else sd * scale.stretch(value)
            parts.append((float(n - 1), unit, n - 1))
        elif len(runs) > 1:
            parts.append((*squares(runs), len(runs) - 1))
    return parts


def _wild_units(
    units: Sequence[Sequence[float]], scale: Scale, pairs: bool, rule: Rule
) -> list[tuple[int, int]]:
    if min(len(side) for side in units) < FEWEST_WITH_WILD:
        return []
    mapped = [[scale.of(v) for v in side] for side in units]
    groups = [[h - b for b, h in zip(*mapped, strict=True)]] if pairs else mapped
    return _wild_on_both_counts(groups, 0 if pairs else 1, rule, scale)


def _second_mode(
    units: Sequence[Sequence[float]],
    scale: Scale,
    wild_units: Sequence[tuple[int, int]],
    drawn: BootUnits,
) -> str | None:
    """Describe an outlying boot that is close to the other side's boots; None if there is none.

    Such boots suggest two modes. Without them, each side would seem to have a mode of its own.
    """
    mapped = [[scale.of(v) for v in side] for side in units]
    out = set(wild_units)
    level = [
        mean([v for i, v in enumerate(side) if (s, i) not in out]) for s, side in enumerate(mapped)
    ]
    for side, index in wild_units:
        if abs(mapped[side][index] - level[1 - side]) < abs(level[0] - level[1]) / 2.0:
            name, other = (("base", "head"), ("head", "base"))[side]
            k = (drawn.base, drawn.head)[side][index][0].k
            return (
                f"boot {k} of {name} is close to the boots of {other}, so it counts: boots may fall"
                " into modes"
            )
    return None


def _unchanged_pair(
    units: Sequence[Sequence[float]],
    scale: Scale,
    wild_units: Sequence[tuple[int, int]],
    drawn: BootUnits,
) -> str | None:
    """Describe an outlying pair whose boots agree where the others differ; None if there is
    none."""
    differences = [scale.of(h) - scale.of(b) for b, h in zip(*units, strict=True)]
    out = {index for _, index in wild_units}
    level = mean([d for i, d in enumerate(differences) if i not in out])
    for index in sorted(out):
        if abs(differences[index]) < abs(level) / 2.0:
            k = drawn.base[index][0].k
            return f"pair {k} shows no such change, so it counts: boots may fall into modes"
    return None


def _kept(
    units: Sequence[Sequence[float]], scale: Scale, pairs: bool
) -> tuple[tuple[int, ...], ...]:
    mapped = [[scale.of(v) for v in side] for side in units]
    if pairs:
        both = middle([h - b for b, h in zip(*mapped, strict=True)]).kept
        return both, both
    return tuple(middle(side).kept for side in mapped)


def _side(boots: Sequence[BootRuns], values: Sequence[float], level: float | None) -> Side:
    return Side(
        boots=len(boots),
        runs=_runs(boots),
        mean=mean(values) if level is None else level,
        stddev=stddev(values) if len(values) > 1 else None,
        stddev_within=pooled(_within_parts(boots, [b.values for b in boots], None)),
    )


def _runs(boots: Sequence[BootRuns]) -> int:
    return sum(b.runs for b in boots)


def _harmonic(counts: Sequence[int]) -> float:
    return len(counts) / math.fsum(1.0 / n for n in counts)


def _name(
    medians: bool,
    kept: Sequence[Sequence[int]],
    units: Sequence[Sequence[float]],
    trimmed: bool,
    pairs: bool,
) -> str | None:
    """Return the name of the level if it is not the plain mean of boot means."""
    unit_values = "medians" if medians else "means"
    if not trimmed:
        return "mean of boot medians" if medians else None
    shares = [f"{len(k)} of {len(u)}" for k, u in zip(kept, units, strict=True)]
    if pairs:
        return f"mean of boot {unit_values} in the middle {shares[0]} pairs"
    counts = shares[0] if shares[0] == shares[1] else " and ".join(shares)
    return f"mean of the middle {counts} boot {unit_values}"


def _describe_outliers(
    runs: Sequence[tuple[int, int]], units: Sequence[tuple[int, int]], drawn: BootUnits
) -> str | None:
    """Describe the outliers, and name the first of them."""
    parts = []
    if runs:
        named = [("base", b) for b in drawn.sides[0]] + [("head", b) for b in drawn.sides[1]]
        name, boot = named[runs[0][0]]
        parts.append(
            f"{_some(len(runs), 'run')} far off the others (the first: run {runs[0][1] + 1} in boot"
            f" {boot.k} of {name}), so boots count by their medians"
        )
    if units:
        side, index = units[0]
        first = (drawn.base, drawn.head)[side][index][0].k
        where = f"pair {first}" if drawn.pairs else f"boot {first} of {('base', 'head')[side]}"
        parts.append(
            f"{_some(len(units), 'pair' if drawn.pairs else 'boot')} far off the others (the first:"
            f" {where}), so the middle ones count"
        )
    return "; ".join(parts) or None


def _some(n: int, noun: str) -> str:
    return f"{n} {noun} is" if n == 1 else f"{n} {noun}s are"
