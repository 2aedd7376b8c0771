"""Estimate noise records from existing boots, and derive priors from them.

A nested analysis of variance: runs in boots, boots in days, days in kernels, kernels in code. On a
testbox where boot k shifts all kernels alike, that shift is subtracted first. Outlying runs and
boots are counted and left out. Formulas: docs/statistics.md, "Noise records".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtri, ndtr, stdtrit

from swingbot.core.model.noise import EMULATED, NOISY, NoisePrior, NoiseRecord, PastBoot, Spread
from swingbot.core.stats.boot_modes import BootModes, boot_modes, merged
from swingbot.core.stats.evidence import UNKNOWN, PairPrior
from swingbot.core.thresholds import (
    DAYS_DF,
    GUESS_DF,
    GUESS_LAYOUT_DF,
    GUESS_PAIR_DF,
    LAYOUT_DF,
    LAYOUT_SDS,
    MAX_CERTAINTY,
    RECORD_FLOOR,
    RECORD_SHAPE_DF,
    RECORD_SHAPE_P,
    RECORD_SHAPE_WILD,
    RECORD_WILD_SDS,
    RECORD_WILD_SHARE,
)

HALF_NORMAL: Final = 0.9539  # median of the absolute difference of two unit Gaussians

Array = npt.NDArray[np.float64]
_Cells = dict[Hashable, list[float]]


def estimate(boots: Sequence[PastBoot], *, paired: bool = False) -> NoiseRecord:
    """Return the record for `boots` of any number of kernels.

    Boots without values are ignored; without boots, the record is empty. `paired`: equal k shift
    all kernels alike (a repeatable testbox).
    """
    usable = [b for b in boots if b.values and all(map(math.isfinite, b.values))]
    if not usable:
        return NoiseRecord()
    scaled = _scaled(usable)
    means, run, wild_runs = _runs(scaled)
    tame, wild_boots = _tame(usable, means)
    usable, means = [usable[i] for i in tame], means[tame]
    sizes = [max(1, len(usable[i].values)) for i in range(len(usable))]
    cells = _grouped(((b.image, b.day) for b in usable), means)
    boot_mean = _within(cells)
    boot = _without(boot_mean, run, float(np.mean([1.0 / m for m in sizes])))
    modes, of_mode = _modes(usable, means)
    levels = _shared_levels(usable, means) if paired else None
    pair = levels.pair if levels else Spread()
    builds = levels.builds if levels else _grouped(((b.code, b.image) for b in usable), means)
    return NoiseRecord(
        run=run,
        boot=boot,
        boot_mean=boot_mean,
        pair=pair,
        day=_between(cells, lambda key: key[0], boot_mean),
        layout=_between(builds, lambda key: key[:-1], pair if levels else boot_mean),
        layout_measured=_between(builds, lambda key: key[:-1], None),
        boots=len(usable),
        runs=sum(sizes),
        images=len({b.image for b in usable}),
        wild_runs=wild_runs,
        wild_boots=wild_boots,
        mode_share=modes.share if modes else 0.0,
        mode_apart=modes.apart if modes else 0.0,
        mode_boot=_without(of_mode, run, float(np.mean([1.0 / m for m in sizes]))),
    )


def _modes(boots: Sequence[PastBoot], means: Array) -> tuple[BootModes | None, Spread]:
    """Return the modes of boots within their kernels, and the spread of boot means within a mode.

    The spread is not known if there is a single mode.
    """
    images = np.array([b.image for b in boots])
    modes = boot_modes([means[images == image].tolist() for image in np.unique(images)])
    if modes is None:
        return None, Spread()
    cells = _grouped(((b.image, b.day) for b in boots), merged(means, images, modes))
    return modes, _within(cells)


def _scaled(boots: Sequence[PastBoot]) -> list[Array]:
    """Map runs to a scale of relative differences.

    Logarithms, or shares of the mean magnitude if any value is zero or less.
    """
    values = [np.asarray(b.values, dtype=float) for b in boots]
    if min(float(v.min()) for v in values) > 0:
        return [np.log(v) for v in values]
    unit = float(np.mean([np.abs(v).mean() for v in values])) or 1.0
    return [v / unit for v in values]


def _runs(scaled: Sequence[Array]) -> tuple[Array, Spread, int]:
    """Return boot means without outlying runs, the spread of runs, and the number of outliers."""
    scale = _typical([v for v in scaled if len(v) > 1])
    clean, wild = [], 0
    marked = [
        np.abs(v - np.median(v)) > RECORD_WILD_SDS * scale
        if len(v) > 2
        else np.zeros(len(v), dtype=bool)
        for v in scaled
    ]
    if sum(int(m.sum()) for m in marked) > RECORD_WILD_SHARE * sum(len(v) for v in scaled):
        marked = [np.zeros(len(v), dtype=bool) for v in scaled]
    for values, out in zip(scaled, marked, strict=True):
        wild += int(out.sum())
        clean.append(values[~out])
    squares = sum(float(((v - v.mean()) ** 2).sum()) for v in clean)
    df = sum(len(v) - 1 for v in clean)
    return np.array([v.mean() for v in clean]), _spread(squares, df), wild


def _typical(groups: Sequence[Array]) -> float:
    """Return an outlier-resistant spread within groups: from the median difference of two
    values."""
    differences = [
        np.abs(v[:, None] - v[None, :])[np.triu_indices(len(v), 1)] for v in groups if len(v) > 1
    ]
    if not differences:
        return math.inf
    return max(float(np.median(np.concatenate(differences))) / HALF_NORMAL, 10 * RECORD_FLOOR)


def _tame(boots: Sequence[PastBoot], means: Array) -> tuple[list[int], int]:
    """Return indices of boots that are not outliers among their kernel's, and how many are."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, boot in enumerate(boots):
        groups[boot.image].append(i)
    scale = _typical([means[g] for g in groups.values()])
    wild = {
        i
        for g in groups.values()
        if len(g) > 2
        for i in g
        if abs(means[i] - float(np.median(means[g]))) > RECORD_WILD_SDS * scale
    }
    if len(wild) > RECORD_WILD_SHARE * len(boots):
        wild = set()
    return [i for i in range(len(boots)) if i not in wild], len(wild)


