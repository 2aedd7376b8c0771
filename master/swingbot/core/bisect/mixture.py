"""Where is the step, when boots may be wild?

Exact up to a grid; for testboxes whose boots are not paired.

    y = mu + D * [behind the step] + layout(kernel) + boot + run

Levels live on a grid. There any noise will do: the likelihood of a boot is a function of the level,
that of a kernel the product over its boots, smeared by layout; points before the step share mu,
those behind it mu + D. Spreads and the share of wild boots are summed over. Every hypothesis is a
product of running sums (docs/statistics.md, "The posterior of a bisection").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import expit, logsumexp, ndtr

from swingbot.core.bisect import gaussian, gradual
from swingbot.core.bisect.evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior import (
    Hypotheses,
    Posterior,
    blend,
    creep_probability,
    gap_prior,
    may_creep,
    per_commit,
    seen_swing,
)
from swingbot.core.bisect.thresholds import (
    EFFECT_WIDTHS,
    LAYOUT_FACTORS,
    MODES_KNOWN,
    ODD_IMAGE_SD,
    ODD_IMAGES,
    ODD_IMAGES_SEEN,
    ODD_IMAGES_UNCHECKED,
    ODD_MODE,
    SHAPES,
    TWO_STEPS_MOST_GAPS,
    UNEQUAL_LN_SD,
    UNEQUAL_SPREADS,
    WANDER_MOST_BOOTS,
    WILD_P,
    WILD_WEIGHT,
    Policy,
)
from swingbot.core.model.bisection import Observation
from swingbot.core.model.noise import NoisePrior
from swingbot.core.stats.boot_modes import BootModes, boot_modes, merged
from swingbot.core.thresholds import SPREAD_FLOOR

_NODES: Final = (-2.0, -1.0, 0.0, 1.0, 2.0)  # of ln(spread), in sd of what is known about it
# of the grid, in widths of the narrowest peak: sums over a Gaussian are exact to 1e-8 at 1.0
_SPACING: Final = 0.7
_FINE: Final = 8  # places of a boot between two levels of the grid
_MOST_LEVELS: Final = (
    400  # beyond, spreads get a floor: only where the step is a hundred times the noise
)
_COARSE: Final = 0.25  # cells of the coarse grid, in sd of the narrowest effect prior
_END_SPACING: Final = 1.2
# of ln(spread) of one end alone, in sd of what its boots say
_END_NODES: Final = (-_END_SPACING, 0.0, _END_SPACING)
_END_CERTAINTY: Final = 0.75  # of the noise record, in the spread of one end alone
_MOST_CELLS: Final = 1600  # beyond, levels are a factor of e^20 apart
_CREEP_NOISES: Final = 4  # combinations of noise in which a creep is weighed
_FAR: Final = 60.0  # nats below the best: too unlikely to be looked at


@dataclass(frozen=True, slots=True)
class _Columns:
    """Boots as columns. A node is one kernel image: a measured position built with one layout."""

    at: Indices  # measured positions, ascending
    point: Indices  # node -> index into `at`
    node: Indices  # boot -> node, ascending
    x: Floats  # boot -> its level on the effect scale
    prior: float  # spread of one boot as it was known before the bisection
    spread: float  # of one boot: what replicates and prior say
    error: float  # sd of ln(spread)
    df: float  # boots beyond the first of their kernel
    modes: BootModes | None = None  # that boots are known to fall into


@dataclass(frozen=True, slots=True)
class _Theta:
    spread: float  # of one boot
    layout: float
    wild: float  # share of wild boots
    width: float  # their spread, in units of `spread`
    apart: float  # how far their middle is from the level, in units of `spread`
    odd: float = 0.0  # share of images that are off by far more than their layout
    mode: float | None = None  # by how much, if all by the same; None: each by another amount
    tight: bool = False  # wild boots are a mode: they tell as much of the level as the others

    @property
    def layout_var(self) -> float:
        """Variance of what an image is off by."""
        off = ODD_IMAGE_SD if self.mode is None else self.mode
        return self.layout**2 + self.odd * off**2


@dataclass(frozen=True, slots=True)
class _Pair:
    """What the boots before the step are like and those behind it: mostly the same."""

    before: int  # index of a theta
    behind: int
    ln_prior: float

    @property
    def equal(self) -> bool:
        return self.before == self.behind


@dataclass(frozen=True, slots=True)
class _Hypotheses:
    """Arrays over (pair, gap between neighbouring measured positions); the last gap is "no
    change".
    """

    ln: Floats
    low: Floats  # E[mu]
    low_var: Floats
    high: Floats  # E[mu + D]
    high_var: Floats


def posterior(ev: Evidence, noise: NoisePrior, policy: Policy, *, min_effect: float) -> Posterior:
    """Needs boots of both ends."""
    columns = _columns(ev, noise, policy.edition)
    thetas, pairs = _thetas(columns, noise, policy, rebuilds=ev.layout_cost is not None)
    levels = _levels(columns, thetas)
    thetas = [_floored(t, levels, columns) for t in thetas]
    points = _points(columns, thetas, levels)
    before = np.cumsum(points, axis=1)
    pairs = _possible(before, pairs)
    ln_prior = gap_prior(columns.at, ev.mass, policy)
    found = _hypotheses(before, pairs, levels, policy)
    ln = found.ln + ln_prior + np.array([p.ln_prior for p in pairs])[:, None]
    if policy.edition > 2:
        ln += seen_swing([thetas[p.before].odd for p in pairs], policy, len(ln_prior))
    one = float(logsumexp(ln))
    of_pairs = np.where([p.equal for p in pairs], logsumexp(ln, axis=1), -np.inf)
    best = int(np.argmax(of_pairs))
    theta = pairs[best].before
    two = _two_steps(
        points[theta],
        levels,
        policy,
        ln_prior,
        float(of_pairs[best]) - pairs[best].ln_prior,
        columns.at,
    )
    along = may_creep(columns.at, ev.mass, policy.prior_creep)
    ranked = [(float(of_pairs[i]), pairs[i]) for i in np.argsort(-of_pairs, kind="stable")]
    creep, crept = (
        (0.0, (0.0, 0.0))
        if along is None
        else _creep(points, levels, ranked, along, two[0], policy)
    )
    two_sides = [(thetas[p.before], thetas[p.behind]) for p in pairs]
    weight = np.exp(ln - one)
    still = _collect(columns, two_sides, found, weight, ev.mass, min_effect, two)
    if policy.edition > 2 and still.odd_images < ODD_IMAGES_SEEN:
        still = replace(still, sd_layout_if_even=_sd_layout_of_even(two_sides, weight))
    second = _wild(columns, thetas[theta], still)
    if thetas[theta].tight:
        off = thetas[theta].apart * thetas[theta].spread
        moved = tuple(off if p > WILD_P else 0.0 for p in second)
        still = replace(still, wild=(0.0,) * len(second), mode=moved)
    else:
        still = replace(still, wild=second)
    return _moving(
        ev,
        columns,
        replace(still, creep=creep, crept=crept),
        noise,
        policy,
        min_effect,
    )


def _moving(
    ev: Evidence,
    columns: _Columns,
    still: Posterior,
    noise: NoisePrior,
    policy: Policy,
    min_effect: float,
) -> Posterior:
    """With the possibility that the testbox wandered meanwhile; for a group of testboxes, with what
    they differ by.
    """
    boots = ev.boots
    group = any(b.testbox for b in boots)
    if len(boots) > WANDER_MOST_BOOTS or (any(b.at is None for b in boots) and not group):
        return still
    rows = gaussian.BootMeans(
        at=columns.at[columns.point],
        kernel=columns.node,
        level=columns.x - np.array(still.mode) if still.mode else columns.x,
        weight=np.array([1.0 if p < WILD_P or group else WILD_WEIGHT for p in still.wild]),
        times=np.array(
            [i if b.at is None else b.at for i, b in enumerate(boots)], dtype=np.float64
        ),
        testbox=np.array([b.testbox for b in boots], dtype=np.intp),
        spread=columns.spread,
        prior=columns.prior,
    )
    moving, wander = gaussian.wandering(ev, rows, noise, policy, min_effect=min_effect)
    return (
        replace(moving, wander=wander, wild=still.wild, mode=still.mode)
        if group
        else blend(still, moving, wander)
    )


def _wild(columns: _Columns, theta: _Theta, post: Posterior) -> tuple[float, ...]:
    """Boot -> P(wild), from both levels by how likely each is for it."""
    behind = post.behind()[columns.at[columns.point][columns.node]]
    off = math.sqrt(theta.spread**2 + theta.layout_var)
    clean, wild = np.zeros(len(columns.x)), np.zeros(len(columns.x))
    for level, share in ((post.low, 1.0 - behind), (post.low + post.effect, behind)):
        z = (columns.x - level) / off
        clean += share * (1.0 - theta.wild) * np.exp(-(z**2) / 2)
        wild += (
            share
            * theta.wild
            / theta.width
            * np.exp(-((z - theta.apart) ** 2) / (2 * theta.width**2))
        )
    return tuple(float(p) for p in wild / np.maximum(wild + clean, 1e-300))


# --- boots ----------------------------------------------------------------------------------------


def _columns(ev: Evidence, noise: NoisePrior, edition: int = 3) -> _Columns:
    boots = ev.boots
    of = [(place, b.layout) for place, b in zip(ev.places, boots, strict=True)]
    nodes = sorted(set(of))
    index = {key: i for i, key in enumerate(nodes)}
    at = sorted({position for position, _ in nodes})
    where = {position: i for i, position in enumerate(at)}
    node = np.array([index[key] for key in of], dtype=np.intp)
    x = np.array([_level(ev, b) for b in boots])
    runs = sum(len(b.values) for b in boots) / len(boots)
    prior = max(math.sqrt(noise.sd_boot**2 + noise.sd_run**2 / runs), SPREAD_FLOOR)
    modes = _modes(x, node, noise) if edition > 2 else None
    of_mode = x if modes is None else merged(x, node, modes)
    spread, error, df = _known_spread(of_mode, node, prior, noise.certainty)
    return _Columns(
        np.array(at, np.intp),
        np.array([where[p] for p, _ in nodes], np.intp),
        node,
        x,
        prior,
        spread,
        error,
        df,
        modes,
    )


def _modes(x: Floats, node: Indices, noise: NoisePrior) -> BootModes | None:
    """As the noise record knows them, else as these boots show them."""
    if noise.mode_share > 0 and noise.mode_apart:
        return BootModes(noise.mode_share, noise.mode_apart)
    return boot_modes([x[node == i].tolist() for i in range(int(node.max()) + 1)])


def _level(ev: Evidence, boot: Observation) -> float:
    """Of one boot: the mean of its runs, from three on without what is far outside the others."""
    values = np.array([ev.of(v) for v in boot.values])
    if len(values) >= 3:
        middle = float(np.median(values))
        reach = 4.0 * 1.4826 * float(np.median(np.abs(values - middle)))
        if reach > 0:
            values = values[np.abs(values - middle) <= reach]
    return float(values.mean())


def _known_spread(
    x: Floats, node: Indices, prior: float, certainty: float
) -> tuple[float, float, float]:
    """Spread of one boot, sd of its logarithm, and the degrees of freedom that the boots themselves
    gave: replicates of each kernel about their median, what is wild cut off.
    """
    counts = np.bincount(node)
    middle = np.array([np.median(x[node == i]) for i in range(len(counts))])
    replicated = counts[node] > 1
    off = np.abs(x - middle[node])[replicated]
    df = float((counts - 1).clip(0).sum())
    a2, spread = 2.0 * max(certainty - 0.5, 0.1), prior
    if df:
        correct = df / max(len(off), 1)
        for _ in range(8):
            inside = off < 3.0 * spread / math.sqrt(correct)
            share = max(float(inside.sum()) / len(off), 1.0 / len(off))
            squares = float((off[inside] ** 2).sum()) / share
            spread = max(math.sqrt((a2 * prior**2 + squares) / (a2 + df)), SPREAD_FLOOR)
    return spread, 1.2 / math.sqrt(2.0 * (a2 + df)), df


def _thetas(
    columns: _Columns, noise: NoisePrior, policy: Policy, *, rebuilds: bool = True
) -> tuple[list[_Theta], list[_Pair]]:
    """Nodes over what is not known exactly. Weights of the spread are those of its prior, in
    steps of equal ln(spread). `rebuilds`: kernels can be built in another layout."""
    odd_prior = policy.odd_images
    if policy.edition > 2 and not rebuilds:
        odd_prior = min(ODD_IMAGES_UNCHECKED * policy.odd_images, 0.9)
    prior_error = 1.0 / (2.0 * math.sqrt(max(noise.certainty - 0.5, 0.05)))
    layouts = (
        tuple((f * noise.sd_layout, w) for f, w in LAYOUT_FACTORS)
        if noise.sd_layout > 0
        else ((0.0, 1.0),)
    )
    images = [(layout, 0.0, None, w * (1.0 - odd_prior)) for layout, w in layouts]
    odd_images = [
        (noise.sd_layout, share, mode, w * odd_prior)
        for share, mode, w in _odd_kinds(columns, policy)
        if odd_prior > 0
    ]
    made: list[_Theta] = []
    pairs: list[_Pair] = []
    modes = columns.modes
    shapes: tuple[tuple[float, float, float, float], ...] = SHAPES
    if modes is not None:
        share = modes.share if modes.share < 1.0 else 0.5
        shapes = (
            (share, 1.0, modes.apart, MODES_KNOWN),
            *tuple((*shape[:3], shape[3] * (1.0 - MODES_KNOWN)) for shape in SHAPES),
        )
    for z, (layout, odd, mode, w_images), (place, (wild, width, apart, w_shape)) in product(
        _NODES, images + odd_images, enumerate(shapes)
    ):
        tight = modes is not None and place == 0
        if odd and apart and not tight:
            continue  # odd images and two modes of boots at once are not looked for
        spread = max(columns.spread * math.exp(z * columns.error), SPREAD_FLOOR)
        ln_prior = -0.5 * (math.log(spread / columns.prior) / prior_error) ** 2
        pairs.append(_Pair(len(made), len(made), ln_prior + math.log(w_images * w_shape)))
        off = apart / spread if tight else apart
        made.append(_Theta(spread, layout, wild, width, off, odd, mode, tight))
    if policy.edition > 1:
        _add_unequal(made, pairs, columns, noise.sd_layout, prior_error)
    return made, pairs


def _odd_kinds(columns: _Columns, policy: Policy) -> list[tuple[float, float | None, float]]:
    """(share of the images, by how much they are off, prior if any are odd). A mode of images
    feigns a step where it is as far away as the ends are: of all distances that it may have,
    only that one is looked at. Its prior is that of all distances which the boots of the ends do
    not distinguish from it (Laplace's method: the density there, as wide as their error), for the
    size of a step is integrated over as well."""
    even: list[tuple[float, float | None, float]] = [(s, None, w) for s, w in ODD_IMAGES]
    if policy.edition < 3:
        return even
    nodes = columns.point[columns.node]
    good, bad = (np.median(columns.x[nodes == end]) for end in (0, len(columns.at) - 1))
    apart = float(bad - good)
    boots = [float(np.sum(nodes == end)) for end in (0, len(columns.at) - 1)]
    error = columns.spread * math.sqrt(sum(1.0 / n for n in boots))
    density = math.exp(-0.5 * (apart / ODD_IMAGE_SD) ** 2) * min(error / ODD_IMAGE_SD, 1.0)
    share, prior = ODD_MODE
    return [(s, kind, w * (1.0 - prior * density)) for s, kind, w in even] + [
        (share, off, prior * density / 2.0) for off in (apart, -apart) if density > 1e-6
    ]


def _add_unequal(
    made: list[_Theta],
    pairs: list[_Pair],
    columns: _Columns,
    layout: float,
    prior_error: float,
) -> None:
    """The commit changes the spread of the boots as well.

    The spread of either side is what the boots of that end say; that of the good side has the prior
    of the noise record.
    """
    sides = []
    for end in (0, len(columns.at) - 1):
        own = columns.point[columns.node] == end
        x, node = columns.x[own], columns.node[own]
        spread, error, df = _known_spread(x, node - node.min(), columns.prior, _END_CERTAINTY)
        if not df:
            return
        sides.append([(spread * math.exp(z * error), error) for z in _END_NODES])
    for wild, width, apart, w_shape in SHAPES:
        if apart != 0.0:
            continue
        at = [len(made) + i for i in range(2 * len(_END_NODES))]
        made += [
            _Theta(max(spread, SPREAD_FLOOR), layout, wild, width, apart)
            for side in sides
            for spread, _ in side
        ]
        for (i, (good, error)), (j, (bad, bad_error)) in product(
            enumerate(sides[0]), enumerate(sides[1])
        ):
            ratio = math.log(bad / good)
            ln_prior = (
                -0.5 * (math.log(good / columns.prior) / prior_error) ** 2
                - 0.5 * (ratio / UNEQUAL_LN_SD) ** 2
                - math.log(UNEQUAL_LN_SD * math.sqrt(2.0 * math.pi))
                # the nodes stand for cells of (ln spread, ln ratio), the others for cells of ln
                # spread
                + math.log(_END_SPACING**2 * error * bad_error / columns.error)
                + math.log(UNEQUAL_SPREADS * w_shape)
            )
            pairs.append(_Pair(at[i], at[len(_END_NODES) + j], ln_prior))


def _levels(columns: _Columns, thetas: list[_Theta]) -> Floats:
    """The grid: where the level of either side may lie."""
    x, most = columns.x, len(columns.x)
    narrow = min(t.spread for t in thetas) / math.sqrt(most)
    wide = max(t.spread for t in thetas)
    smear = max(t.layout for t in thetas)
    odd = 3.0 * ODD_IMAGE_SD
    first, last = columns.node == 0, columns.node == columns.node[-1]
    low, high = math.inf, -math.inf
    for boots in (first, last, np.ones(most, bool)):
        reach = 6.0 * wide / math.sqrt(float(boots.sum())) + 4.0 * smear
        middle = float(np.median(x[boots]))
        low, high = min(low, middle - reach), max(high, middle + reach)
    any_odd = any(t.odd for t in thetas)
    inner = []
    for i in range(len(columns.point)):
        of_image = x[columns.node == i]
        middle = float(np.median(of_image))
        if len(of_image) > 1:
            inner.append(middle)
        elif any_odd:  # a single boot may be wild: not too far out
            inner.append(min(max(middle, low - odd), high + odd))
    if columns.modes is not None:  # every boot may be of either mode
        off = columns.modes.apart
        inner += [float(x.min()) - max(off, 0.0), float(x.max()) - min(off, 0.0)]
    if inner:
        low, high = min(low, *inner, high), max(high, *inner, low)
    step = max(_SPACING * narrow, (high - low) / _MOST_LEVELS)
    return np.asarray(np.arange(low, high + step, step))


def _floored(theta: _Theta, levels: Floats, columns: _Columns) -> _Theta:
    least = float(levels[1] - levels[0]) * math.sqrt(len(columns.x)) / (1.4 * _SPACING)
    return theta if theta.spread >= least else replace(theta, spread=least)


def _points(columns: _Columns, thetas: list[_Theta], levels: Floats) -> Floats:
    """(theta, measured position, level) -> ln likelihood of the boots there."""
    step, many = float(levels[1] - levels[0]), len(levels)
    where = np.rint((columns.x - levels[0]) / step * _FINE).astype(np.intp)
    starts = np.flatnonzero(np.diff(columns.node, prepend=-1))
    off = where[:, None] - _FINE * np.arange(many)[None, :]
    reach = min(3 * many * _FINE, int(np.abs(off).max(initial=1)))
    distance: Floats = np.arange(-reach, reach + 1, dtype=np.float64) * (step / _FINE)
    pick = np.clip(off, -reach, reach) + reach
    merge = np.flatnonzero(np.diff(columns.point, prepend=-1))
    apart = np.subtract.outer(levels, levels) / ODD_IMAGE_SD
    wide = np.exp(-0.5 * apart**2) * (step / (ODD_IMAGE_SD * math.sqrt(2.0 * math.pi)))
    # (spread, shape) -> place in `nodes`: thetas of other layouts share them
    kinds = {key: i for i, key in enumerate(dict.fromkeys(map(_kind, thetas)))}
    nodes = np.empty((len(kinds), len(columns.point), many))
    for theta in {_kind(t): t for t in thetas}.values():
        ln = _ln_boot(distance, theta)[pick]
        nodes[kinds[_kind(theta)]] = np.add.reduceat(ln, starts, axis=0)
    top = nodes.max(axis=2, keepdims=True)
    scaled = np.exp(nodes - top)
    far: dict[int, Floats] = {}
    tables = np.empty((len(thetas), len(columns.at), many))
    for layout in dict.fromkeys(t.layout for t in thetas):
        these = [i for i, t in enumerate(thetas) if t.layout == layout]
        places = sorted({kinds[_kind(thetas[i])] for i in these})
        row = {place: at for at, place in enumerate(places)}
        smeared = _smeared(nodes[places], scaled[places], top[places], layout / step)
        for i in these:
            place, odd = kinds[_kind(thetas[i])], thetas[i].odd
            of_images = smeared[row[place]]
            mode = thetas[i].mode
            if odd and mode is not None:
                of_images = np.logaddexp(
                    of_images + math.log1p(-odd),
                    _moved(of_images, mode / step) + math.log(odd),
                )
            elif odd:
                if place not in far:
                    far[place] = _ln_again(scaled[place] @ wide, top[place])
                of_images = np.logaddexp(of_images + math.log1p(-odd), far[place] + math.log(odd))
            tables[i] = np.add.reduceat(of_images, merge, axis=0)
    return tables


def _moved(ln: Floats, cells: float) -> Floats:
    """What images (rows) whose level is so many cells higher than that of their commit say of
    the commit's level."""
    many, by = ln.shape[-1], round(cells)
    return np.asarray(ln[:, np.clip(np.arange(many) + by, 0, many - 1)])


def _kind(theta: _Theta) -> tuple[float, float, float, float]:
    """What the density of a single boot depends on."""
    return theta.spread, theta.wild, theta.width, theta.apart


def _ln_boot(distance: Floats, theta: _Theta) -> Floats:
    """ln density of one boot at a distance from its level: mostly Gaussian, now and then wild."""
    z = distance / theta.spread
    clean = math.log1p(-theta.wild) - z**2 / 2
    wild = math.log(theta.wild / theta.width) - (z - theta.apart) ** 2 / (2 * theta.width**2)
    return np.logaddexp(clean, wild) - math.log(theta.spread)


def _smeared(ln: Floats, scaled: Floats, top: Floats, sigma: float) -> Floats:
    """Kernels (rows) whose level may be off by their layout: a Gaussian of `sigma` cells.

    `scaled`: exp(ln - top).
    """
    if sigma < 0.2:
        return ln
    return _ln_again(gaussian_filter1d(scaled, sigma, axis=-1, mode="constant", truncate=5.0), top)


def _ln_again(scaled: Floats, top: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(scaled, 1e-300)) + top)


