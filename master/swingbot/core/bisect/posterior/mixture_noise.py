"""Boots as columns, and the combinations of noise parameters that a posterior sums over.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.gaps import layout_spreads
from swingbot.core.bisect.thresholds import (
    END_CERTAINTY,
    LAYOUT_FACTORS,
    MODES_KNOWN,
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
from swingbot.core.stats.moments import median
from swingbot.core.thresholds import SPREAD_FLOOR

_NODES: Final = (-2.0, -1.0, 0.0, 1.0, 2.0)  # of ln(spread), in sd of its estimate
_END_SPACING: Final = 1.2
# of ln(spread) of one end alone, in sd of its estimate from the boots of that end
_END_NODES: Final = (-_END_SPACING, 0.0, _END_SPACING)


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
    runs = sum(len(b.values) for b in boots) / len(boots)
    prior = max(math.sqrt(noise.sd_boot**2 + noise.sd_run**2 / runs), SPREAD_FLOOR)
    modes = _modes(x, node, noise)
    of_mode = x if modes is None else merged(x, node, modes)
    spread, error, df = _known_spread(of_mode, node, prior, noise.certainty)
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
    )


def _modes(x: Floats, node: Indices, noise: NoisePrior) -> BootModes | None:
    """The modes of the noise record, else those that these boots show."""
    if noise.mode_share > 0 and noise.mode_apart:
        return BootModes(noise.mode_share, noise.mode_apart)
    return boot_modes(np.split(x, np.flatnonzero(np.diff(node)) + 1))


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
    middle = np.array([median(np.sort(image)) for image in images])
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


def thetas_of(
    columns: BootColumns, noise: NoisePrior, policy: Policy, *, rebuilds: bool = True
) -> tuple[list[Theta], list[ThetaPair]]:
    """Combinations of the unknown noise parameters, and pairs of them.

    The weight of a spread is its prior, in equal steps of ln(spread). `rebuilds`: kernels can be
    built in another layout.
    """
    odd_prior = policy.odd_images
    if not rebuilds:
        odd_prior = min(ODD_IMAGES_UNCHECKED * policy.odd_images, 0.9)
    prior_error = 1.0 / (2.0 * math.sqrt(max(noise.certainty - 0.5, 0.05)))
    images = [
        (layout, 0.0, None, w * (1.0 - odd_prior))
        for layout, w in layout_spreads(noise, LAYOUT_FACTORS)
    ]
    odd_images = [
        (noise.sd_layout, share, mode, w * odd_prior)
        for share, mode, w in _odd_kinds(columns)
        if odd_prior > 0
    ]
    thetas: list[Theta] = []
    pairs: list[ThetaPair] = []
    modes = columns.modes
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
        spread = max(columns.spread * math.exp(z * columns.error), SPREAD_FLOOR)
        ln_prior = -0.5 * (math.log(spread / columns.prior) / prior_error) ** 2
        pairs.append(ThetaPair(len(thetas), len(thetas), ln_prior + math.log(w_images * w_shape)))
        off = apart / spread if tight else apart
        thetas.append(Theta(spread, layout, wild, width, off, odd, mode, tight))
    _add_unequal(thetas, pairs, columns, noise.sd_layout, prior_error)
    return thetas, pairs


def _odd_kinds(columns: BootColumns) -> list[tuple[float, float | None, float]]:
    """(share of the images, their offset, prior if any are odd).

    A mode of images looks like a step if its offset equals the difference of the ends, so only that
    offset is considered. Its prior is that of all offsets which the boots of the ends do not
    distinguish from it (Laplace's method: the density there times the width of their error),
    because the size of a step is integrated over as well.
    """
    even: list[tuple[float, float | None, float]] = [(s, None, w) for s, w in ODD_IMAGES]
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
    thetas: list[Theta],
    pairs: list[ThetaPair],
    columns: BootColumns,
    layout: float,
    prior_error: float,
) -> None:
    """Add the pairs in which the commit changes the spread of the boots as well.

    The spread of each side is estimated from the boots of that end; that of the good side has the
    prior of the noise record.
    """
    sides = []
    for end in (0, len(columns.at) - 1):
        own = columns.point[columns.node] == end
        x, node = columns.x[own], columns.node[own]
        spread, error, df = _known_spread(x, node - node.min(), columns.prior, END_CERTAINTY)
        if not df:
            return
        sides.append([(spread * math.exp(z * error), error) for z in _END_NODES])
    for wild, width, apart, w_shape in SHAPES:
        if apart != 0.0:
            continue
        at = [len(thetas) + i for i in range(2 * len(_END_NODES))]
        thetas += [
            Theta(max(spread, SPREAD_FLOOR), layout, wild, width, apart)
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
                # these nodes stand for cells of (ln spread, ln ratio), the others for cells of
                # ln spread
                + math.log(_END_SPACING**2 * error * bad_error / columns.error)
                + math.log(UNEQUAL_SPREADS * w_shape)
            )
            pairs.append(ThetaPair(at[i], at[len(_END_NODES) + j], ln_prior))
