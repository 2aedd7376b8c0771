"""What a boot would tell about which commit it is, from what each hypothesis foresees of it.

Formulas: docs/statistics.md, "The next boot".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from swingbot.core.bisect.evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior import Hypotheses, Posterior
from swingbot.core.model.bisection import Observation

_NEGLIGIBLE: Final = 1e-5  # hypotheses that are less likely tell nothing
_SPACING: Final = 0.3  # of the quadrature, in sd of the narrowest peak
_REACH: Final = 5.0  # sd
# fewest and most; with more between the levels, one boot tells all there is
_PLACES: Final = (64, 1500)
# share of a boot's variance below which layout is no reason to remember what a kernel showed before
_LITTLE_LAYOUT: Final = 0.05
_ANSWERS: Final = 12  # of boots under way that are gone through
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19)
_WIDE: Final = 1e6  # variance of a level that nothing is known of, in variances of a boot


def foreseen(
    ev: Evidence, post: Posterior, hypotheses: Hypotheses, positions: Indices, *, new_layout: bool
) -> Floats:
    """Bits that one boot of each of `positions` tells about where the step is, or that there is
    none.

    It is the entropy of the value that all hypotheses together foresee less the mean entropy of
    what each of them foresees. `new_layout`: of another build of the same code.
    """
    layout, boot = post.sd_layout**2, post.boot_var
    weights, mean, var = _sides(hypotheses, ev.mass, positions)
    shown = weights.max(axis=0) > _NEGLIGIBLE
    weights, mean, var = weights[:, shown], mean[shown], var[shown]
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    bits = np.zeros(len(positions))
    own = np.array(
        [
            not new_layout and layout > _LITTLE_LAYOUT * boot and bool(ev.at(int(p)))
            for p in positions
        ]
    )
    if not own.all():
        bits[~own] = _information(weights[~own], mean, var + layout + boot)
    for i in np.flatnonzero(own):
        bits[i] = _information(
            weights[i : i + 1],
            *_of_this_build(ev, ev.at(int(positions[i])), mean, var, layout, boot),
        )[0]
    return bits


def on_testbox(ev: Evidence, post: Posterior, testbox: int, prior_effect: float) -> Hypotheses:
    """The hypotheses in a group of testboxes, each at a level of its own: what they say of the
    levels of `testbox`.

    Given where the step is, its size follows from all testboxes (each weighs n m / (n + m), n boots
    before the step against m behind it), and the level of `testbox` from its own boots.
    """
    at = np.array(sorted(set(ev.places)), np.intp)
    upto = np.cumsum(post.commit)[at]
    weight = np.append(np.diff(upto), post.none)
    place = np.searchsorted(at, ev.places)
    value = np.array([np.mean([ev.of(v) for v in b.values]) for b in ev.boots])
    testboxes = np.array([b.testbox for b in ev.boots])
    before, total = _running(place, testboxes, np.ones(len(value)), len(at))
    sum_before, sums = _running(place, testboxes, value, len(at))
    low, high = before[:, :-1], total[:, None] - before[:, :-1]  # boots by (testbox, gap)
    worth = low * high / np.maximum(low + high, 1.0)
    apart = np.where(
        worth > 0,
        (sums[:, None] - sum_before[:, :-1]) / np.maximum(high, 1.0)
        - sum_before[:, :-1] / np.maximum(low, 1.0),
        0.0,
    )
    precision = worth.sum(axis=0) / post.boot_var + 1.0 / prior_effect**2
    effect, effect_var = (worth * apart).sum(axis=0) / post.boot_var / precision, 1.0 / precision
    here = int(np.searchsorted(np.unique(testboxes), testbox)) if testbox in testboxes else None
    if here is None or not total[here]:
        wide = np.full(len(weight), _WIDE * post.boot_var)
        return Hypotheses(
            at, weight, np.full(len(weight), post.low), wide, np.full(len(weight), post.low), wide
        )
    n, level = total[here], sums[here] / total[here]
    behind = high[here] / n
    base = post.boot_var / n
    return Hypotheses(
        at,
        weight,
        np.append(level - behind * effect, level),
        np.append(base + behind**2 * effect_var, base),
        np.append(level + (1.0 - behind) * effect, level),
        np.append(base + (1.0 - behind) ** 2 * effect_var, base),
    )


def divided(hypotheses: Hypotheses, mass: Floats, positions: Sequence[int]) -> Hypotheses:
    """The same hypotheses, each gap cut at those of `positions` inside it: its parts say the same
    of the levels and share its probability by the prior of their commits. Positions outside of what
    was measured cut nothing.
    """
    at = np.array(
        sorted(
            {
                *hypotheses.at.tolist(),
                *(p for p in positions if hypotheses.at[0] < p < hypotheses.at[-1]),
            }
        ),
        np.intp,
    )
    whole, upto = np.searchsorted(hypotheses.at, at[1:]) - 1, np.cumsum(mass)
    share = (upto[at[1:]] - upto[at[:-1]]) / np.maximum(
        (upto[hypotheses.at[1:]] - upto[hypotheses.at[:-1]])[whole], 1e-300
    )
    of = np.append(whole, len(hypotheses.weight) - 1)  # the last one: there is no step
    return Hypotheses(
        at,
        hypotheses.weight[of] * np.append(share, 1.0),
        hypotheses.low[of],
        hypotheses.low_var[of],
        hypotheses.high[of],
        hypotheses.high_var[of],
    )


def answered(
    on: Mapping[int, Hypotheses], asked: Sequence[tuple[int, int]], noise: float
) -> list[Floats]:
    """Weights of the hypotheses after boots whose outcome is not known yet, for `_ANSWERS` equally
    likely ways in which they may answer.

    `on`: testbox -> the hypotheses there, divided alike; `asked`: (position, testbox) of each boot;
    `noise`: variance of a boot and its layout. The ways are systematic: hypotheses by quantiles of
    their weights, values by quantiles of a Kronecker sequence.
    """
    first = next(iter(on.values()))
    weight = np.maximum(first.weight, 0.0) / max(float(np.maximum(first.weight, 0.0).sum()), 1e-300)
    ways = (np.arange(_ANSWERS) + 0.5) / _ANSWERS
    true = np.minimum(np.searchsorted(np.cumsum(weight), ways), len(weight) - 1)
    ln = np.tile(np.log(np.maximum(weight, 1e-300)), (_ANSWERS, 1))
    for i, (position, testbox) in enumerate(asked):
        hypotheses = on[testbox]
        behind = np.append(hypotheses.at[1:] <= position, False)
        mean, var = (
            np.where(behind, hypotheses.high, hypotheses.low),
            np.where(behind, hypotheses.high_var, hypotheses.low_var) + noise,
        )
        quantile = (np.arange(1, _ANSWERS + 1) * math.sqrt(_PRIMES[i % len(_PRIMES)])) % 1.0
        value = mean[true] + np.sqrt(var[true]) * ndtri(quantile)
        ln -= 0.5 * np.log(var) + 0.5 * (value[:, None] - mean) ** 2 / var
    after = np.exp(ln - ln.max(axis=1, keepdims=True))
    return list(after / after.sum(axis=1, keepdims=True))


def _running(
    place: Indices, testboxes: Indices, what: Floats, places: int
) -> tuple[Floats, Floats]:
    """(testbox, measured position) -> sum up to it, and the sum of each testbox."""
    rows = np.searchsorted(np.unique(testboxes), testboxes)
    table = np.zeros((int(rows.max()) + 1, places))
    np.add.at(table, (rows, place), what)
    return np.cumsum(table, axis=1), table.sum(axis=1)


def _sides(
    hypotheses: Hypotheses, mass: Floats, positions: Indices
) -> tuple[Floats, Floats, Floats]:
    """Weight of each hypothesis at each position, and mean and variance of the level it gives:
    first those with the step before the position, then those with the step behind it or none. A gap
    that a position divides stands on both sides by its commits' prior.
    """
    upto = np.cumsum(mass)
    low, high = upto[hypotheses.at[:-1]], upto[hypotheses.at[1:]]
    before = np.clip((upto[positions][:, None] - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
    gaps = hypotheses.weight[:-1] * before
    none = np.full((len(positions), 1), hypotheses.weight[-1])
    return (
        np.concatenate([gaps, hypotheses.weight[:-1] - gaps, none], axis=1),
        np.concatenate([hypotheses.high[:-1], hypotheses.low]),
        np.concatenate([hypotheses.high_var[:-1], hypotheses.low_var]),
    )


def _of_this_build(
    ev: Evidence, boots: list[Observation], mean: Floats, var: Floats, layout: float, boot: float
) -> tuple[Floats, Floats]:
    """What the next boot of a build gives whose layout its earlier boots have shown in part."""
    n = len(boots)
    seen = float(np.mean([np.mean([ev.of(v) for v in b.values]) for b in boots]))
    known = n * layout / (n * layout + boot)
    return mean + known * (seen - mean), var * (1.0 - known) ** 2 + 1.0 / (
        1.0 / layout + n / boot
    ) + boot


def _information(weights: Floats, mean: Floats, var: Floats) -> Floats:
    """Bits between a hypothesis and a value that each foresees as a Gaussian, by quadrature over
    the value; a row of weights each.
    """
    sd = np.sqrt(np.maximum(var, 1e-300))
    first, last = float((mean - _REACH * sd).min()), float((mean + _REACH * sd).max())
    places = int(np.clip((last - first) / (_SPACING * float(sd.min())), *_PLACES))
    values = np.linspace(first, last, places)
    density = np.exp(-0.5 * ((values[None, :] - mean[:, None]) / sd[:, None]) ** 2) / (
        sd[:, None] * math.sqrt(2.0 * math.pi)
    )
    mixed = weights @ density
    together = -(mixed * np.log(np.maximum(mixed, 1e-300))).sum(axis=1) * (values[1] - values[0])
    each = weights @ (0.5 * np.log(2.0 * math.pi * math.e * sd**2))
    return np.asarray(np.maximum(together - each, 0.0) / math.log(2.0))