def _grouped(keys: Iterable[Hashable], values: Array) -> _Cells:
    cells: _Cells = defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        cells[key].append(float(value))
    return cells


def _within(cells: _Cells) -> Spread:
    squares = sum(float(((np.array(v) - np.mean(v)) ** 2).sum()) for v in cells.values())
    return _spread(squares, sum(len(v) - 1 for v in cells.values()))


def _spread(squares: float, df: float) -> Spread:
    return (
        Spread(sd=max(math.sqrt(squares / df), RECORD_FLOOR), df=float(df)) if df > 0 else Spread()
    )


def _without(total: Spread, part: Spread, share: float) -> Spread:
    """Subtract `share` of the variance of `part` from `total`, with Satterthwaite's degrees of
    freedom.

    A negative result is replaced by a quarter of its standard error.
    """
    if not total.known:
        return Spread()
    if not part.known:
        return total
    one, other = total.sd**2, share * part.sd**2
    error = math.sqrt(2 * one**2 / total.df + 2 * other**2 / part.df)
    rest = max(one - other, 0.25 * error)
    df = min(total.df, max(1.0, rest**2 / (one**2 / total.df + other**2 / part.df)))
    return Spread(sd=max(math.sqrt(rest), RECORD_FLOOR), df=df)


def _between(cells: _Cells, parent: Callable[[Any], Hashable], boot_mean: Spread | None) -> Spread:
    """Return the spread of cells around their parent's mean beyond that of the boots in them, which
    None leaves in.

    Henderson's method I for unequal sizes.
    """
    families: dict[Hashable, list[list[float]]] = defaultdict(list)
    for key, values in cells.items():
        families[parent(key)].append(values)
    squares, df, size = 0.0, 0, 0.0
    for family in families.values():
        if len(family) < 2:
            continue
        n = np.array([len(v) for v in family], dtype=float)
        means = np.array([np.mean(v) for v in family])
        middle = float((n * means).sum() / n.sum())
        squares += float((n * (means - middle) ** 2).sum())
        df += len(family) - 1
        size += float(n.sum() - (n**2).sum() / n.sum())
    if df == 0 or (boot_mean is not None and not boot_mean.known):
        return Spread()
    spread = _spread(squares, df)
    if boot_mean is not None:
        spread = _without(spread, boot_mean, 1.0)
    return Spread(sd=max(spread.sd / math.sqrt(size / df), RECORD_FLOOR), df=spread.df)


