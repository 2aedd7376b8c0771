"""Boots as columns, and the combinations of noise parameters that a posterior sums over.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.gaps import layout_spreads
from swingbot.core.bisect.thresholds import (
    END_CERTAINTY,
    LAYOUT_FACTORS,
    MODES_KNOWN,
    MOST_AT_BOUND,
    ODD_IMAGE_SD,
    ODD_IMAGES,
    ODD_IMAGES_UNCHECKED,
    ODD_MODE,
    SHAPES,
    UNEQUAL_LN_SD,
    UNEQUAL_SPREADS,
    Policy,
)
from swingbot.core.model.noise import NoisePrior
from swingbot.core.stats.boot_modes import BootModes, boot_modes, merged
from swingbot.core.stats.bound import Bound
from swingbot.core.stats.moments import median
from swingbot.core.thresholds import SPREAD_FLOOR

_NODES: Final = (-2.0, -1.0, 0.0, 1.0, 2.0)  # of ln(spread), in sd of its estimate
_END_SPACING: Final = 1.2
# of ln(spread) of one end alone, in sd of its estimate from the boots of that end
_END_NODES: Final = (-_END_SPACING, 0.0, _END_SPACING)
# Spreads lie on a lattice of ln(spread), so that most boots leave it as it is: its cells are powers
# of the square root of two, and its middle is a multiple of half a cell.
_PER_OCTAVE: Final = 2
# that modes are rounded to: of their share, and of a boot's spread
_MODE_SHARES: Final = 32
_MODE_PLACES: Final = 8


@dataclass(frozen=True, slots=True)
class BootColumns:
    """Boots as columns. A node is one kernel image: a measured position built with one layout."""

    at: Indices  # measured positions, ascending
    point: Indices  # node -> index into `at`
    node: Indices  # boot -> node, ascending
    x: Floats  # boot -> its level on the effect scale
    prior: float  # spread of one boot as known before the bisection
    spread: float  # of one boot, from replicates and prior
    error: float  # sd of ln(spread)
    df: float  # boots beyond the first of their kernel
    modes: BootModes | None = None  # of the boots, if they are known
    bound: Bound | None = None  # of the scale, that boots reach; on the effect scale

    @property
    def at_bound(self) -> NDArray[np.bool_]:
        """Boot -> whether all that it says is that its level is there or beyond."""
        return np.asarray(self.x == (math.nan if self.bound is None else self.bound.value))


@dataclass(frozen=True, slots=True)
class Theta:
    spread: float  # of one boot
    layout: float
    wild: float  # share of wild boots
    width: float  # their spread, in units of `spread`
    apart: float  # distance of their mean from the level, in units of `spread`
    odd: float = 0.0  # share of images whose offset is far larger than the layout spread
    mode: float | None = None  # their common offset; None: each has another one
    tight: bool = False  # wild boots are a mode: they tell as much about the level as the others

    @property
    def offset(self) -> float:
        """Distance of the mean of wild boots from the level, on the effect scale."""
        return self.apart * self.spread

    def with_spread(self, spread: float) -> Theta:
        """The same with another spread of one boot; a mode keeps its offset."""
        return replace(
            self, spread=spread, apart=self.offset / spread if self.tight else self.apart
        )

    @property
    def layout_var(self) -> float:
        """Variance of the offset of an image."""
        off = ODD_IMAGE_SD if self.mode is None else self.mode
        return self.layout**2 + self.odd * off**2


@dataclass(frozen=True, slots=True)
class ThetaPair:
    """The noise of the boots before the step and after it; mostly equal."""

    before: int  # index of a theta
    after: int
    ln_prior: float

    @property
    def equal(self) -> bool:
        return self.before == self.after


def boot_columns(ev: Evidence, noise: NoisePrior) -> BootColumns:
    boots = ev.boots
    images = [(position, b.layout) for position, b in zip(ev.boot_positions, boots, strict=True)]
    nodes = sorted(set(images))
    index = {key: i for i, key in enumerate(nodes)}
    at = sorted({position for position, _ in nodes})
    where = {position: i for i, position in enumerate(at)}
    node = np.array([index[key] for key in images], dtype=np.intp)
    x = np.array([_level(runs) for runs in ev.effects])
    bound = None
    if ev.bound is not None:
        bound = replace(ev.bound, value=ev.effect(ev.bound.value))
        x[[ev.bound.holds_all(b.values) for b in boots]] = bound.value
    runs = sum(len(b.values) for b in boots) / len(boots)
    prior = max(math.sqrt(noise.sd_boot**2 + noise.sd_run**2 / runs), SPREAD_FLOOR)
    tells, of_spread = (x, node) if bound is None else _off_bound(x, node, bound)
    modes = _modes(tells, of_spread, noise, prior)
    of_mode = tells if modes is None else merged(tells, of_spread, modes)
    spread, error, df = _known_spread(of_mode, of_spread, prior, noise.certainty)
    return BootColumns(
        np.array(at, np.intp),
        np.array([where[p] for p, _ in nodes], np.intp),
        node,
        x,
        prior,
        spread,
        error,
        df,
        modes,
        bound,
    )


def _off_bound(x: Floats, node: Indices, bound: Bound) -> tuple[Floats, Indices]:
    """The boots, and their images, that tell how boots differ: an image that often reaches the
    bound does not."""
    often = np.bincount(node, x == bound.value) > MOST_AT_BOUND * np.bincount(node)
    tell = ~often[node]
    return x[tell], np.unique(node[tell], return_inverse=True)[1]


def _modes(x: Floats, node: Indices, noise: NoisePrior, spread: float) -> BootModes | None:
    """The modes of the noise record, else those that these boots show, rounded."""
    if noise.mode_share > 0 and noise.mode_apart:
        return BootModes(noise.mode_share, noise.mode_apart)
    seen = boot_modes(np.split(x, np.flatnonzero(np.diff(node)) + 1))
    if seen is None:
        return None
    place = spread / _MODE_PLACES
    return BootModes(
        max(round(seen.share * _MODE_SHARES), 1) / _MODE_SHARES,
        round(seen.apart / place) * place,
    )


def _level(runs: Floats) -> float:
    """The level of a boot: the mean of its runs, without outliers if it has three or more."""
    values = sorted(runs.tolist())
    if len(values) >= 3:
        middle = median(values)
        reach = 4.0 * 1.4826 * median(sorted(abs(v - middle) for v in values))
        if reach > 0:
            values = [v for v in values if abs(v - middle) <= reach]
    return math.fsum(values) / len(values)


def _known_spread(
    x: Floats, node: Indices, prior: float, certainty: float
) -> tuple[float, float, float]:
    """Spread of one boot, sd of its logarithm, and the degrees of freedom of the replicates.

    Replicates of each kernel are taken about their median; wild ones are cut off.
    """
    counts = np.bincount(node)
    # nodes ascend
    images = np.split(x, np.cumsum(counts)[:-1])
    middle = np.array([median(np.sort(image)) for image in images if len(image)])
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


@dataclass(frozen=True, eq=False)
class Thetas:
    """Combinations of the unknown noise parameters, also as columns.

    Equal ones are the same object (`_only`), so tables are kept by it.
    """

    each: tuple[Theta, ...]

    @cached_property
    def spreads(self) -> Floats:
        """Spread of one boot."""
        return np.array([t.spread for t in self.each])

    @cached_property
    def boot_vars(self) -> Floats:
        """Variance of an equivalent Gaussian boot: wild boots tell next to nothing about the
        level."""
        return np.array([t.spread**2 / (1.0 if t.tight else 1.0 - t.wild) for t in self.each])

    @cached_property
    def layouts(self) -> Floats:
        """Spread of the layout."""
        return np.array([t.layout for t in self.each])

    @cached_property
    def layout_vars(self) -> Floats:
        """Variance of the offset of an image."""
        return np.array([t.layout_var for t in self.each])

    @cached_property
    def odd(self) -> Floats:
        """Share of images that are odd."""
        return np.array([t.odd for t in self.each])

    @cached_property
    def any_odd(self) -> bool:
        return bool(self.odd.any())


@lru_cache(maxsize=64)
def _only(thetas: tuple[Theta, ...]) -> Thetas:
    return Thetas(thetas)


@dataclass(frozen=True, eq=False)
class Combinations:
    """The noise of the boots before the step and after it, in pairs, also as columns."""

    thetas: Thetas
    pairs: tuple[ThetaPair, ...]

    @cached_property
    def before(self) -> Indices:
        return np.array([p.before for p in self.pairs], np.intp)

    @cached_property
    def after(self) -> Indices:
        return np.array([p.after for p in self.pairs], np.intp)

    @cached_property
    def ln_prior(self) -> Floats:
        return np.array([p.ln_prior for p in self.pairs])

    @cached_property
    def equal(self) -> NDArray[np.bool_]:
        return np.asarray(self.before == self.after)


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where ln(spread) is on its lattice."""

    middle: float
    width: float  # the error of ln(spread), rounded up

    @classmethod
    def of(cls, spread: float, error: float) -> _Cell:
        width = 2.0 ** (math.ceil(_PER_OCTAVE * math.log2(error)) / _PER_OCTAVE)
        return cls(round(2.0 * math.log(spread) / width) * width / 2.0, width)

    def at(self, z: float) -> float:
        """The spread `z` errors from the middle."""
        return math.exp(self.middle + z * self.width)


