"""The expected information of a boot about the culprit, from what each hypothesis predicts.

Formulas: docs/statistics.md, "The next boot".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.step_posterior import Hypotheses, Posterior
from swingbot.core.model.bisection import Observation

_NEGLIGIBLE: Final = 1e-5  # hypotheses with less probability are left out
_SPACING: Final = 0.3  # of the quadrature, in sd of the narrowest peak
_REACH: Final = 5.0  # sd
# fewest and most nodes; one boot separates levels that would need more
_NODES: Final = (64, 1500)
# share of a boot's variance below which the layout of a build is not estimated from its boots
_LITTLE_LAYOUT: Final = 0.05
_ANSWERS: Final = 12  # sets of answers of the boots under way that are enumerated
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19)
_WIDE: Final = 1e6  # variance of an unknown level, in variances of a boot


def foreseen(
    ev: Evidence, post: Posterior, hypotheses: Hypotheses, positions: Indices, *, new_layout: bool
) -> Floats:
    """Bits that one boot at each of `positions` tells about the place of the step, or its absence.

    This is the entropy of the value under all hypotheses together, minus the mean entropy of the
    value under each of them. `new_layout`: the boot is of another build of the same code.
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
    """The hypotheses about the levels of `testbox`, one of a group whose testboxes each have a
    level of their own.

    Given the place of the step, its size follows from all testboxes (a testbox with n boots before
    the step and m after it weighs n m / (n + m)), and the level of `testbox` from its own boots.
    """
    at = np.array(sorted(set(ev.boot_positions)), np.intp)
    upto = np.cumsum(post.commit)[at]
    weight = np.append(np.diff(upto), post.none)
    rows = np.searchsorted(at, ev.boot_positions)
    value = ev.means
    testboxes = np.array([b.testbox for b in ev.boots])
    before, total = _running(rows, testboxes, np.ones(len(value)), len(at))
    sum_before, sums = _running(rows, testboxes, value, len(at))
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
    """The same hypotheses with each gap split at those of `positions` inside it.

    The parts of a gap predict the same levels and share its probability by the prior of their
    commits. Positions outside the measured range split nothing.
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
    gap = np.append(whole, len(hypotheses.weight) - 1)  # the last one: there is no step
    return Hypotheses(
        at,
        hypotheses.weight[gap] * np.append(share, 1.0),
        hypotheses.low[gap],
        hypotheses.low_var[gap],
        hypotheses.high[gap],
        hypotheses.high_var[gap],
    )


def answered(
    on: Mapping[int, Hypotheses], asked: Sequence[tuple[int, int]], noise: float
) -> list[Floats]:
    """Weights of the hypotheses after boots that are still under way, for `_ANSWERS` equally likely
    sets of their answers.

    `on`: testbox -> the hypotheses there, all divided at the same positions; `asked`: (position,
    testbox) of each boot; `noise`: variance of a boot and its layout. The sets are systematic:
    hypotheses at quantiles of their weights, values at quantiles of a Kronecker sequence.
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
    at: Indices, testboxes: Indices, value: Floats, positions: int
) -> tuple[Floats, Floats]:
    """(testbox, measured position) -> running sum, and the total of each testbox."""
    rows = np.searchsorted(np.unique(testboxes), testboxes)
    table = np.zeros((int(rows.max()) + 1, positions))
    np.add.at(table, (rows, at), value)
    return np.cumsum(table, axis=1), table.sum(axis=1)


def _sides(
    hypotheses: Hypotheses, mass: Floats, positions: Indices
) -> tuple[Floats, Floats, Floats]:
    """Weight of each hypothesis at each position, with mean and variance of the level it predicts.

    First come the hypotheses with the step before the position, then those with the step after it
    or without one. A gap that contains the position counts on both sides, by the prior of its
    commits.
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
    """Mean and variance of the next boot of a build whose earlier boots show part of its layout."""
    n = len(boots)
    seen = float(np.mean([np.mean([ev.effect(v) for v in b.values]) for b in boots]))
    seen_share = n * layout / (n * layout + boot)
    return mean + seen_share * (seen - mean), var * (1.0 - seen_share) ** 2 + 1.0 / (
        1.0 / layout + n / boot
    ) + boot


def _information(weights: Floats, mean: Floats, var: Floats) -> Floats:
    """Mutual information, in bits, of the hypothesis and a value that each hypothesis predicts as a
    Gaussian, by quadrature over the value; one result for each row of weights.
    """
    sd = np.sqrt(np.maximum(var, 1e-300))
    first, last = float((mean - _REACH * sd).min()), float((mean + _REACH * sd).max())
    nodes = int(np.clip((last - first) / (_SPACING * float(sd.min())), *_NODES))
    values = np.linspace(first, last, nodes)
    density = np.exp(-0.5 * ((values[None, :] - mean[:, None]) / sd[:, None]) ** 2) / (
        sd[:, None] * math.sqrt(2.0 * math.pi)
    )
    mixed = weights @ density
    together = -(mixed * np.log(np.maximum(mixed, 1e-300))).sum(axis=1) * (values[1] - values[0])
    each = weights @ (0.5 * np.log(2.0 * math.pi * math.e * sd**2))
    return np.asarray(np.maximum(together - each, 0.0) / math.log(2.0))