@dataclass(frozen=True, slots=True)
class _SharedLevels:
    """Shared boots without the shift of each k."""

    pair: Spread  # of boots about the level of their kernel
    builds: _Cells  # boots by code, set of kernels that share k's, and image


def _shared_levels(boots: Sequence[PastBoot], means: Array) -> _SharedLevels | None:
    """Fit kernels and k's to a two-way table with missing cells, by least squares.

    None if the boots do not determine it.
    """
    rows = [i for i, b in enumerate(boots) if b.shared]
    images = {image: n for n, image in enumerate(sorted({boots[i].image for i in rows}))}
    ks = {k: n for n, k in enumerate(sorted({boots[i].k for i in rows}))}
    if not rows or len(rows) <= len(images) + len(ks) - 1:
        return None
    of = np.array([images[boots[i].image] for i in rows])
    at = np.array([ks[boots[i].k] for i in rows])
    value = means[rows]
    seen = np.zeros((len(images), len(ks)))
    np.add.at(seen, (of, at), 1.0)
    per_image = seen.sum(axis=1)
    # Without the kernel levels, this is a small system in the shifts alone. It is singular by one
    # shift for each set of kernels that shares no k.
    matrix = np.diag(seen.sum(axis=0)) - seen.T @ (seen / per_image[:, None])
    level = np.bincount(of, value, minlength=len(images)) / per_image
    shift, _, rank, _ = np.linalg.lstsq(
        matrix, np.bincount(at, value - level[of], minlength=len(ks)), rcond=1e-9
    )
    own = value - shift[at]
    # Kernels that share no k, not even by way of others, cannot be compared.
    _, sets = connected_components(seen.T @ seen)
    keys = ((boots[i].code, sets[k], boots[i].image) for i, k in zip(rows, at, strict=True))
    builds = _grouped(keys, own)
    level = np.bincount(of, own, minlength=len(images)) / per_image
    residual = own - level[of]
    typical = max(float(np.median(np.abs(residual))) / 0.6745, 10 * RECORD_FLOOR)
    tame = np.abs(residual) <= RECORD_WILD_SDS * typical
    if (~tame).sum() > RECORD_WILD_SHARE * len(residual):
        tame[:] = True
    df = float(tame.sum()) - len(images) - int(rank)
    return _SharedLevels(_spread(float((residual[tame] ** 2).sum()), df), builds)