@dataclass(frozen=True, slots=True)
class _Known:
    """All that combinations of noise depend on, rounded."""

    cell: _Cell
    ends: tuple[_Cell, _Cell] | None  # the spread of each end alone; None: an end has one boot
    prior: float
    certainty: float
    layout: float
    layouts: tuple[tuple[float, float], ...]
    odd: tuple[tuple[float, float | None, float], ...]
    odd_prior: float
    modes: BootModes | None


def thetas_of(
    columns: BootColumns, noise: NoisePrior, policy: Policy, *, rebuilds: bool = True
) -> Combinations:
    """Combinations of the unknown noise parameters, and pairs of them.

    The weight of a spread is its prior, in equal steps of ln(spread). `rebuilds`: kernels can be
    built in another layout.
    """
    odd_prior = policy.odd_images
    if not rebuilds:
        odd_prior = min(ODD_IMAGES_UNCHECKED * policy.odd_images, 0.9)
    cell = _Cell.of(columns.spread, columns.error)
    return _combinations(
        _Known(
            cell=cell,
            ends=_ends(columns),
            prior=columns.prior,
            certainty=noise.certainty,
            layout=noise.sd_layout,
            layouts=layout_spreads(noise, LAYOUT_FACTORS),
            odd=tuple(_odd_kinds(columns, cell.at(0.0))) if odd_prior > 0 else (),
            odd_prior=odd_prior,
            modes=columns.modes,
        )
    )