# --- hypotheses -----------------------------------------------------------------------------------


def _possible(before: Floats, pairs: list[_Pair]) -> list[_Pair]:
    """The pairs that can matter.

    What a pair fits best, over all gaps and both levels, is a bound of what it can weigh; what the
    best one weighs is less than that by logarithms of the number of gaps, of pairs of levels and of
    priors, together less than 40. Two steps and a creep are only weighed under equal spreads: the
    best of those stay even where no pair of equal spreads can matter (a cap that only one side
    reaches).
    """
    left = before[:, :-1].max(axis=2)
    right = (before[:, -1:] - before[:, :-1]).max(axis=2)
    fits = (left[[p.before for p in pairs]] + right[[p.behind for p in pairs]]).max(
        axis=1
    ) + np.array([p.ln_prior for p in pairs])
    near = fits >= fits.max() - _FAR
    equal = np.array([p.equal for p in pairs])
    if not near[equal].any():
        near |= equal & (fits >= fits[equal].max() - _FAR)
    return [pairs[i] for i in np.flatnonzero(near)]


def _hypotheses(before: Floats, pairs: list[_Pair], levels: Floats, policy: Policy) -> _Hypotheses:
    """`before`: running sums of the measured positions' ln likelihoods, (theta, measured position,
    level).
    """
    used = sorted({i for p in pairs for i in (p.before, p.behind)})
    place = {theta: i for i, theta in enumerate(used)}
    i, j = [place[p.before] for p in pairs], [place[p.behind] for p in pairs]
    before = before[used]
    whole = before[:, -1:, :]
    left, left_top = _scaled(before[:, :-1])
    right, right_top = _scaled(whole - before[:, :-1])
    share, kernel = _coupling(levels, policy)
    left_c, right_c = left @ share, right @ share
    from_left, from_right = left_c @ kernel, right_c @ kernel
    with np.errstate(divide="ignore"):
        ln = np.log((from_left[i] * right_c[j]).sum(axis=2)) + left_top[i] + right_top[j]
    low, low_var = _moments(left[i] * (from_right @ share.T)[j], levels)
    high, high_var = _moments(right[j] * (from_left @ share.T)[i], levels)
    none, none_top = _scaled(whole)
    step = float(levels[1] - levels[0])
    with np.errstate(divide="ignore"):
        ln_none = (np.log(none.sum(axis=2)) + none_top - math.log(step))[i]
    # a change of the spread alone is a change
    ln_none[[not p.equal for p in pairs]] = -np.inf
    level, level_var = (moment[i] for moment in _moments(none, levels))
    together = [
        np.concatenate(pair, axis=1)
        for pair in (
            (ln, ln_none),
            (low, level),
            (low_var, level_var),
            (high, level),
            (high_var, level_var),
        )
    ]
    return _Hypotheses(*together)


