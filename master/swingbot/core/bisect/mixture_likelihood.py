"""The likelihood of boots on a grid of levels.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.ndimage import gaussian_filter1d

from swingbot.core.bisect.evidence import Floats
from swingbot.core.bisect.mixture_noise import BootColumns, Theta
from swingbot.core.bisect.thresholds import ODD_IMAGE_SD

# of the grid, in widths of the narrowest peak: sums over a Gaussian are exact to 1e-8 at 1.0
_SPACING: Final = 0.7
_FINE: Final = 8  # positions of a boot between two levels of the grid
# beyond, spreads get a floor; happens only where the step is a hundred times the noise
_MOST_LEVELS: Final = 400


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
    """ln likelihood of the level of the commit, from images (rows) whose own level is `cells` cells
    higher.
    """
    many, by = ln.shape[-1], round(cells)
    return np.asarray(ln[:, np.clip(np.arange(many) + by, 0, many - 1)])


def _kind(theta: Theta) -> tuple[float, float, float, float]:
    """The parameters on which the density of a single boot depends."""
    return theta.spread, theta.wild, theta.width, theta.apart


def _ln_boot(distance: Floats, theta: Theta) -> Floats:
    """ln density of one boot at a distance from its level: Gaussian, with a share of wild boots."""
    z = distance / theta.spread
    clean = math.log1p(-theta.wild) - z**2 / 2
    wild = math.log(theta.wild / theta.width) - (z - theta.apart) ** 2 / (2 * theta.width**2)
    return np.logaddexp(clean, wild) - math.log(theta.spread)


def _smeared(ln: Floats, scaled: Floats, top: Floats, sigma: float) -> Floats:
    """ln likelihoods of kernels (rows), convolved with a layout offset: a Gaussian of `sigma`
    cells.

    `scaled`: exp(ln - top).
    """
    if sigma < 0.2:
        return ln
    return _ln_again(gaussian_filter1d(scaled, sigma, axis=-1, mode="constant", truncate=5.0), top)


def _ln_again(scaled: Floats, top: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(scaled, 1e-300)) + top)