@lru_cache(maxsize=64)
def _combinations(known: _Known) -> Combinations:
    prior_error = 1.0 / (2.0 * math.sqrt(max(known.certainty - 0.5, 0.05)))
    images = [(layout, 0.0, None, w * (1.0 - known.odd_prior)) for layout, w in known.layouts]
    odd_images = [(known.layout, share, mode, w * known.odd_prior) for share, mode, w in known.odd]
    thetas: list[Theta] = []
    pairs: list[ThetaPair] = []
    modes = known.modes
    shapes: tuple[tuple[float, float, float, float], ...] = SHAPES
    if modes is not None:
        share = modes.share if modes.share < 1.0 else 0.5
        shapes = (
            (share, 1.0, modes.apart, MODES_KNOWN),
            *tuple((*shape[:3], shape[3] * (1.0 - MODES_KNOWN)) for shape in SHAPES),
        )
    for z, (layout, odd, mode, w_images), (shape, (wild, width, apart, w_shape)) in product(
        _NODES, images + odd_images, enumerate(shapes)
    ):
        tight = modes is not None and shape == 0
        if odd and apart and not tight:
            continue  # odd images and two modes of boots at once are not considered
        spread = max(known.cell.at(z), SPREAD_FLOOR)
        ln_prior = -0.5 * (math.log(spread / known.prior) / prior_error) ** 2
        pairs.append(ThetaPair(len(thetas), len(thetas), ln_prior + math.log(w_images * w_shape)))
        off = apart / spread if tight else apart
        thetas.append(Theta(spread, layout, wild, width, off, odd, mode, tight))
    if known.ends is not None:
        _add_unequal(thetas, pairs, known, known.ends, prior_error)
    return Combinations(_only(tuple(thetas)), tuple(pairs))