def _scaled(ln: Floats) -> tuple[Floats, Floats]:
    top = ln.max(axis=2, keepdims=True)
    return np.exp(ln - top), top[:, :, 0]


def _moments(weight: Floats, levels: Floats) -> tuple[Floats, Floats]:
    total = np.maximum(weight.sum(axis=2), 1e-300)
    mean = (weight @ levels) / total
    return mean, np.maximum(
        (weight @ levels**2) / total - mean**2, (levels[1] - levels[0]) ** 2 / 12
    )


def _coupling(levels: Floats, policy: Policy) -> tuple[Floats, Floats]:
    """The prior of D ties the two levels.

    It is smooth, so it is applied on a coarse grid: (level -> shares of its two coarse neighbours,
    coarse x coarse density).
    """
    narrow = min(f for f, _ in EFFECT_WIDTHS) * policy.prior_effect
    wanted = max(2, math.ceil(float(levels[-1] - levels[0]) / (_COARSE * narrow)) + 1)
    cells = min(wanted, _MOST_CELLS)
    coarse = np.linspace(float(levels[0]), float(levels[-1]), cells)
    place = (levels - coarse[0]) / (coarse[1] - coarse[0])
    lower = np.clip(np.floor(place).astype(int), 0, cells - 2)
    share = np.zeros((len(levels), cells))
    rows = np.arange(len(levels))
    share[rows, lower], share[rows, lower + 1] = 1.0 - (place - lower), place - lower
    # fewer cells than the prior wants, because levels are many orders apart: no narrower than they
    # are
    blur = 0.0 if cells == wanted else float(coarse[1] - coarse[0]) / 2.0
    return share, _effect_density(coarse[:, None] - coarse[None, :], policy, blur)


