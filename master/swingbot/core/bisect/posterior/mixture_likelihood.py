"""The likelihood of boots on a grid of levels.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.linalg import toeplitz

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
_SMEAR_REACH: Final = 5.0  # of a layout, in its sd
_BLOCK: Final = 40  # levels that are convolved at once, with those within reach
_CHUNK: Final = 30_000  # numbers that are worked on at once: they fit into the cache
_LEAST_LIKELIHOOD: Final = 1e-300
# of a convolution with a wide density: its nodes in one sd, and sd in cells below which it has none
_FAR_NODES: Final = 2.5
_FEW_CELLS: Final = 5.0
_ROOT_2PI: Final = math.sqrt(2.0 * math.pi)


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


def floored(thetas: list[Theta], levels: Floats, columns: BootColumns) -> list[Theta]:
    """The same with spreads that the grid of levels can show."""
    least = float(levels[1] - levels[0]) * math.sqrt(len(columns.x)) / (1.4 * _SPACING)
    return [t if t.spread >= least else replace(t, spread=least) for t in thetas]


def point_likelihoods(columns: BootColumns, thetas: list[Theta], levels: Floats) -> Floats:
    """(theta, measured position, level) -> ln likelihood of the boots there."""
    step = float(levels[1] - levels[0])
    merge = np.flatnonzero(np.diff(columns.point, prepend=-1))
    # (spread, shape) -> place in `nodes`: thetas of other layouts share them
    of_kind = {_kind(t): t for t in thetas}
    kinds = {key: i for i, key in enumerate(of_kind)}
    kind = np.array([kinds[_kind(t)] for t in thetas], np.intp)
    nodes = _node_likelihoods(columns, list(of_kind.values()), levels)
    groups: dict[tuple[float, float, float | None], list[int]] = {}
    for i, t in enumerate(thetas):
        groups.setdefault((t.layout, t.odd, t.mode), []).append(i)
    smears = {layout for layout, _, _ in groups if layout / step >= _LEAST_SMEAR}
    # kinds whose likelihoods are added, not only multiplied; `row` is the place among these
    added = sorted({int(kind[i]) for i, t in enumerate(thetas) if t.odd or t.layout in smears})
    row = np.searchsorted(added, kind)
    top = nodes[added].max(axis=2, keepdims=True)
    scaled = exp_below(nodes[added] - top)
    odd_anyhow = any(t.odd and t.mode is None for t in thetas)
    far = _far(scaled, ODD_IMAGE_SD / step) if odd_anyhow else scaled
    tables = np.empty((len(thetas), len(columns.at), len(levels)))
    chunk = max(1, _CHUNK // nodes[0].size)
    for layout in dict.fromkeys(layout for layout, _, _ in groups):
        near, near_row = scaled, row
        if layout in smears:
            some = np.unique(row[[i for key, of in groups.items() if key[0] == layout for i in of]])
            near, near_row = _smeared(scaled[some], layout / step), np.searchsorted(some, row)
        for odd, mode in [(o, m) for at, o, m in groups if at == layout]:
            these = np.array(groups[layout, odd, mode], np.intp)
            other, other_row = far, row
            if mode is not None:
                other, other_row = _moved(near, mode / step), near_row
            for some in np.split(these, range(chunk, len(these), chunk)):
                if odd:
                    of_images = near[near_row[some]]
                    of_images *= 1.0 - odd
                    of_images += odd * other[other_row[some]]
                    of_images = _ln_again(of_images, top[row[some]])
                elif layout in smears:
                    of_images = _ln_again(near[near_row[some]], top[row[some]])
                else:
                    of_images = nodes[kind[some]]
                tables[some] = _summed(of_images, merge)
    return tables


def _node_likelihoods(columns: BootColumns, kinds: list[Theta], levels: Floats) -> Floats:
    """(kind, image, level) -> ln likelihood of the boots of the image, if that is its level.

    The density of a boot is tabulated on a grid that is finer by `_FINE`: the levels are every
    `_FINE`-th entry of it, from the place of the boot downwards. The entries of each of the `_FINE`
    places of a boot between two levels are one table.
    """
    step, many = float(levels[1] - levels[0]), len(levels)
    where = np.rint((columns.x - levels[0]) / step * _FINE).astype(np.intp)
    limit = 3 * many * _FINE
    where = np.clip(where, many * _FINE - limit, limit)  # beyond, all levels are as unlikely
    first = int(where.min())
    begin, phase = np.divmod(where - first, _FINE)
    width = int(begin.max()) + many
    # descending, as levels ascend
    entries = first + _FINE * np.arange(width - many, -many, -1, dtype=np.float64)
    tables = {p: _ln_boot((entries + p) * (step / _FINE), kinds) for p in np.unique(phase).tolist()}
    nodes = np.zeros((len(kinds), len(columns.point), many))
    begin = width - many - begin
    for node, p, b in zip(columns.node.tolist(), phase.tolist(), begin.tolist(), strict=True):
        nodes[:, node] += tables[p][:, b : b + many]
    return nodes


def _far(scaled: Floats, sigma: float) -> Floats:
    """The likelihoods convolved with a density of `sigma` cells, far wider than a cell.

    A Gaussian is the convolution of two that are narrower by sqrt(2). Summed over nodes `sigma` /
    `_FAR_NODES` apart which reach 4 `sigma` beyond the levels, their product is exact to 1e-13.
    """
    many = scaled.shape[-1]
    rows = scaled.reshape(-1, many)
    if sigma < _FEW_CELLS:
        density = exp_below(-0.5 * (np.arange(many) / sigma) ** 2) / (sigma * _ROOT_2PI)
        return np.asarray(rows @ toeplitz(density)).reshape(scaled.shape)
    apart = sigma / _FAR_NODES
    nodes = np.arange(-4.0 * sigma, many + 4.0 * sigma, apart)
    half = exp_below(-((np.subtract.outer(np.arange(many), nodes) / sigma) ** 2))
    half *= math.sqrt(apart / math.pi) / sigma
    return np.asarray((rows @ half) @ half.T).reshape(scaled.shape)


def _smeared(scaled: Floats, sigma: float) -> Floats:
    """The likelihoods convolved with a Gaussian of `sigma` cells that is cut at 5 `sigma`."""
    many = scaled.shape[-1]
    reach = int(_SMEAR_REACH * sigma + 0.5)
    density = np.exp(-0.5 * (np.arange(reach + 1) / sigma) ** 2)
    density /= 2.0 * density.sum() - density[0]
    # every block of levels is convolved with those within reach by the same matrix
    apart = np.subtract.outer(np.arange(-reach, _BLOCK + reach), np.arange(_BLOCK))
    within = density[np.minimum(np.abs(apart), len(density) - 1)] * (np.abs(apart) <= reach)
    rows = scaled.reshape(-1, many)
    out = np.empty_like(rows)
    for first in range(0, many, _BLOCK):
        low, high = max(first - reach, 0), min(first + _BLOCK + reach, many)
        last = min(first + _BLOCK, many)
        band = within[low - first + reach : high - first + reach, : last - first]
        out[:, first:last] = rows[:, low:high] @ band
    return out.reshape(scaled.shape)


def _summed(of_images: Floats, merge: Indices) -> Floats:
    """ln likelihood of the levels of commits, each from the images that it has."""
    kinds, images, levels = of_images.shape
    if len(merge) == images:
        return of_images
    out = np.empty((kinds, len(merge), levels))
    for i, (first, end) in enumerate(pairwise([*merge.tolist(), images])):
        np.sum(of_images[:, first:end], axis=1, out=out[:, i])
    return out


def _moved(ln: Floats, cells: float) -> Floats:
    """ln likelihood of the level of the commit, from images (rows) whose own level is `cells` cells
    higher.
    """
    many, by = ln.shape[-1], round(cells)
    return np.asarray(ln[..., np.clip(np.arange(many) + by, 0, many - 1)])


def _kind(theta: Theta) -> tuple[float, float, float, float]:
    """The parameters on which the density of a single boot depends."""
    return theta.spread, theta.wild, theta.width, theta.apart


def _ln_boot(distance: Floats, kinds: list[Theta]) -> Floats:
    """(kind, distance) -> ln density of one boot so far from its level: Gaussian, with a share of
    wild boots.
    """
    spread, wild, width, apart = np.array([_kind(t) for t in kinds]).T[:, :, None]
    z = distance / spread
    off = z - apart
    off /= width
    for of_shape, ln_share in ((z, np.log1p(-wild)), (off, np.log(wild / width))):
        of_shape *= of_shape
        of_shape *= -0.5
        of_shape += ln_share - np.log(spread)
    return ln_add(z, off)


def _ln_again(scaled: Floats, top: Floats) -> Floats:
    out = np.maximum(scaled, _LEAST_LIKELIHOOD)
    np.log(out, out=out)
    out += top
    return out
