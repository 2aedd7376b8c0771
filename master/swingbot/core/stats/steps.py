"""Find steps in a history of numbers, with their sizes.

Repeatedly splits at the largest difference that noise does not explain, then removes steps that
the other steps explain. Noise is one robust spread about the levels, with correlated neighbours.
Formulas and error rates: docs/statistics.md, "Histories".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from swingbot.core.stats.history import Array, middle, robust_sd
from swingbot.core.stats.rank_steps import heavy_tails, rank_p, sd_beside
from swingbot.core.stats.segments import many_cuts
from swingbot.core.stats.wander import misfit, not_wandering
from swingbot.core.thresholds import (
    CANDIDATE_P,
    HISTORY_EFFICIENCY,
    INTERVAL_ALPHA,
    SPREAD_FLOOR,
    STEP_FEWEST,
    STEP_FEWEST_INSIDE,
    STEP_P,
    STEP_RANK_P,
    STEP_TOGETHER_P,
    TOGETHER_MARGIN,
)

Places = npt.NDArray[np.intp]
MOST_STEPS: Final = 50
# Outliers are clipped at this many spreads from the median of the five points around them.
_CUT: Final = 2.5
MOST_ALIKE: Final = 0.9
_RANKED: Final = 4  # points of a level that ranks can confirm
_AHEAD: Final = 3
# Points at the end that a candidate may have, and the spreads from both levels of a point between
# two changes
_LAST: Final = 10
_OFF: Final = 5.0
# Levels that the place of a step counts for in the bias of the autocorrelation. Smaller: more false
# steps where neighbours are alike; larger: small steps are missed.
_PLACE: Final = 2
# Gauss-Hermite nodes of a standard Gaussian, with their weights
_ERRORS: Final = ((-math.sqrt(3.0), 1.0 / 6.0), (0.0, 2.0 / 3.0), (math.sqrt(3.0), 1.0 / 6.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStep:
    """A change of level between two points. Effects are differences of logarithms or shares."""

    at: int  # index of the first point of the new level
    first: int  # with 95 % the new level begins between these two points (inclusive)
    last: int
    parts: bool  # points between `first` and `last` fit neither level: more than one change
    before: float  # the level before it
    effect: float
    low: float  # 95 % interval of the effect
    high: float
    p: float  # of such a step anywhere between the adjacent steps, if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNoise:
    """Noise about the levels: standard deviation of a point, autocorrelation of neighbours."""

    sd: float
    alike: float
    df: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    """The best place for a step in a stretch.

    `t` is for all places, starting at `begin`.
    """

    at: int
    p: float
    t: Array
    effect: float  # at the best place
    begin: int


def find_steps(values: Array) -> list[LevelStep]:
    """Return the steps of a history (oldest first), in order.

    There are no steps in fewer than two levels of `STEP_FEWEST` points.
    """
    quiet = _without_wild(values)
    cuts = not_wandering(quiet, _better(quiet, _split(quiet)))
    cuts = _without_excursions(values, cuts)
    tails = heavy_tails(quiet, cuts, noise_about(quiet, cuts).sd)
    while cuts:
        doubts = [_doubt(values, quiet, cuts, n, tails) for n in range(len(cuts))]
        if max(doubts) < 1.0:
            break
        del cuts[int(np.argmax(doubts))]
    return steps_at(values, cuts)


def steps_at(values: Array, cuts: Sequence[int]) -> list[LevelStep]:
    """Return the steps at these cuts, in order, each between the levels of its neighbours."""
    quiet = _without_wild(values)
    noise = noise_about(quiet, cuts)
    edges = [0, *cuts, len(values)]
    return [_step(values, quiet, (edges[n], edges[n + 2]), at, noise) for n, at in enumerate(cuts)]


def noise_without_wild(values: Array, cuts: Sequence[int]) -> StepNoise:
    """Return the noise about the levels between the cuts, without wild points."""
    return noise_about(_without_wild(values), cuts)


def candidate_step(values: Array, steps: Sequence[LevelStep]) -> LevelStep | None:
    """Return a level that may have begun in the last `_LAST` points but is not a step yet.

    It may be a single point.
    """
    begin, n = steps[-1].last if steps else 0, len(values)
    most = min(_LAST, n - begin - STEP_FEWEST_INSIDE)
    if most < 1:
        return None
    points = np.concatenate([_without_wild(values)[:-2], values[-2:]])
    cuts = [step.at for step in steps]
    noise = replace(noise_about(points, cuts), alike=0.0)
    for _ in range(2):
        t = _scan(points, (begin, n), noise, fewest=1).t[-most:]
        at = n - most + int(np.argmax(np.abs(t)))
        noise = noise_about(points, [*cuts, at])
    effect = float(points[at:].mean() - points[begin:at].mean())
    # The ends of a history overlap: ten of them count as ln 10 tests, as simulated.
    p = _p_of_difference(effect, at - begin, n - at, noise, n) * max(1.0, math.log(most))
    p = max(p, _chance(values[begin:at], values[at:], noise.sd))
    if p >= CANDIDATE_P:
        return None
    wary = _wary(noise, n)
    places = n - most + likely(0.5 * _scan(points, (begin, n), wary, fewest=1).t[-most:] ** 2)
    return replace(_anywhere(points, (begin, n), places, at, wary), p=p)


def _split(values: Array) -> list[int]:
    """Return the places of steps; each round adds the place with the smallest P.

    P is computed with the noise that remains with the step. A step down and one up again hide each
    other: alone, neither explains much, and the other looks like autocorrelation. Therefore up to
    `_AHEAD` places are tried together before the search ends.
    """
    cuts: list[int] = []
    tried: list[int] = []
    while len(cuts) + len(tried) < MOST_STEPS and len(tried) < _AHEAD:
        together = sorted({*cuts, *tried})
        edges = [0, *together, len(values)]
        places = []
        before = noise_about(values, together)
        # The step itself looks like autocorrelation, which hides a short new level.
        noises = before, replace(before, alike=0.0)
        for stretch in itertools.pairwise(edges):
            if stretch[1] - stretch[0] < 2 * STEP_FEWEST:
                continue
            for at in {_scan(values, stretch, noise).at for noise in noises}:
                scan = _scan(values, stretch, noise_about(values, sorted([*together, at])))
                places.append((scan.p, scan.at))
        if not places:
            break
        tried.append(min(places)[1])
        limit = STEP_P if len(tried) == 1 else STEP_TOGETHER_P
        remaining = _kept(values, sorted({*cuts, *tried}), limit)
        if len(remaining) > len(cuts):
            cuts, tried = remaining, []
    return cuts


def _better(values: Array, found: list[int]) -> list[int]:
    """Return `found`, or the steps of a search for all at once if they explain much more."""
    cuts = _kept(values, many_cuts(values, STEP_FEWEST_INSIDE), STEP_TOGETHER_P)
    if cuts == found or not cuts:
        return found
    return cuts if misfit(values, cuts)[0] + TOGETHER_MARGIN < misfit(values, found)[0] else found


def _kept(values: Array, cuts: list[int], limit: float) -> list[int]:
    """Return the cuts that remain steps given the others, each moved to its best place.

    Two points between steps up and down, or down and up, are wild points and not a level, and two
    that differ are not one level.
    """
    while cuts:
        noise, edges = noise_about(values, cuts), [0, *cuts, len(values)]
        scans = [
            _scan(values, (edges[n - 1], edges[n + 1]), noise) for n in range(1, len(edges) - 1)
        ]
        weakest = max(range(len(scans)), key=lambda n: scans[n].p)
        if scans[weakest].p < limit:
            odd = [
                max(pair, key=lambda n: scans[n].p)
                for pair in itertools.pairwise(range(len(scans)))
                if _odd(values, scans[pair[0]], scans[pair[1]], noise.sd)
            ]
            if not odd:
                return _apart(scan.at for scan in scans)
            weakest = odd[0]
        cuts = cuts[:weakest] + cuts[weakest + 1 :]
    return cuts


def _without_excursions(values: Array, cuts: list[int]) -> list[int]:
    """Leave out levels there and back of which fewer than `STEP_FEWEST_INSIDE` points are off."""
    for n in range(len(cuts) - 1):
        edges = [0, *cuts, len(values)]
        before, inside, after = (values[edges[k] : edges[k + 1]] for k in range(n, n + 3))
        if len(inside) >= 2 * STEP_FEWEST_INSIDE:
            continue
        levels = np.median(before), np.median(after)
        sign = np.sign(np.median(inside) - levels[0])
        away = np.sort(sign * (inside - sign * max(sign * level for level in levels)))[::-1]
        if (away > away[:STEP_FEWEST_INSIDE].mean() / 2.0).sum() < STEP_FEWEST_INSIDE and sign == (
            np.sign(np.median(inside) - levels[1])
        ):
            return _without_excursions(values, cuts[:n] + cuts[n + 2 :])
    return cuts


def _doubt(values: Array, quiet: Array, cuts: Sequence[int], n: int, tails: float) -> float:
    """Return how far cut `n` is from a step: 1 or more is none.

    Most of it may be clipped points, or no larger than the noise beside it; or chance puts as many
    wild points in a row, or points in this order. `tails` is the spread over the robust one.
    """
    noise, edges = noise_about(quiet, cuts), [0, *cuts, len(values)]
    sides = [slice(edges[n], cuts[n]), slice(cuts[n], edges[n + 2])]
    kept = [quiet[side][np.abs(values[side] - quiet[side]) < _OFF * noise.sd] for side in sides]
    if min(map(len, kept)) < STEP_FEWEST:
        return math.inf
    places = 3.0 * math.log(len(values))
    noise = replace(noise, sd=sd_beside(quiet[sides[0]], quiet[sides[1]], tails * noise.sd))
    effect = float(kept[1].mean() - kept[0].mean())
    p = _p_of_difference(effect, len(kept[0]), len(kept[1]), noise, len(values)) * places
    before, after = (values[side] for side in sides)
    chance = _chance(before, after, noise.sd) * (edges[n + 2] - edges[n])
    ranks = rank_p(before, after) * places if min(len(before), len(after)) >= _RANKED else 0.0
    return max(p / STEP_P, chance / STEP_P, ranks / STEP_RANK_P)


def _chance(before: Array, after: Array, sd: float) -> float:
    """Return P that the points of the shorter stretch are as far off in a row as single points of
    the other, or of its part next to them, are. Two points that differ are not one level.
    """
    few, many = (after, before) if len(after) <= len(before) else (before, after)
    if len(few) < STEP_FEWEST_INSIDE and np.ptp(few) > _OFF * sd:
        return 1.0
    effect = few.mean() - np.median(many)
    away = (many - np.median(many)) * np.sign(effect)
    visits = away > max(_OFF * sd, abs(effect) / 2.0)
    near = visits[-_LAST:] if few is after else visits[:_LAST]
    return float(max(visits.mean(), near.mean()) ** len(few))


def _apart(cuts: Iterable[int]) -> list[int]:
    """Return cuts in order without those that moved next to another one."""
    apart: list[int] = []
    for at in sorted(cuts):
        if not apart or at - apart[-1] >= STEP_FEWEST:
            apart.append(at)
    return apart


def _odd(values: Array, up: _Scan, down: _Scan, sd: float) -> bool:
    points = values[min(up.at, down.at) : max(up.at, down.at)]
    if not STEP_FEWEST <= len(points) < STEP_FEWEST_INSIDE:
        return False  # those that moved together are one
    return up.effect * down.effect < 0 or bool(np.ptp(points) > _OFF * sd)


def _scan(
    values: Array, stretch: tuple[int, int], noise: StepNoise, fewest: int = STEP_FEWEST
) -> _Scan:
    begin, end = stretch
    n = end - begin
    cuts = np.arange(fewest, n - fewest + 1)
    places: Array = cuts.astype(float)
    sums = np.cumsum(values[begin:end])
    left, right = sums[cuts - 1] / places, (sums[-1] - sums[cuts - 1]) / (n - places)
    effects = right - left
    t = effects / (noise.sd * np.sqrt(_of_mean(places, noise) + _of_mean(n - places, noise)))
    best = int(np.argmax(np.abs(t)))
    p_here = _p_of_difference(
        float(effects[best]), places[best], n - places[best], noise, len(values)
    )
    # Adjacent places are almost one test: a scan of n places counts as 3 ln n tests.
    p = min(1.0, p_here * max(1.0, 3.0 * math.log(n)))
    return _Scan(
        at=begin + int(cuts[best]),
        p=p,
        t=t,
        effect=float(effects[best]),
        begin=begin + fewest,
    )


def _p_of_difference(
    effect: float, before: float, after: float, noise: StepNoise, points: int
) -> float:
    """Return P of a difference of `effect` between two stretches without a step between them.

    `before` and `after` are their points, of `points` in the history. P is averaged over the error
    of the autocorrelation, `1 / sqrt(points)`: false steps come from histories whose correlation is
    underestimated by chance.
    """
    sizes, p = np.array([before, after]), 0.0
    for error, weight in _ERRORS:
        alike = min(max(noise.alike + error / math.sqrt(points), 0.0), MOST_ALIKE)
        variance = float(_of_mean(sizes, replace(noise, alike=alike)).sum())
        t = effect / (noise.sd * math.sqrt(variance))
        p += weight * 2.0 * float(stdtr(noise.df, -abs(t)))
    return p


def _step(
    values: Array, quiet: Array, stretch: tuple[int, int], at: int, noise: StepNoise
) -> LevelStep:
    wary, scan = _wary(noise, len(values)), _scan(quiet, stretch, noise)
    places = likely(0.5 * _scan(quiet, stretch, wary).t ** 2) + scan.begin
    lowest, highest = _bounds(quiet, stretch, at, noise.sd)
    places = places[(places >= lowest) & (places <= highest)]
    old, new = _ends(values, stretch, at, noise.sd)
    if new == old:
        return replace(_anywhere(quiet, stretch, places, at, wary), p=scan.p)
    places = np.array([*places, old, at, new])
    return replace(
        _difference(quiet, (stretch[0], old, new, stretch[1]), wary),
        at=at,
        first=int(places.min()),
        last=int(places.max()),
        p=scan.p,
    )


def _anywhere(
    values: Array, stretch: tuple[int, int], places: Places, best: int, noise: StepNoise
) -> LevelStep:
    """Return the step at the best place, with an interval that covers those at all likely places.

    Of several places the best is the one where chance makes the step largest.
    """
    begin, end = stretch
    steps = [_difference(values, (begin, at, at, end), noise) for at in {best, *places}]
    return replace(
        _difference(values, (begin, best, best, end), noise),
        low=min(step.low for step in steps),
        high=max(step.high for step in steps),
        first=int(min([best, *places])),
        last=int(max([best, *places])),
    )


def _wary(noise: StepNoise, points: int) -> StepNoise:
    """Return the noise with the largest likely autocorrelation, which is known to +-1/sqrt(n): an
    interval that ignores this is too narrow."""
    return replace(noise, alike=min(noise.alike + 1.0 / math.sqrt(points), MOST_ALIKE))


def likely(log_likelihood: Array) -> Places:
    """Return the smallest set of places that has 95 % of the likelihood.

    That of a step is exp(t^2 / 2), with the levels integrated out.
    """
    weights = np.exp(log_likelihood - np.max(log_likelihood))
    order = np.argsort(-weights)
    enough = int(np.searchsorted(np.cumsum(weights[order]) / weights.sum(), 1.0 - INTERVAL_ALPHA))
    return order[: enough + 1]


def _difference(values: Array, edges: tuple[int, int, int, int], noise: StepNoise) -> LevelStep:
    """Return the step from the points of the first two edges to those of the last two."""
    begin, old, new, end = edges
    before, after = values[begin:old], values[new:end]
    effect = float(after.mean() - before.mean())
    variance = float(_of_mean(np.array([len(before), len(after)], dtype=float), noise).sum())
    half = float(-stdtrit(noise.df, INTERVAL_ALPHA / 2)) * noise.sd * math.sqrt(variance)
    return LevelStep(
        at=new,
        first=old,
        last=new,
        parts=new > old,
        before=float(before.mean()),
        effect=effect,
        low=effect - half,
        high=effect + half,
        p=1.0,
    )


def _bounds(values: Array, stretch: tuple[int, int], at: int, sd: float) -> tuple[int, int]:
    """Return the first and the last place at which no point is `_OFF` spreads from its level."""
    begin, end = stretch
    levels = np.median(values[begin:at]), np.median(values[at:end])
    lowest, highest = at, at
    while lowest - 1 > begin and abs(values[lowest - 1] - levels[1]) < _OFF * sd:
        lowest -= 1
    while highest + 1 < end and abs(values[highest] - levels[0]) < _OFF * sd:
        highest += 1
    return lowest, highest


def _ends(values: Array, stretch: tuple[int, int], at: int, sd: float) -> tuple[int, int]:
    """Return the end of the old level and the beginning of the new one: the points in between fit
    neither, because two changes follow each other closely. One point beyond both is a wild one."""
    begin, end = stretch
    levels = np.median(values[begin:at]), np.median(values[at:end])
    off = np.min([np.abs(values - level) for level in levels], axis=0) > _OFF * sd
    old, new = at, at
    while old - begin > STEP_FEWEST and off[old - 1]:
        old -= 1
    while end - new > STEP_FEWEST and off[new]:
        new += 1
    between = new - old > 1 or min(levels) < values[old] < max(levels)
    return (old, new) if between else (at, at)


def noise_about(values: Array, cuts: Sequence[int]) -> StepNoise:
    """Return the spread and the autocorrelation about the medians between the cuts.

    The autocorrelation is that of neighbours, or that of points two apart if this implies a larger
    one (a wandering level below independent noise). Its bias, `-(1 + 3 r) / n` for one level
    (Kendall, Biometrika 41, 1954), counts once for each level and `_PLACE` times for the place of
    each cut.
    """
    stretches = [part - middle(part) for part in np.split(values, list(cuts))]
    n, pieces = len(values), len(stretches)
    sd = max(robust_sd(np.concatenate(stretches)), SPREAD_FLOOR)
    centred = [np.clip(part, -2.0 * sd, 2.0 * sd) for part in stretches]
    centred = [part - part.mean() for part in centred]
    squares = sum(float(part @ part) for part in centred) or 1.0
    one, two = (
        sum(float(part[lag:] @ part[:-lag]) for part in centred if len(part) > lag) / squares
        for lag in (1, 2)
    )
    fitted = pieces + _PLACE * (pieces - 1)
    one += (1.0 + 3.0 * one) * fitted / n
    two += (1.0 + 3.0 * max(one, 0.0)) * fitted / n
    slow = math.sqrt(two) if two > 1.0 / math.sqrt(n) else 0.0
    alike = min(max(one, slow, 0.0), MOST_ALIKE)
    df = HISTORY_EFFICIENCY * n * (1.0 - alike) / (1.0 + alike) - pieces
    return StepNoise(sd=sd * math.sqrt(n / max(n - pieces, 1)), alike=alike, df=max(df, 3.0))


def noise_of_mean(n: int, noise: StepNoise) -> float:
    """Return the variance of the mean of `n` neighbours."""
    return noise.sd**2 * float(_of_mean(np.array([float(n)]), noise)[0])


def _of_mean(n: Array, noise: StepNoise) -> Array:
    """Return the variance of the mean of `n` neighbours over that of one point.

    The model is a first-order autoregression.
    """
    r = noise.alike
    return np.asarray((1.0 + r) / (1.0 - r) / n - 2.0 * r * (1.0 - r**n) / (n * (1.0 - r)) ** 2)


def _without_wild(values: Array) -> Array:
    if len(values) < 5:
        return values
    around = np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, mode="reflect"), 5)
    medians = np.median(around, axis=1)
    far = _CUT * max(robust_sd(np.diff(values)) / math.sqrt(2.0), SPREAD_FLOOR)
    return np.asarray(medians + np.clip(values - medians, -far, far))