def _effect_density(effect: Floats, policy: Policy, blur: float = 0.0) -> Floats:
    density = np.zeros_like(effect)
    for factor, weight in EFFECT_WIDTHS:
        sd = math.hypot(factor * policy.prior_effect, blur)
        density += weight / (sd * math.sqrt(2 * math.pi)) * np.exp(-0.5 * (effect / sd) ** 2)
    return density


def _two_steps(
    points: Floats, levels: Floats, policy: Policy, ln_prior: Floats, ln_one: float, at: Indices
) -> tuple[float, tuple[int, int] | None]:
    """P(two steps against one or none) at one theta, and the first and last measured position
    between them at the likeliest pair.
    """
    gaps = len(at) - 1
    if gaps < 2 or gaps > TWO_STEPS_MOST_GAPS or policy.prior_two <= 0:
        return 0.0, None
    before = np.cumsum(points, axis=0)
    left, left_top = _scaled(before[None, :-1])
    right, right_top = _scaled((before[-1:] - before[:-1])[None])
    share, kernel = _coupling(levels, policy)
    from_left, from_right = (((side[0] @ share) @ kernel) @ share.T for side in (left, right))
    i, j = np.triu_indices(gaps, 1)
    with np.errstate(divide="ignore"):
        middle = before[j] - before[i] + np.log(from_left[i]) + np.log(from_right[j])
    step = float(levels[1] - levels[0])
    ln = logsumexp(middle, axis=1) + left_top[0][i] + right_top[0][j] + math.log(step)
    ln = (
        ln
        + ln_prior[i]
        + ln_prior[j]
        + math.log(2.0)
        + math.log(policy.prior_two / (1 - policy.prior_two))
    )
    best = int(np.argmax(ln))
    return float(expit(logsumexp(ln) - ln_one)), (int(at[i[best] + 1]), int(at[j[best]]))


