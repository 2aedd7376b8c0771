"""Findings in a history of numbers: steps, creep, changes of spread, modes, machine changes.

Formulas: docs/statistics.md, "Histories". Levels and noise come from `core/stats/steps.py`. The
expected next point, used to judge new tips of watched branches, comes from
`core/stats/history.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import fdtrc, stdtr

from swingbot.core.stats.excursion import LevelExcursion, excursions
from swingbot.core.stats.history import Array, robust_sd
from swingbot.core.stats.history_modes import FEWEST, ModesFound, find_modes
from swingbot.core.stats.louder import louder, step_between
from swingbot.core.stats.path_change import PathChange, path_change
from swingbot.core.stats.ramp import LevelRamp, ramp_at_end, ramp_beside_steps, without_ramp
from swingbot.core.stats.rank_steps import kendall_p, rank_p
from swingbot.core.stats.rounding import unrounded
from swingbot.core.stats.steps import (
    MOST_ALIKE,
    LevelStep,
    StepNoise,
    candidate_step,
    find_steps,
    noise_about,
    noise_without_wild,
    steps_at,
)
from swingbot.core.stats.tip_spreads import SpreadChange, TipSpread, change_within
from swingbot.core.stats.wander import WALKS, walks
from swingbot.core.thresholds import (
    CREEP_MARGIN,
    HISTORY_EFFICIENCY,
    HISTORY_TREND_P,
    SCREEN_FEWEST_TIPS,
    SPREAD_FLOOR,
    SPREAD_RANK_P,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSegment:
    """The mean of points `first` to `last` (inclusive indices), in the unit of the values, and by
    how much a line through them rises from the first to the last, in a ramp or a creep."""

    first: int
    last: int
    mean: float
    rise: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The level at the first and at the last point."""
        return self.mean - self.rise / 2.0, self.mean + self.rise / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSearch:
    """What a bisection, or the pairs of a swing, measured where the points suggest a step; it
    overrules them.

    Size and interval are those of the culprit against its parent, measured with fresh boots; of a
    creep, those of the whole range.
    """

    search: str  # its id: b3, or c7 for the pairs of a swing
    status: Literal["culprit", "several", "credible_set", "creep", "not_reproduced", "refuted"]
    commits: tuple[str, ...] = ()  # one culprit, or those of which one is it; else none
    pct: float | None = None
    low_pct: float | None = None
    high_pct: float | None = None

    @property
    def denies(self) -> bool:
        """Whether fresh boots of both ends of the range do not differ."""
        return self.status in ("not_reproduced", "refuted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedTips:
    """A search with the tips in its range, and the first tip that has its culprit (if known)."""

    found: FinishedSearch
    tips: frozenset[str]
    own: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """A step from one level to another, in the unit of the values and in percent of the first.

    The percentages are None from a level of 0, or to one on the other side of it. `parts`: points
    between `first` and `last` fit neither level, so that it is more than one change. `machine`: the
    anchor measured with it moved in the same way.
    """

    at: int
    first: int
    last: int
    before: float
    after: float
    pct: float | None
    low_pct: float | None
    high_pct: float | None
    p: float
    parts: bool = False
    machine: bool = False
    searches: tuple[FinishedSearch, ...] = ()  # several culprits may have come with one tip


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """A straight line, from the first point to the last, that explains the points better than steps
    do; sizes as of a step."""

    before: float
    after: float
    pct: float | None
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A straight line from point `at`, with 95 % one of `first` to `last`, to the last point; sizes
    as of a step."""

    at: int
    first: int
    last: int
    before: float
    after: float
    pct: float | None
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excursion:
    """Points `first` to `last` that are off in a row before the level comes back: a change that was
    reverted, or a disturbance; sizes as of a step."""

    first: int
    last: int
    before: float
    after: float  # the mean of these points
    pct: float | None
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A group of points: their mean, in the unit of the values, and their share of the points."""

    value: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChange:
    """Other modes, or other shares of the same modes, from point `at` on, with 95 % one of `first`
    to `last`."""

    at: int
    first: int
    last: int
    before: tuple[Mode, ...]
    after: tuple[Mode, ...]
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    points: int
    levels: tuple[LevelSegment, ...]
    changes: tuple[LevelChange, ...]
    noise_pct: float  # standard deviation of a point about its level
    alike: float  # autocorrelation of adjacent points
    candidate: LevelChange | None = None  # at the end; further points decide
    creep: Creep | None = None
    spread: SpreadChange | None = None  # of the points about their level
    boots_spread: SpreadChange | None = None  # of the boots of a point
    modes: tuple[Mode, ...] | None = None  # of the last points, lowest first, if any has several
    mode_changes: tuple[ModeChange, ...] = ()
    anchor: Findings | None = None  # of the anchor kernel measured with each point
    ramp: Ramp | None = None  # at the end
    wanders: bool = False  # nothing is found because the level walks
    excursions: tuple[Excursion, ...] = ()
    path: PathChange | None = None  # a path that runs take from a point on, or no more


def look(
    values: Sequence[float],
    anchors: Sequence[float] | None = None,
    spreads: Sequence[TipSpread | None] = (),
    runs: Sequence[Sequence[float]] = (),
) -> Findings:
    """Analyse values, oldest first.

    `anchors` are measurements of one fixed kernel, one for each value, `spreads` those between the
    boots of each value, `runs` the runs whose mean each value is, if it has several. Raises
    ValueError without values.
    """
    if not values:
        raise ValueError("a history needs at least one value")
    scale = _Scale.of(unrounded(values))
    scaled, found = scale.array, _modes_of(scale.array)
    edges = found.edges if found is not None else [0, len(values)]
    if found is not None:  # steps are changes of the level within the modes
        scaled = _without_modes(scaled, found)
    loud = louder(scaled) if found is None else None
    if loud is not None:
        edges = [0, loud.at, len(values)]
    steps = [
        step
        for step in _steps(scaled, edges)
        if not any(one.first <= step.at <= one.last for one in (found.changes if found else ()))
    ]
    if loud is not None:
        steps = _with_step_at(scaled, steps, loud.at)
    noise = noise_without_wild(scaled, _cuts(edges, steps))
    whole = len(edges) == 2
    creep = _creep(scaled, steps, noise, scale) if whole else None
    steps = steps if creep is None else []
    line = _line(creep, scale, len(values)) if creep is not None else None
    noise = noise if line is None else noise_without_wild(scaled - line, [])
    candidate = candidate_step(scaled, steps) if whole and creep is None else None
    last = candidate.at if candidate is not None else None
    ramp, before = _ramp_and_steps(scaled, steps, last, line) if whole else (None, [])
    if ramp is not None:
        creep, candidate, scaled = None, None, scaled - ramp.line(len(values))
        steps = steps_at(scaled, before)
        noise = noise_without_wild(scaled, _cuts(edges, steps))
        edges = [0, ramp.at + 1, len(values)]
    cuts = _cuts(edges, steps)
    anchor = look(anchors) if anchors is not None else None
    residuals = _about_levels(scaled, cuts, scale, creep)
    off = excursions(scaled, cuts, noise.sd) if creep is None else []
    path = (
        path_change([scale.of_runs(each) for each in runs], logarithms=scale.unit is None)
        if runs
        else None
    )
    mode_changes = _mode_changes(values, found) if found is not None else ()
    shown_ramp = _ramp(ramp, scale) if ramp is not None else None
    quiet = not (steps or creep or ramp or mode_changes or path or off)
    return Findings(
        points=len(values),
        levels=_levels(values, cuts, creep or shown_ramp),
        changes=tuple(_change(step, scale, anchor) for step in steps),
        noise_pct=100.0 * (robust_sd(residuals) if creep is not None else noise.sd),
        alike=noise.alike if len(values) >= FEWEST else 0.0,
        candidate=_change(candidate, scale, anchor) if candidate is not None else None,
        creep=creep,
        spread=_beside_zeros(loud or _spread(residuals, noise), values, cuts),
        boots_spread=_boots_spread(spreads),
        modes=_modes(values, found, *edges[-2:]) if found is not None else None,
        mode_changes=mode_changes,
        anchor=anchor,
        ramp=shown_ramp,
        wanders=quiet
        and len(values) >= FEWEST
        and (noise.alike >= MOST_ALIKE or (not cuts and walks(scaled))),
        excursions=tuple(_excursion(each, scale) for each in off),
        path=path,
    )


def without_small(findings: Findings, pct: float) -> Findings:
    """Leave out steps, excursions, ramps and creep of less than `pct` percent; those from a level
    of 0 are never small."""

    def large(change: LevelChange | Excursion | Creep | Ramp | None) -> bool:
        return change is not None and (change.pct is None or abs(change.pct) >= pct)

    return replace(
        findings,
        changes=tuple(change for change in findings.changes if large(change)),
        candidate=findings.candidate if large(findings.candidate) else None,
        creep=findings.creep if large(findings.creep) else None,
        ramp=findings.ramp if large(findings.ramp) else None,
        excursions=tuple(each for each in findings.excursions if large(each)),
    )


def with_searches(
    findings: Findings, commits: Mapping[int, str], searches: Sequence[SearchedTips]
) -> Findings:
    """Add what finished searches know to the steps of a branch's tips (also `v_tree_findings`).

    `commits` are the tips that the findings name, by point. A culprit belongs to the step of its
    direction in the range, if possible at its own tip, whose size is nearest. That there is no
    change contradicts a step that is the only one in the range; a creep replaces all of them.
    """
    steps = [*findings.changes, *([findings.candidate] if findings.candidate else [])]
    places = [{commits[at] for at in (step.first, step.at, step.last)} for step in steps]
    known: list[dict[tuple[str, ...], FinishedSearch]] = [{} for _ in steps]
    for search in searches:
        if search.found.commits and (n := _nearest(steps, places, search)) is not None:
            known[n][search.found.commits] = search.found
    for search in searches:
        within = [n for n, own in enumerate(places) if own <= search.tips]
        if search.found.commits or (search.found.denies and len(within) > 1):
            continue
        for n in within:
            if not any(known[n]) and (search.found.denies or _along(steps[n], search.found)):
                known[n] = {(): search.found}
    steps = [
        replace(step, searches=tuple(found.values()))
        for step, found in zip(steps, known, strict=True)
    ]
    changes = len(findings.changes)
    candidate = steps[-1] if findings.candidate else None
    return replace(findings, changes=tuple(steps[:changes]), candidate=candidate)


def _nearest(
    steps: Sequence[LevelChange], places: Sequence[set[str]], search: SearchedTips
) -> int | None:
    fitting = [
        (search.own not in places[n], abs((step.pct or 0.0) - (search.found.pct or 0.0)), n)
        for n, step in enumerate(steps)
        if _along(step, search.found) and not search.tips.isdisjoint(places[n])
    ]
    return min(fitting)[2] if fitting else None


def _along(step: LevelChange, found: FinishedSearch) -> bool:
    return step.pct is not None and found.pct is not None and step.pct * found.pct > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Values as logarithms, or as shares of `unit` if one is not positive.

    `unit` is the mean magnitude.
    """

    array: Array
    unit: float | None

    @staticmethod
    def of(values: Sequence[float]) -> _Scale:
        array = np.asarray(values, dtype=float)
        if array.min() > 0:
            return _Scale(array=np.log(array), unit=None)
        unit = float(np.abs(array).mean()) or 1.0
        return _Scale(array=array / unit, unit=unit)

    def of_runs(self, runs: Sequence[float]) -> Array | None:
        """Return the runs of a point on this scale; None if one is not positive on that of
        logarithms."""
        array = np.asarray(runs, dtype=float)
        if self.unit is not None:
            return array / self.unit
        return np.log(array) if array.min() > 0 else None

    def value(self, level: float) -> float:
        return math.exp(level) if self.unit is None else self.unit * level

    def level(self, value: float) -> float:
        return math.log(value) if self.unit is None else value / self.unit

    def pct(self, before: float, effect: float) -> float | None:
        if self.unit is None:
            return _pct(effect)
        if abs(before) <= SPREAD_FLOOR or before * (before + effect) < 0.0:
            return None
        return 100.0 * effect / abs(before)


def _steps(values: Array, edges: Sequence[int]) -> list[LevelStep]:
    """Find the steps in each stretch with the same modes."""
    steps = []
    for begin, end in itertools.pairwise(edges):
        for step in find_steps(values[begin:end]):
            places = {name: begin + getattr(step, name) for name in ("at", "first", "last")}
            steps.append(replace(step, **places))
    return steps


def _ramp_and_steps(
    values: Array, steps: Sequence[LevelStep], candidate: int | None, line: Array | None
) -> tuple[LevelRamp | None, list[int]]:
    """Return the ramp at the end, and the steps before it; alone, each may look like noise that
    wanders."""
    cuts = [step.at for step in steps]
    ramp = ramp_at_end(values, steps, candidate, line)
    if ramp is not None:
        return ramp, [at for at in cuts if at <= ramp.begin]
    if not cuts and candidate is None and line is None and noise_about(values, []).alike < WALKS:
        return None, []
    both = ramp_beside_steps(values, without_ramp(values, cuts, candidate, line))
    return both if both is not None else (None, [])


def _with_step_at(values: Array, steps: list[LevelStep], at: int) -> list[LevelStep]:
    """Add the step where the noise changes, if the levels on both sides differ."""
    before = [step for step in steps if step.at < at]
    after = steps[len(before) :]
    begin = before[-1].last if before else 0
    end = after[0].first if after else len(values)
    between = step_between(values, begin, at, end)
    return [*before, *([between] if between else []), *after]


def _cuts(edges: Sequence[int], steps: Sequence[LevelStep]) -> list[int]:
    return sorted({*edges[1:-1], *(step.at for step in steps)})


def _modes_of(values: Array) -> ModesFound | None:
    """Return the modes; None if a ramp, whose points are in none, leaves as little noise."""
    found = find_modes(values)
    if found is None:
        return None
    ramp, cuts = _ramp_and_steps(values, find_steps(values), None, None)
    if ramp is None:
        return found
    about_line = noise_without_wild(values - ramp.line(len(values)), cuts).sd
    about_modes = noise_without_wild(_without_modes(values, found), found.edges[1:-1]).sd
    return found if about_modes < about_line else None


def _without_modes(values: Array, found: ModesFound) -> Array:
    """Move the points of each mode to the middle of the modes of their stretch."""
    moved = values.copy()
    for begin, end in itertools.pairwise(found.edges):
        if found.mixed(begin, end):
            part, labels = moved[begin:end], found.labels[begin:end]
            middle = float(np.median(part))
            for mode in np.unique(labels):
                part[labels == mode] += middle - float(np.median(part[labels == mode]))
    return moved


def _modes(values: Sequence[float], found: ModesFound, begin: int, end: int) -> tuple[Mode, ...]:
    part, labels = np.asarray(values[begin:end]), found.labels[begin:end]
    return tuple(
        Mode(value=float(part[labels == mode].mean()), share=float(np.mean(labels == mode)))
        for mode in np.unique(labels)
    )


def _mode_changes(values: Sequence[float], found: ModesFound) -> tuple[ModeChange, ...]:
    edges = found.edges
    return tuple(
        ModeChange(
            at=change.at,
            first=change.first,
            last=change.last,
            before=_modes(values, found, edges[n], change.at),
            after=_modes(values, found, change.at, edges[n + 2]),
            p=change.p,
        )
        for n, change in enumerate(found.changes)
    )


def _levels(
    values: Sequence[float], cuts: Sequence[int], line: Creep | Ramp | None
) -> tuple[LevelSegment, ...]:
    """Return the levels between the cuts; the last one rises along `line`."""
    edges = [0, *cuts, len(values)]
    levels = [
        LevelSegment(first=a, last=b - 1, mean=math.fsum(values[a:b]) / (b - a))
        for a, b in itertools.pairwise(edges)
    ]
    if line is not None:
        last = levels[-1]
        begin = line.at if isinstance(line, Ramp) else 0
        share = (last.last - last.first) / max(last.last - begin, 1)
        levels[-1] = replace(last, rise=share * (line.after - line.before))
    return tuple(levels)


def _change(step: LevelStep, scale: _Scale, anchor: Findings | None) -> LevelChange:
    moved = anchor.changes if anchor is not None else ()
    return LevelChange(
        at=step.at,
        first=step.first,
        last=step.last,
        before=scale.value(step.before),
        after=scale.value(step.before + step.effect),
        pct=scale.pct(step.before, step.effect),
        low_pct=scale.pct(step.before, step.low),
        high_pct=scale.pct(step.before, step.high),
        p=step.p,
        parts=step.parts,
        machine=any(
            (other.after - other.before) * step.effect > 0
            and other.first <= step.last
            and step.first <= other.last
            for other in moved
        ),
    )


def _creep(
    values: Array, steps: Sequence[LevelStep], noise: StepNoise, scale: _Scale
) -> Creep | None:
    """Fit a line in place of the steps if Schwarz's criterion prefers it.

    A step has two parameters; a line has one more than a constant level. Each model is judged by
    what it leaves unpredicted from point to point, with its own autocorrelation: about a line
    through large steps neighbours look alike, and would leave few independent points to tell the
    two apart.
    """
    n = len(values)
    if n < FEWEST:
        return None
    x = np.arange(n) - (n - 1) / 2.0
    slope = float(x @ (values - values.mean()) / (x @ x))
    about = noise_about(values - slope * x, [])
    worth = n * (1.0 - about.alike) / (1.0 + about.alike)  # independent points
    line = n * _unpredicted(about) + math.log(n)
    stairs = n * _unpredicted(noise) + 2 * len(steps) * math.log(n)
    t = slope / (about.sd * math.sqrt(n / worth / float(x @ x)))
    p = 2.0 * float(stdtr(max(about.df - 1.0, 3.0), -abs(t)))
    if p >= HISTORY_TREND_P or line + (CREEP_MARGIN if steps else 0.0) >= stairs:
        return None
    if kendall_p(values, worth / n) >= HISTORY_TREND_P:
        return None  # a line through points most of which reach a bound
    effect = slope * (n - 1)
    begin = float(values.mean()) - effect / 2.0
    return Creep(
        before=scale.value(begin),
        after=scale.value(begin + effect),
        pct=scale.pct(begin, effect),
        p=p,
    )


def _line(creep: Creep, scale: _Scale, n: int) -> Array:
    return np.linspace(scale.level(creep.before), scale.level(creep.after), n)


def _ramp(ramp: LevelRamp, scale: _Scale) -> Ramp:
    return Ramp(
        at=ramp.at,
        first=ramp.first,
        last=ramp.last,
        before=scale.value(ramp.before),
        after=scale.value(ramp.before + ramp.effect),
        pct=scale.pct(ramp.before, ramp.effect),
        p=ramp.p,
    )


def _excursion(off: LevelExcursion, scale: _Scale) -> Excursion:
    return Excursion(
        first=off.first,
        last=off.last,
        before=scale.value(off.before),
        after=scale.value(off.before + off.effect),
        pct=scale.pct(off.before, off.effect),
        p=off.p,
    )


def _unpredicted(noise: StepNoise) -> float:
    """Return the logarithm of the variance of a point given the one before it."""
    return 2.0 * math.log(noise.sd) + math.log1p(-(noise.alike**2))


def _about_levels(values: Array, cuts: Sequence[int], scale: _Scale, creep: Creep | None) -> Array:
    if creep is not None:
        line = _line(creep, scale, len(values))
        return np.asarray(values - line - np.median(values - line))
    parts = np.split(values, cuts)
    return np.concatenate([part - np.median(part) for part in parts])


def _beside_zeros(
    spread: SpreadChange | None, values: Sequence[float], cuts: Sequence[int]
) -> SpreadChange | None:
    """Leave out a spread that changes at a step from or to a level of nothing but 0, whose place
    is known to two points.
    """
    near = [at for at in cuts if spread is not None and abs(at - spread.at) <= 2]
    zeros = any(not any(part) for at in near for part in (values[: at - 2], values[at + 2 :]))
    return None if zeros else spread


def _spread(residuals: Array, noise: StepNoise) -> SpreadChange | None:
    """Find the point where the spread changes most.

    Uses an F test with the number of independent points as degrees of freedom.
    """
    n = len(residuals)
    if n < FEWEST:
        return None
    share = HISTORY_EFFICIENCY * (1.0 - noise.alike) / (1.0 + noise.alike)
    best: SpreadChange | None = None
    every = max(1, n // 100)
    for at in range(SCREEN_FEWEST_TIPS, n - SCREEN_FEWEST_TIPS + 1, every):
        left, right = (
            max(robust_sd(part), SPREAD_FLOOR) for part in (residuals[:at], residuals[at:])
        )
        ratio, dfs = (right / left) ** 2, (share * (n - at), share * at)
        upper = fdtrc(*dfs, ratio) if ratio > 1 else fdtrc(dfs[1], dfs[0], 1.0 / ratio)
        p = min(1.0, 2.0 * float(upper) * 3.0 * math.log(n))
        if best is None or p < best.p:
            best = SpreadChange(at=at, times=right / left, p=p)
    if best is None or best.p >= HISTORY_TREND_P:
        return None
    away = np.abs(residuals)
    ranks = rank_p(away[: best.at], away[best.at :]) * 3.0 * math.log(n)
    return best if ranks < SPREAD_RANK_P else None


def _boots_spread(spreads: Sequence[TipSpread | None]) -> SpreadChange | None:
    known = [(at, spread) for at, spread in enumerate(spreads) if spread is not None]
    change = change_within([spread for _, spread in known])
    return replace(change, at=known[change.at][0]) if change is not None else None


def _pct(effect: float) -> float:
    return 100.0 * math.expm1(min(effect, 50.0))