def noise_prior(record: NoiseRecord | None, paired: bool) -> NoisePrior:
    """Return the prior of a bisection on the noise; a built-in guess without a record."""
    guess = EMULATED if paired else NOISY
    if record is None:
        return guess
    modes = record.mode_share > 0 and not paired
    unpaired = record.mode_boot if modes else record.boot
    run, boot = record.run, record.pair if paired else unpaired
    # With one run per boot the two cannot be separated, so each gets half.
    boot_mean = record.mode_boot if modes else record.boot_mean
    if not run.known and boot_mean.known:
        run = boot = replace(boot_mean, sd=boot_mean.sd / math.sqrt(2.0))
    recorded = boot if paired else run
    layout = _leaning(record.layout, guess.sd_layout, weight=GUESS_LAYOUT_DF)
    return NoisePrior(
        sd_run=_leaning(run, guess.sd_run),
        sd_boot=_leaning(boot, guess.sd_boot),
        # Harmless commits shift an instruction count by their code too: no layout measures that.
        sd_layout=max(layout, guess.sd_layout) if paired else layout,
        sd_day=record.day.sd if record.day.df >= DAYS_DF and not paired else guess.sd_day,
        certainty=min(MAX_CERTAINTY, recorded.df / 2 + 0.5) if recorded.known else guess.certainty,
        mode_share=record.mode_share if modes else 0.0,
        mode_apart=record.mode_apart if modes else 0.0,
    )


def _leaning(spread: Spread, guess: float, weight: float = GUESS_DF) -> float:
    """Return the recorded sd combined with the guess, which counts as `weight` observations."""
    return math.sqrt((spread.df * spread.sd**2 + weight * guess**2) / (spread.df + weight))


def pair_prior(record: NoiseRecord | None, paired: bool) -> PairPrior:
    """Return the prior of stage 2 on the difference of two adjacent boots.

    No prior on a noisy testbox without a record.
    """
    spread = (record.pair if paired else record.boot_mean) if record is not None else Spread()
    guess = EMULATED.sd_boot if paired else 0.0
    if not spread.known:
        return PairPrior(sd=math.sqrt(2.0) * guess, df=GUESS_PAIR_DF) if paired else UNKNOWN
    return PairPrior(
        sd=math.sqrt(2.0) * (_leaning(spread, guess) if paired else spread.sd),
        df=spread.df + (GUESS_DF if paired else 0.0),
    )


def sd_at_most(record: NoiseRecord | None) -> float | None:
    """Return the upper confidence limit of the relative spread between boot means, modes included.

    None if the record does not limit the share of a second mode: too few boots, or so many wild
    ones that they may be one.
    """
    if record is None or record.boot_mean.df < RECORD_SHAPE_DF:
        return None
    if record.wild_boots > RECORD_SHAPE_WILD * (record.boots + record.wild_boots):
        return None
    spread = record.boot_mean
    return spread.sd * math.sqrt(spread.df / float(chdtri(spread.df, 1.0 - RECORD_SHAPE_P)))


def day_sd(record: NoiseRecord | None) -> float:
    """Return the spread between days if it is known well enough, and 0 otherwise."""
    known = record is not None and record.day.df >= DAYS_DF
    return record.day.sd if record is not None and known else 0.0


def layout_of(record: NoiseRecord | None, assumed: float, repeatable: bool) -> Spread:
    """Return the spread between builds of equal code. df inf: it was not measured well enough, and
    is `assumed`, or larger if builds have shown that.

    Boots of a noisy testbox leave too much of their own noise to show that.
    """
    record = record or NoiseRecord()
    if record.layout.df >= LAYOUT_DF:
        return record.layout
    limit = record.layout_measured
    if limit.df >= LAYOUT_DF and (repeatable or limit.sd < assumed):
        return limit
    return Spread(sd=max(assumed, limit.sd) if repeatable else assumed, df=math.inf)


def layout_sd(record: NoiseRecord | None, guess: float, repeatable: bool) -> float:
    """Return the spread between builds of equal code, from the record combined with `guess`.

    If it was measured, it is no larger than what makes `LAYOUT_SDS` of it hold by Student's t.
    """
    if record is None:
        return guess
    leaning = _leaning(record.layout, guess, weight=GUESS_LAYOUT_DF)
    measured = layout_of(record, guess, repeatable)
    if math.isinf(measured.df):
        return leaning
    wide = float(stdtrit(measured.df, float(ndtr(LAYOUT_SDS)))) / LAYOUT_SDS
    return min(leaning, wide * measured.sd)