def _creep(
    points: Floats,
    levels: Floats,
    ranked: list[tuple[float, _Pair]],
    along: Floats,
    two: float,
    policy: Policy,
) -> tuple[float, tuple[float, float]]:
    """P(creep) against one step, two, many or none, and (mean, variance) of its size. `ranked`:
    ln weight of one step or none in each combination of noise, the likeliest first; all
    hypotheses are weighed in the first few. `two`: P(two steps)."""
    share, kernel = _coupling(levels, policy)
    ones, manys, lines = [], [], []
    for ln_one, pair in ranked[:_CREEP_NOISES]:
        if not math.isfinite(ln_one):
            break  # unequal spreads are not looked at
        grid = gradual.Grid(points[pair.before], levels, share, kernel)
        sizes = gradual.sizes_of(grid, along)
        found = gradual.line(grid, along, _effect_density(sizes, policy), sizes)
        ones.append(ln_one)
        manys.append(pair.ln_prior + gradual.many_steps(grid, np.diff(along)))
        lines.append(replace(found, ln=found.ln + pair.ln_prior))
    whole, many, one = (float(logsumexp(ln)) for ln in ([found.ln for found in lines], manys, ones))
    best = max(lines, key=lambda found: found.ln)
    return creep_probability(whole, many, one, two, policy.prior_creep), (best.size, best.var)


