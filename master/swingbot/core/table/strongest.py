"""Which counters of a table are judged: a guest decides how many there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swingbot.core.limits import JUDGED_COUNTERS
from swingbot.core.table.rows import MeasuredArm, MetricKey, Pair, TestboxRule

# Noise of a mean, as a share of its level: least, and if a side has one boot. Counters that repeat
# exactly would otherwise be evidence without end for changes that nobody can see.
_LEAST_NOISE: Final = 1e-3
_UNKNOWN_NOISE: Final = 0.05
Values = NDArray[np.float64]


def strongest(
    arms: Sequence[MeasuredArm], pairs: Iterable[Pair], keys: Sequence[MetricKey], rule: TestboxRule
) -> list[MetricKey]:
    """Return the benchmark metrics of `keys`, and at most JUDGED_COUNTERS others, in their order.

    These have the strongest evidence, in any of the pairs, that they changed by more than their
    minimum effect: the excess over its standard error.
    """
    counters = [key for key in keys if rule.metric(key[1]).klass != "benchmark"]
    if len(counters) <= JUDGED_COUNTERS:
        return list(keys)
    floors = np.array(
        [
            rule.of_metric(rule.jobs[job], rule.metric(name)).min_effect_pct / 100.0
            for job, name in counters
        ]
    )
    best = np.full(len(counters), -np.inf)
    means: dict[int, dict[int, Values]] = {}
    for base, head in pairs:
        for arm in {base, head} - means.keys():
            means[arm] = _boot_means(arms[arm], counters)
        best = np.fmax(best, _evidence(means[base], means[head], floors))
    kept = {counters[at] for at in np.argsort(-best, kind="stable")[:JUDGED_COUNTERS]}
    return [key for key in keys if key in kept or rule.metric(key[1]).klass == "benchmark"]


def _boot_means(arm: MeasuredArm, keys: Sequence[MetricKey]) -> dict[int, Values]:
    """Return the mean of each metric by the number of a boot; NaN: it has no value."""
    place = {key: at for at, key in enumerate(keys)}
    means = {}
    for boot in arm.boots:
        of_boot = np.full(len(keys), np.nan)
        for key, values in boot.values.items():
            if values and (at := place.get(key)) is not None:
                of_boot[at] = fmean(values)
        means[boot.k] = of_boot
    return means


def _evidence(base: Mapping[int, Values], head: Mapping[int, Values], floors: Values) -> Values:
    """Return the excess of each change over its minimum effect, in standard errors: of all boots,
    or of the pairs of boots with equal k if that is stronger. NaN: a side has no value.
    """
    if not base or not head:
        return np.full(len(floors), np.nan)
    sides = np.stack(list(base.values())), np.stack(list(head.values()))
    both = [k for k in base if k in head]
    with np.errstate(all="ignore"):
        (b, b_error), (h, h_error) = map(_mean, sides)
        level = np.abs(b) + np.abs(h)
        excess = np.abs(h - b) - floors * np.abs(b)
        strength = excess / _noise(np.hypot(b_error, h_error), level)
        if len(both) > 1:
            differences = np.stack([head[k] - base[k] for k in both])
            strength = np.fmax(strength, excess / _noise(_mean(differences)[1], level))
    return strength


def _mean(boots: Values) -> tuple[Values, Values]:
    """Return means over boots and their standard errors; NaN for fewer than two values."""
    count = np.sum(~np.isnan(boots), axis=0)
    mean = np.nansum(boots, axis=0) / count
    error = np.sqrt(np.nansum((boots - mean) ** 2, axis=0) / (count - 1) / count)
    return mean, np.where(count > 1, error, np.nan)


def _noise(error: Values, level: Values) -> Values:
    return np.where(np.isnan(error), _UNKNOWN_NOISE * level, np.hypot(error, _LEAST_NOISE * level))
