"""Pool the spread between boots over the arms of a table that agree in it.

The seven rows of eight arms with five boots have 8 degrees of freedom each, and 32 when pooled.
This makes a simultaneous bound for all rows affordable. Arms with a different spread are left out
by F tests and then Bartlett's (Proceedings of the Royal Society A 160, 1937); their rows use their
own boots. Formulas: docs/statistics.md, "Tables of N kernels".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scipy.special import chdtrc, fdtr, fdtrc

from swingbot.core.stats.moments import mean, stddev
from swingbot.core.stats.robust import median, middle
from swingbot.core.stats.rows import Basis, BootRuns, Rule
from swingbot.core.stats.samples import draw
from swingbot.core.stats.spread import counted
from swingbot.core.thresholds import FEWEST_WITH_WILD, SPREADS_AGREE_P, SPREADS_ODD_SHARE
from swingbot_jobs import limits

_LEAST: Final = 1e-100  # floor, as a variance of 0 has no logarithm
_MOST: Final = 1e100  # cap, as a sum of larger variances may overflow


@dataclass(frozen=True, slots=True)
class VarianceEstimate:
    """Variance of one boot of an arm, or of one pair of a row, with its degrees of freedom."""

    variance: float
    df: float


@dataclass(frozen=True, slots=True)
class Pool:
    """Pooled variance with its degrees of freedom, and the keys of the parts in it."""

    variance: float
    df: float
    members: frozenset[int]


def pool(parts: Mapping[int, VarianceEstimate]) -> Pool | None:
    """Pool the parts that agree in their variance; None if too many disagree."""
    agreeing = {key: part for key, part in parts.items() if part.df > 0}
    most_odd = int(SPREADS_ODD_SHARE * len(agreeing))
    for _ in range(most_odd + 1):
        odd = _odd(agreeing)
        if odd is None:
            break
        del agreeing[odd]
    if (
        len(agreeing) < max(2, len(parts) - most_odd)
        or _bartlett_p(list(agreeing.values())) < SPREADS_AGREE_P
    ):
        return None
    df = math.fsum(part.df for part in agreeing.values())
    variance = math.fsum(part.df * part.variance for part in agreeing.values()) / df
    return Pool(variance, df, frozenset(agreeing))


def _odd(parts: Mapping[int, VarianceEstimate]) -> int | None:
    """Return the part whose variance differs most from the others, if it does so significantly."""
    squares = math.fsum(part.df * part.variance for part in parts.values())
    total = math.fsum(part.df for part in parts.values())
    looks = {
        key: _f_p(
            part,
            VarianceEstimate(
                (squares - part.df * part.variance) / (total - part.df), total - part.df
            ),
        )
        for key, part in parts.items()
        if total > part.df
    }
    if not looks:
        return None
    key = min(looks, key=lambda k: (looks[k], k))
    return key if looks[key] * len(looks) < SPREADS_AGREE_P else None


def _f_p(one: VarianceEstimate, others: VarianceEstimate) -> float:
    """Return the two-sided P of so different variances if they are equal."""
    ratio = max(one.variance, _LEAST) / max(others.variance, _LEAST)
    tails = fdtr(one.df, others.df, ratio), fdtrc(one.df, others.df, ratio)
    return min(1.0, 2.0 * float(min(tails)))


def _bartlett_p(parts: Sequence[VarianceEstimate]) -> float:
    """Return the P of so different variances if all are equal.

    Bartlett's chi-squared with his correction.
    """
    df = math.fsum(part.df for part in parts)
    common = max(math.fsum(part.df * part.variance for part in parts) / df, _LEAST)
    off = math.fsum(p.df * math.log(common / max(p.variance, _LEAST)) for p in parts)
    inverse = math.fsum(1.0 / p.df for p in parts) - 1.0 / df
    return float(chdtrc(len(parts) - 1, off / (1.0 + inverse / (3.0 * (len(parts) - 1)))))


def parts_of_arms(
    arms: Mapping[int, Sequence[BootRuns]], basis: Basis
) -> dict[int, VarianceEstimate]:
    """Estimate each arm that can be mapped to the scale; arms with a single boot are left out."""
    estimates = {}
    for index, boots in arms.items():
        values = _mapped([[b] for b in boots if b.values], basis)
        if values is not None and (part := _part(values, basis)) is not None:
            estimates[index] = part
    return estimates


def parts_of_rows(
    rows: Mapping[int, tuple[Sequence[BootRuns], Sequence[BootRuns]]], rule: Rule, basis: Basis
) -> dict[int, VarianceEstimate]:
    """Estimate the pair differences of each row (base, head) that is compared by pairs."""
    estimates = {}
    for index, (base, head) in rows.items():
        drawn = draw(base, head, rule)
        b, h = _mapped(drawn.base, basis), _mapped(drawn.head, basis)
        if not drawn.pairs or b is None or h is None:
            continue
        differences = [y - x for x, y in zip(b, h, strict=True)]
        if (part := _part(differences, basis)) is not None:
            estimates[index] = part
    return estimates


def _part(values: Sequence[float], basis: Basis) -> VarianceEstimate | None:
    n = counted(len(values), basis.trimmed)
    if n < 2 or (basis.trimmed and len(values) < FEWEST_WITH_WILD):
        return None
    sd = math.sqrt(middle(values).variance) if basis.trimmed else stddev(values)
    return VarianceEstimate(sd * sd, n - 1.0) if sd * sd < _MOST else None


def _mapped(units: Sequence[Sequence[BootRuns]], basis: Basis) -> list[float] | None:
    """Return one value per unit; None if a unit cannot be mapped to the scale."""
    if not all(abs(v) < limits.SAMPLE_VALUE for unit in units for b in unit for v in b.values):
        return None
    one = median if basis.medians else mean
    values = [mean([one(b.values) for b in unit]) for unit in units]
    if basis.form == "difference" or not values:
        return values
    if min(values) < 0 or (basis.form == "ratio" and min(values) == 0):
        return None
    return [math.log(v) if basis.form == "ratio" else math.sqrt(v) for v in values]