def _collect(
    columns: _Columns,
    thetas: list[tuple[_Theta, _Theta]],
    found: _Hypotheses,
    weight: Floats,
    mass: Floats,
    min_effect: float,
    two: tuple[float, tuple[int, int] | None],
) -> Posterior:
    change, none = weight[:, :-1], float(weight[:, -1].sum())
    given = change / max(float(change.sum()), 1e-300)
    effect, var = (found.high - found.low)[:, :-1], (found.high_var + found.low_var)[:, :-1]
    sd = np.sqrt(var)
    small = ndtr((min_effect - effect) / sd) - ndtr((-min_effect - effect) / sd)
    mean = float((given * effect).sum())
    per_theta = weight.sum(axis=1)
    # of one that tells as much of a level: wild boots tell next to nothing
    spread2 = np.array(
        [(t.spread**2 + b.spread**2) / 2.0 / (1.0 if t.tight else 1.0 - t.wild) for t, b in thetas]
    )
    layout = math.sqrt(float((per_theta * np.array([t.layout_var for t, _ in thetas])).sum()))
    boot_var = float((per_theta * spread2).sum())
    even = np.array([t.odd == 0.0 for t, _ in thetas])
    odd_images = float(per_theta[~even].sum())
    if_even = change[even].sum(axis=0) / max(1.0 - odd_images, 1e-300)
    # how well the levels are known: boots do not tell whether an image that they share is odd
    counted = even if odd_images < ODD_IMAGES_SEEN else np.ones(len(thetas), bool)
    of_levels = change[counted] / max(float(change[counted].sum()), 1e-300)
    return Posterior(
        commit=per_commit(columns.at, change.sum(axis=0), mass),
        none=none,
        none_or_small=none + float((change * small).sum()),
        effect=mean,
        effect_var=float((given * (var + (effect - mean) ** 2)).sum()),
        low=float((given * found.low[:, :-1]).sum()),
        low_var=float((of_levels * found.low_var[counted, :-1]).sum()),
        high_var=float((of_levels * found.high_var[counted, :-1]).sum()),
        sd_layout=layout,
        boot_var=boot_var,
        two=two[0],
        middle=two[1],
        df=columns.df,
        hypotheses=_told(columns.at, found, weight),
        odd_images=odd_images,
        noisier=_noisier(thetas, per_theta),
        if_even=per_commit(columns.at, if_even, mass),
    )


