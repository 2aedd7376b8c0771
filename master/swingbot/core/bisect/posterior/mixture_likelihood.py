"""The likelihood of boots on a grid of levels.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Floats, Indices
from swingbot.core.bisect.posterior.log_sums import exp_below, ln_add
from swingbot.core.bisect.posterior.mixture_noise import BootColumns, Theta
from swingbot.core.bisect.thresholds import ODD_IMAGE_SD

# of the grid, in widths of the narrowest peak: sums over a Gaussian are exact to 1e-8 at 1.0
_SPACING: Final = 0.7
_FINE: Final = 8  # positions of a boot between two levels of the grid
# beyond, spreads get a floor; happens only where the step is a hundred times the noise
_MOST_LEVELS: Final = 400
_LEAST_SMEAR: Final = 0.2  # cells: a layout narrower than that is not visible on the grid


def level_grid(columns: BootColumns, thetas: list[Theta]) -> Floats:
    """The grid of levels, wide enough for both sides of the step."""
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
        elif any_odd:  # a single boot may be wild, so its reach is limited
            inner.append(min(max(middle, low - odd), high + odd))
    if columns.modes is not None:  # every boot may be of either mode
        off = columns.modes.apart
        inner += [float(x.min()) - max(off, 0.0), float(x.max()) - min(off, 0.0)]
    if inner:
        low, high = min(low, *inner, high), max(high, *inner, low)
    step = max(_SPACING * narrow, (high - low) / _MOST_LEVELS)
    return np.asarray(np.arange(low, high + step, step))


def floored(theta: Theta, levels: Floats, columns: BootColumns) -> Theta:
    least = float(levels[1] - levels[0]) * math.sqrt(len(columns.x)) / (1.4 * _SPACING)
    return theta if theta.spread >= least else replace(theta, spread=least)


def point_likelihoods(columns: BootColumns, thetas: list[Theta], levels: Floats) -> Floats:
    """(theta, measured position, level) -> ln likelihood of the boots there."""
    step = float(levels[1] - levels[0])
    merge = np.flatnonzero(np.diff(columns.point, prepend=-1))
    # (spread, shape) -> place in `nodes`: thetas of other layouts share them
    of_kind = {_kind(t): t for t in thetas}
    kinds = {key: i for i, key in enumerate(of_kind)}
    nodes = _node_likelihoods(columns, list(of_kind.values()), levels)
    top = nodes.max(axis=2, keepdims=True)
    scaled = exp_below(nodes - top)
    far = np.zeros_like(nodes)
    if of_odd := sorted({kinds[_kind(t)] for t in thetas if t.odd and t.mode is None}):
        wide = _offsets(len(levels), ODD_IMAGE_SD / step)
        far[of_odd] = _ln_again(scaled[of_odd] @ wide, top[of_odd])
    tables = np.empty((len(thetas), len(columns.at), len(levels)))
    for layout in dict.fromkeys(t.layout for t in thetas):
        these = [i for i, t in enumerate(thetas) if t.layout == layout]
        smeared = nodes
        if layout / step >= _LEAST_SMEAR:
            smear = _offsets(len(levels), layout / step, truncate=5.0)
            smeared = _ln_again(scaled @ smear, top)
        for odd, mode in dict.fromkeys((thetas[i].odd, thetas[i].mode) for i in these):
            of_these = [i for i in these if (thetas[i].odd, thetas[i].mode) == (odd, mode)]
            rows = [kinds[_kind(thetas[i])] for i in of_these]
            of_images = smeared[rows]
            if odd and mode is not None:
                of_images = ln_add(
                    of_images + math.log1p(-odd), _moved(of_images, mode / step) + math.log(odd)
                )
            elif odd:
                of_images = ln_add(of_images + math.log1p(-odd), far[rows] + math.log(odd))
            tables[of_these] = _summed(of_images, merge)
    return tables


def _node_likelihoods(columns: BootColumns, kinds: list[Theta], levels: Floats) -> Floats:
    """(kind, image, level) -> ln likelihood of the boots of the image, if that is its level.

    The density of a boot is tabulated on a grid that is finer by `_FINE`: the levels are every
    `_FINE`-th entry of it, from the place of the boot downwards.
    """
    step, many = float(levels[1] - levels[0]), len(levels)
    where = np.rint((columns.x - levels[0]) / step * _FINE).astype(np.intp)
    limit = 3 * many * _FINE
    where = np.clip(where, many * _FINE - limit, limit)  # beyond, all levels are as unlikely
    first, last = int(where.min()) - _FINE * (many - 1), int(where.max())
    distance: Floats = np.arange(first, last + 1, dtype=np.float64) * (step / _FINE)
    of_boots = [slice(w - first - _FINE * (many - 1), w - first + 1, _FINE) for w in where]
    nodes = np.zeros((len(kinds), len(columns.point), many))
    for row, kind in zip(nodes, kinds, strict=True):
        ln = _ln_boot(distance, kind)
        for node, of_boot in zip(columns.node, of_boots, strict=True):
            row[node] += ln[of_boot]
    return nodes[:, :, ::-1]


def _offsets(many: int, sigma: float, truncate: float = math.inf) -> Floats:
    """Matrix that convolves (level,) with a Gaussian of `sigma` cells, by multiplication from the
    right.

    Products of matrices take a fraction of the time of a filter as wide as that.
    """
    apart = np.abs(np.subtract.outer(np.arange(many), np.arange(many)))
    density = np.exp(-0.5 * (np.arange(many) / sigma) ** 2)
    if math.isinf(truncate):
        return np.asarray(density[apart] / (sigma * math.sqrt(2.0 * math.pi)))
    reach = int(truncate * sigma + 0.5)
    whole = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2).sum()
    density[reach + 1 :] = 0.0
    return np.asarray(density[apart] / whole)


def _summed(of_images: Floats, merge: Indices) -> Floats:
    """ln likelihood of the levels of commits, each from the images that it has."""
    if len(merge) == of_images.shape[1]:
        return of_images
    return np.add.reduceat(of_images, merge, axis=1)


def _moved(ln: Floats, cells: float) -> Floats:
    """ln likelihood of the level of the commit, from images (rows) whose own level is `cells` cells
    higher.
    """
    many, by = ln.shape[-1], round(cells)
    return np.asarray(ln[..., np.clip(np.arange(many) + by, 0, many - 1)])


def _kind(theta: Theta) -> tuple[float, float, float, float]:
    """The parameters on which the density of a single boot depends."""
    return theta.spread, theta.wild, theta.width, theta.apart


def _ln_boot(distance: Floats, theta: Theta) -> Floats:
    """ln density of one boot at a distance from its level: Gaussian, with a share of wild boots."""
    z = distance / theta.spread
    clean = math.log1p(-theta.wild) - z**2 / 2
    wild = math.log(theta.wild / theta.width) - (z - theta.apart) ** 2 / (2 * theta.width**2)
    return ln_add(clean, wild) - math.log(theta.spread)


def _ln_again(scaled: Floats, top: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(scaled, 1e-300)) + top)
