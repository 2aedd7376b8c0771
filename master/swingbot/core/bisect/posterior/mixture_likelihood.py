"""The likelihood of boots on a lattice of levels.

Levels and spreads are on lattices, so a boot leaves them as they are most of the time: the tables
of an image that has no new boot are those of the step before, and are kept. Used by `mixture`.
Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.special import log_ndtr

from swingbot.core.bisect.evidence.range_evidence import Floats
from swingbot.core.bisect.posterior.log_sums import exp_below, ln_add
from swingbot.core.bisect.posterior.mixture_noise import (
    BootColumns,
    Combinations,
    Theta,
    Thetas,
    with_least_spread,
)
from swingbot.core.bisect.thresholds import ODD_IMAGE_SD
from swingbot.core.stats.bound import Bound
from swingbot.core.stats.moments import median

# of levels, at most, in widths of the narrowest peak: sums over a Gaussian are exact to 1e-4 at 1.4
_SPACING: Final = 1.4
_PER_OCTAVE: Final = 4  # distances of levels between x and 2 x
_BEYOND: Final = 4.0  # that levels reach beyond a bound, in spreads of a boot
_ROUND: Final = 8  # the grid ends at multiples of so many levels
# beyond, spreads get a floor; happens only where the step is a hundred times the noise
_MOST_LEVELS: Final = 240
_LEAST_SMEAR: Final = 0.2  # cells: a layout narrower than that is not visible on the grid
_SMEAR_REACH: Final = 5.0  # of a layout, in its sd
_BLOCK: Final = 40  # levels that are convolved at once, with those within reach
_LEAST_LIKELIHOOD: Final = 1e-300
_LEAST_SINGLE: Final = 1e-26
_MOST_KEPT: Final = 1_000_000  # numbers of the tables of one lattice, 4 bytes each
_MOST_KEPT_IN_ALL: Final = 12_000_000
_MOST_LATTICES: Final = 64
# of a convolution with a wide density: its nodes in one sd, and sd in cells below which it has none
_FAR_NODES: Final = 2.5
_FEW_CELLS: Final = 5.0
_LEAST_HALF: Final = 1e-9
_ROOT_2PI: Final = math.sqrt(2.0 * math.pi)

Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LevelGrid:
    """Levels `first` .. `first + many - 1`, in steps of 2 to the power of `quarters` / 4."""

    quarters: int
    first: int
    many: int

    @property
    def step(self) -> float:
        """Distance of two neighbouring levels."""
        return float(2.0 ** (self.quarters / _PER_OCTAVE))

    @property
    def levels(self) -> Floats:
        return np.asarray(np.arange(self.first, self.first + self.many) * self.step, np.float64)


def level_grid(columns: BootColumns, of: Combinations) -> LevelGrid:
    """The grid of levels, wide enough for both sides of the step."""
    x, most = columns.x, len(columns.x)
    spreads = of.thetas.spreads
    narrow, wide = float(spreads.min()) / math.sqrt(most), float(spreads.max())
    smear = float(of.thetas.layouts.max())
    odd = 3.0 * ODD_IMAGE_SD
    images = [np.sort(part) for part in np.split(x, np.flatnonzero(np.diff(columns.node)) + 1)]
    low, high = math.inf, -math.inf
    for boots in (images[0], images[-1], np.sort(x)):
        reach = 6.0 * wide / math.sqrt(len(boots)) + 4.0 * smear
        middle = median(boots)
        low, high = min(low, middle - reach), max(high, middle + reach)
    inner = []
    for image in images:
        middle = median(image)
        if len(image) > 1:
            inner.append(middle)
        elif of.thetas.any_odd:  # a single boot may be wild, so its reach is limited
            inner.append(min(max(middle, low - odd), high + odd))
    if columns.bound is not None and columns.at_bound.any():  # the level is there or beyond
        away = (_BEYOND if columns.bound.upper else -_BEYOND) * wide
        inner += [columns.bound.value, columns.bound.value + away]
    if columns.modes is not None:  # every boot may be of either mode
        off = columns.modes.apart
        inner += [float(x.min()) - max(off, 0.0), float(x.max()) - min(off, 0.0)]
    if inner:
        low, high = min(low, *inner, high), max(high, *inner, low)
    quarters = max(
        math.floor(_PER_OCTAVE * math.log2(_SPACING * narrow)),
        math.ceil(_PER_OCTAVE * math.log2((high - low) / _MOST_LEVELS)),
    )
    step = 2.0 ** (quarters / _PER_OCTAVE)
    first = math.floor(low / step / _ROUND) * _ROUND
    last = math.ceil(high / step / _ROUND) * _ROUND
    return LevelGrid(quarters, first, last - first + 1)


def floored(of: Combinations, grid: LevelGrid, boots: int) -> Combinations:
    """The same with spreads that the grid of levels can show."""
    least = grid.step * math.sqrt(boots) / (1.2 * _SPACING)
    if float(of.thetas.spreads.min()) >= least:
        return of
    return with_least_spread(of, math.ceil(_PER_OCTAVE * math.log2(least)))


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """ln likelihood of boots by theta and level: `top` by theta, and what it is below that."""

    below: Singles
    top: Floats

    def of(self, theta: int) -> Floats:
        """Level -> ln likelihood."""
        return np.asarray(self.below[theta].astype(np.float64) + self.top[theta])


def position_likelihoods(
    columns: BootColumns, of: Combinations, grid: LevelGrid
) -> list[Likelihoods]:
    """The likelihoods of the boots of each measured position."""
    images = np.split(columns.x, np.flatnonzero(np.diff(columns.node)) + 1)
    tables = _tables(of.thetas, grid, columns.bound)
    positions: list[list[Likelihoods]] = [[] for _ in columns.at]
    for place, image in zip(columns.point.tolist(), images, strict=True):
        positions[place].append(tables.of_image(tuple(np.sort(image).tolist())))
    tables.forget(len(images))
    return [_together(each) for each in positions]


def _together(images: Sequence[Likelihoods]) -> Likelihoods:
    """The level of a commit, from the images that it has."""
    if len(images) == 1:
        return images[0]
    below, top = images[0].below + images[1].below, images[0].top + images[1].top
    for image in images[2:]:
        below, top = below + image.below, top + image.top
    return Likelihoods(below, top)


@dataclass(frozen=True, slots=True)
class _ImageKind:
    """Thetas that have images of the same kind."""

    layout: float
    odd: float
    mode: float | None
    thetas: NDArray[np.intp]
    kinds: NDArray[np.intp]  # of their boots
    smeared: bool


class _Tables:
    """The tables of images for one set of combinations and levels, as many as are kept.

    Each image is computed by itself, so that its digits do not depend on which others are kept.
    """

    def __init__(self, of: Thetas, grid: LevelGrid, bound: Bound | None) -> None:
        self.grid, self.levels, self.many = grid, grid.levels, len(of.each)
        self.bound = bound
        # (spread, shape) -> place: thetas of other layouts share them
        of_kind = {_kind(t): t for t in of.each}
        place = {key: i for i, key in enumerate(of_kind)}
        groups: dict[tuple[float, float, float | None], list[int]] = {}
        for i, t in enumerate(of.each):
            groups.setdefault((t.layout, t.odd, t.mode), []).append(i)
        self.images = [
            _ImageKind(
                layout,
                odd,
                mode,
                np.array(these, np.intp),
                np.array([place[_kind(of.each[i])] for i in these], np.intp),
                layout / grid.step >= _LEAST_SMEAR,
            )
            for (layout, odd, mode), these in groups.items()
        ]
        self.kind = np.array([place[_kind(t)] for t in of.each], np.intp)
        self.any_odd = any(image.odd and image.mode is None for image in self.images)
        self.smears = {image.layout for image in self.images if image.smeared}
        # where no image can be odd, the least likelihood of single precision might decide
        dtype, self.least = (
            (np.float32, _LEAST_SINGLE) if of.any_odd else (np.float64, _LEAST_LIKELIHOOD)
        )
        self.boot = _BootDensity.of(list(of_kind.values()), dtype)
        self.kept: OrderedDict[tuple[float, ...], Likelihoods] = OrderedDict()

    def of_image(self, boots: tuple[float, ...]) -> Likelihoods:
        """`boots`: their levels, ascending."""
        found = self.kept.get(boots)
        if found is None:
            found = self.kept[boots] = self._computed(boots)
        self.kept.move_to_end(boots)
        return found

    @property
    def numbers(self) -> int:
        return len(self.kept) * self.many * self.grid.many

    def forget(self, images: int) -> None:
        """Keep no more than `_MOST_KEPT` numbers, but those of the latest `images` in any case."""
        while len(self.kept) > images and self.numbers > _MOST_KEPT:
            self.kept.popitem(last=False)

    def _computed(self, boots: tuple[float, ...]) -> Likelihoods:
        """Thetas differ by what an image may be off by: its layout, or far more if it is odd."""
        node = self._of_boots(np.array(boots))
        top = node.max(axis=1)
        node = node - top[:, None]
        scaled = exp_below(node)
        near = {layout: _smeared(scaled, self._cells(layout)) for layout in self.smears}
        far = _far(scaled, self._cells(ODD_IMAGE_SD)) if self.any_odd else scaled
        ln = np.empty((self.many, self.grid.many), node.dtype)
        for image in self.images:
            if not image.odd and not image.smeared:
                ln[image.thetas] = node[image.kinds]
                continue
            of_layout = near[image.layout] if image.smeared else scaled
            likely = of_layout[image.kinds]
            if image.odd:
                other = far if image.mode is None else _moved(of_layout, self._cells(image.mode))
                likely *= 1.0 - image.odd
                likely += image.odd * other[image.kinds]
            np.maximum(likely, self.least, out=likely)
            ln[image.thetas] = np.log(likely, out=likely)
        most = ln.max(axis=1)
        ln -= most[:, None]
        return Likelihoods(
            ln.astype(np.float32, copy=False), most.astype(np.float64) + top[self.kind]
        )

    def _of_boots(self, boots: Floats) -> NDArray[Any]:
        """(kind of boot, level) -> ln likelihood of the boots."""
        bound = self.bound
        if bound is None or bound.value not in boots:
            return np.asarray(self.boot.ln(boots[:, None, None] - self.levels).sum(axis=0))
        free = boots[boots != bound.value]
        node = self.boot.ln_beyond(bound.value - self.levels, bound.upper)
        node *= len(boots) - len(free)
        if len(free):
            node += self.boot.ln(free[:, None, None] - self.levels).sum(axis=0)
        return node

    def _cells(self, distance: float) -> float:
        return distance / self.grid.step


# latest last
_KEPT: Final[OrderedDict[tuple[Thetas, LevelGrid, Bound | None], _Tables]] = OrderedDict()


def _tables(of: Thetas, grid: LevelGrid, bound: Bound | None) -> _Tables:
    """Of all lattices at most `_MOST_KEPT_IN_ALL` numbers are kept when a new one is asked for.

    Parts of a range have lattices of their own, and a service has many bisections.
    """
    key = of, grid, bound
    found = _KEPT.get(key)
    if found is None:
        found = _KEPT[key] = _Tables(of, grid, bound)
    _KEPT.move_to_end(key)
    kept = sum(tables.numbers for tables in _KEPT.values())
    while len(_KEPT) > 1 and (kept > _MOST_KEPT_IN_ALL or len(_KEPT) > _MOST_LATTICES):
        kept -= _KEPT.popitem(last=False)[1].numbers
    return found


def _far(scaled: NDArray[Any], sigma: float) -> NDArray[Any]:
    """The likelihoods convolved with a density of `sigma` cells, far wider than a cell.

    A Gaussian is the convolution of two that are narrower by sqrt(2). Summed over nodes `sigma` /
    `_FAR_NODES` apart which reach 4 `sigma` beyond the levels, their product is exact to 1e-13.
    """
    many = scaled.shape[-1]
    rows = scaled.reshape(-1, many)
    if sigma < _FEW_CELLS:
        density = exp_below(-0.5 * (np.arange(many) / sigma) ** 2) / (sigma * _ROOT_2PI)
        matrix = toeplitz(density).astype(scaled.dtype)
        return np.asarray(rows @ matrix).reshape(scaled.shape)
    half = _half_of_far(many, sigma, scaled.dtype)
    return np.asarray((rows @ half) @ half.T).reshape(scaled.shape)


@lru_cache(maxsize=8)
def _half_of_far(many: int, sigma: float, dtype: np.dtype[Any]) -> NDArray[Any]:
    apart = sigma / _FAR_NODES
    nodes = np.arange(-4.0 * sigma, many + 4.0 * sigma, apart)
    half = exp_below(-((np.subtract.outer(np.arange(many), nodes) / sigma) ** 2))
    half *= math.sqrt(apart / math.pi) / sigma
    if dtype == np.float32:  # products that underflow take a hundred times as long
        half[half < _LEAST_HALF * half.max()] = 0.0
    return half.astype(dtype)


def _smeared(scaled: NDArray[Any], sigma: float) -> NDArray[Any]:
    """The likelihoods convolved with a Gaussian of `sigma` cells that is cut at 5 `sigma`."""
    many = scaled.shape[-1]
    reach, within = _band(sigma, scaled.dtype)
    rows = scaled.reshape(-1, many)
    out = np.empty_like(rows)
    for first in range(0, many, _BLOCK):
        low, high = max(first - reach, 0), min(first + _BLOCK + reach, many)
        last = min(first + _BLOCK, many)
        band = within[low - first + reach : high - first + reach, : last - first]
        out[:, first:last] = rows[:, low:high] @ band
    return out.reshape(scaled.shape)


@lru_cache(maxsize=16)
def _band(sigma: float, dtype: np.dtype[Any]) -> tuple[int, NDArray[Any]]:
    """How many levels are in reach of a Gaussian of `sigma` cells, and the matrix by which every
    block of levels is convolved with those in reach."""
    reach = int(_SMEAR_REACH * sigma + 0.5)
    density = np.exp(-0.5 * (np.arange(reach + 1) / sigma) ** 2)
    density /= 2.0 * density.sum() - density[0]
    apart = np.subtract.outer(np.arange(-reach, _BLOCK + reach), np.arange(_BLOCK))
    within = density[np.minimum(np.abs(apart), len(density) - 1)] * (np.abs(apart) <= reach)
    return reach, within.astype(dtype)


def _moved(likely: NDArray[Any], cells: float) -> NDArray[Any]:
    """Likelihood of the level of the commit, from images (rows) whose own level is `cells` cells
    higher; between two levels, by proportion.
    """
    many, by = likely.shape[-1], math.floor(cells)
    lower = np.minimum(np.maximum(np.arange(by, many + by + 1), 0), many - 1)
    near = likely[:, lower]
    return np.asarray(near[:, :-1] + (cells - by) * (near[:, 1:] - near[:, :-1]))


def _kind(theta: Theta) -> tuple[float, float, float, float]:
    """The parameters on which the density of a single boot depends."""
    return theta.spread, theta.wild, theta.width, theta.apart


@dataclass(frozen=True, slots=True)
class _BootDensity:
    """The density of single boots, Gaussian with a share of wild boots, by kind as columns."""

    spread: Floats
    apart: NDArray[Any]
    narrower: NDArray[Any]
    clean: NDArray[Any]  # ln of the largest density of boots that are not wild
    wild: NDArray[Any]

    @classmethod
    def of(cls, kinds: Sequence[Theta], dtype: type[np.float32] | type[np.float64]) -> _BootDensity:
        spread, wild, width, apart = np.array([_kind(t) for t in kinds]).T[:, :, None]
        rest = (apart, 1.0 / width, np.log1p(-wild), np.log(wild / width))
        rest = (rest[0], rest[1], rest[2] - np.log(spread), rest[3] - np.log(spread))
        return cls(spread, *(each.astype(dtype) for each in rest))

    def ln(self, distance: Floats) -> NDArray[Any]:
        """(boot, kind, level) -> ln density of a boot so far, (boot, 1, level), from its level."""
        z = (distance / self.spread).astype(self.apart.dtype, copy=False)
        off = (z - self.apart) * self.narrower
        for of_shape, top in ((z, self.clean), (off, self.wild)):
            of_shape *= of_shape
            of_shape *= -0.5
            of_shape += top
        return ln_add(z, off)

    def ln_beyond(self, distance: Floats, upper: bool) -> NDArray[Any]:
        """(kind, level) -> ln probability that a boot is `distance` or more above its level, or,
        if not `upper`, below it."""
        sign = -1.0 if upper else 1.0
        z = distance / self.spread
        spread = np.log(self.spread)
        clean, wild = self.clean + spread, self.wild + spread + np.log(1.0 / self.narrower)
        off = (z - self.apart) * self.narrower
        ln = ln_add(log_ndtr(sign * z) + clean, log_ndtr(sign * off) + wild)
        return np.asarray(ln.astype(self.apart.dtype))