def _sd_layout_of_even(thetas: list[tuple[_Theta, _Theta]], weight: Floats) -> float:
    """Return the layout spread if no image is odd.

    P(odd images) is weighed with each commit. Counted in the spread as well, a small P would hide
    each step that is smaller than what an odd image is off by, whatever is booted.
    """
    even = np.array([t.odd == 0.0 for t, _ in thetas])
    likely = weight.sum(axis=1)[even]
    layout2 = np.array([t.layout**2 for t, _ in thetas])[even]
    return math.sqrt(float((likely * layout2).sum()) / max(float(likely.sum()), 1e-300))


def _noisier(thetas: list[tuple[_Theta, _Theta]], per_theta: Floats) -> tuple[float, float]:
    """(P(the step changes the spread), by which factor if it does)."""
    ratio = np.array([math.log(b.spread / t.spread) for t, b in thetas])
    unequal = np.array([t is not b for t, b in thetas])
    p = float(per_theta[unequal].sum())
    return p, math.exp(float((per_theta * ratio)[unequal].sum()) / max(p, 1e-300))


def _told(at: Indices, found: _Hypotheses, weight: Floats) -> Hypotheses:
    """The hypotheses, whatever theta."""
    total = weight.sum(axis=0)
    share = weight / np.maximum(total, 1e-300)

    def moments(mean: Floats, var: Floats) -> tuple[Floats, Floats]:
        middle = (share * mean).sum(axis=0)
        return middle, (share * (var + (mean - middle) ** 2)).sum(axis=0)

    return Hypotheses(
        at, total, *moments(found.low, found.low_var), *moments(found.high, found.high_var)
    )