@lru_cache(maxsize=64)
def with_least_spread(of: Combinations, quarters: int) -> Combinations:
    """The same with spreads of at least 2 to the power of `quarters` / 4."""
    least = 2.0 ** (quarters / 4)
    thetas = tuple(t if t.spread >= least else t.with_spread(least) for t in of.thetas.each)
    return Combinations(_only(thetas), of.pairs)


def _odd_kinds(columns: BootColumns, spread: float) -> Sequence[tuple[float, float | None, float]]:
    """(share of the images, their offset, prior if any are odd).

    A mode of images looks like a step if its offset equals the difference of the ends, so only that
    offset is considered. Its prior is that of all offsets which the boots of the ends do not
    distinguish from it (Laplace's method: the density there times the width of their error),
    because the size of a step is integrated over as well. `spread`: of one boot.
    """
    even: list[tuple[float, float | None, float]] = [(s, None, w) for s, w in ODD_IMAGES]
    nodes = columns.point[columns.node]
    good, bad = (columns.x[nodes == end] for end in (0, len(columns.at) - 1))
    apart = median(np.sort(bad)) - median(np.sort(good))
    error = spread * math.sqrt(1.0 / len(good) + 1.0 / len(bad))
    density = math.exp(-0.5 * (apart / ODD_IMAGE_SD) ** 2) * min(error / ODD_IMAGE_SD, 1.0)
    share, prior = ODD_MODE
    place = spread / _MODE_PLACES
    apart = round(apart / place) * place
    return [(s, kind, w * (1.0 - prior * density)) for s, kind, w in even] + [
        (share, off, prior * density / 2.0) for off in (apart, -apart) if density > 1e-6
    ]


def _ends(columns: BootColumns) -> tuple[_Cell, _Cell] | None:
    """The spread of each side, from the boots of that end alone."""
    cells = []
    for end in (0, len(columns.at) - 1):
        own = columns.point[columns.node] == end
        x, node = columns.x[own], columns.node[own]
        if columns.bound is not None:
            x, node = _off_bound(x, node - node.min(), columns.bound)
            if not len(x):
                return None
        spread, error, df = _known_spread(x, node - node.min(), columns.prior, END_CERTAINTY)
        if not df:
            return None
        cells.append(_Cell.of(spread, error))
    return cells[0], cells[1]


def _add_unequal(
    thetas: list[Theta],
    pairs: list[ThetaPair],
    known: _Known,
    ends: tuple[_Cell, _Cell],
    prior_error: float,
) -> None:
    """Add the pairs in which the commit changes the spread of the boots as well.

    The spread of the good side has the prior of the noise record.
    """
    sides = [[cell.at(z) for z in _END_NODES] for cell in ends]
    of_cells = _END_SPACING**2 * ends[0].width * ends[1].width / known.cell.width
    for wild, width, apart, w_shape in SHAPES:
        if apart != 0.0:
            continue
        at = [len(thetas) + i for i in range(2 * len(_END_NODES))]
        thetas += [
            Theta(max(spread, SPREAD_FLOOR), known.layout, wild, width, apart)
            for side in sides
            for spread in side
        ]
        for (i, good), (j, bad) in product(enumerate(sides[0]), enumerate(sides[1])):
            ratio = math.log(bad / good)
            ln_prior = (
                -0.5 * (math.log(good / known.prior) / prior_error) ** 2
                - 0.5 * (ratio / UNEQUAL_LN_SD) ** 2
                - math.log(UNEQUAL_LN_SD * math.sqrt(2.0 * math.pi))
                # these nodes stand for cells of (ln spread, ln ratio), the others for cells of
                # ln spread
                + math.log(of_cells)
                + math.log(UNEQUAL_SPREADS * w_shape)
            )
            pairs.append(ThetaPair(at[i], at[len(_END_NODES) + j], ln_prior))
