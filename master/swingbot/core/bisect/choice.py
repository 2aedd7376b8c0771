"""Which boot tells most about the step for its cost. Formulas: docs/statistics.md, "The next boot"."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from swingbot.core.bisect.evidence import Evidence, Floats
from swingbot.core.bisect.posterior import Posterior
from swingbot.core.bisect.state import Policy

_LOGITS: Final = np.linspace(-9.0, 0.0, 19)
_LN_D2: Final = np.linspace(math.log(1e-3), math.log(150.0), 25)
_DECISIVE: Final = 9.0  # d^2 at which a boot under way is planned with as if its answer were known (3 sd apart)


@dataclass(frozen=True, slots=True)
class Choice:
    position: int
    bits: float


@dataclass(frozen=True, slots=True)
class Plan:
    """New boots to ask for, best first; `best` is the best single boot if nothing were under way (None: nothing tells enough)."""

    chosen: tuple[Choice, ...]
    best: Choice | None


def choose(ev: Evidence, post: Posterior, policy: Policy) -> Plan:
    """Greedy: add boots to those under way while each tells at least `worth` of what the best one would alone, per second.

    Boots under way count as if they had been chosen here, so asking again after recording the answer adds nothing.
    """
    alone = _gains(ev, post, [])
    if alone.max(initial=0.0) < policy.least_gain:
        return Plan((), None)
    rate = alone / ev.cost
    best = int(np.argmax(np.where(alone >= policy.least_gain, rate, 0.0)))
    under_way = [p.position for p in ev.pending if p.phase == "search"]
    chosen: list[Choice] = []
    while len(under_way) + len(chosen) < policy.parallel:
        gains = alone if not under_way and not chosen else _gains(ev, post, under_way + [c.position for c in chosen])
        here = np.where(gains >= policy.least_gain, gains / ev.cost, 0.0)
        pick = int(np.argmax(here))
        if here[pick] <= 0 or here[pick] < policy.worth * rate[best]:
            break
        chosen.append(Choice(pick, float(gains[pick])))
    return Plan(tuple(chosen), Choice(best, float(alone[best])))


def weak_end(ev: Evidence, post: Posterior) -> int | None:
    """Position of the end whose level is known too badly to judge points against it (bisect.md 3.4, the reference rule), or None."""
    new = post.sd_layout**2 + post.boot_var
    limit = min(new, max(post.effect**2 / 12, 0.02 * (post.boot_var + post.sd_layout**2)))
    variances = {0: post.low_var, ev.last: post.high_var}
    end = max(variances, key=lambda p: (variances[p], -p))
    floor = 1.25 * post.sd_layout**2  # layout stays whatever is booted
    return end if variances[end] > max(limit, floor) else None


@dataclass(frozen=True, slots=True)
class _Power:
    """Squared distance, in sd, at which n boots of a point tell the levels apart; `low` and `high` are the levels' variances."""

    d2: float
    layout: float
    boot: float
    low: float
    high: float

    @staticmethod
    def of(post: Posterior) -> _Power:
        return _Power(post.effect**2 + post.effect_var, post.sd_layout**2, post.boot_var, post.low_var, post.high_var)

    def after(self, ev: Evidence, under_way: list[int]) -> _Power:
        """With the boots of the ends that are under way."""
        power = self
        for end in (0, 1):
            for _ in range(under_way.count(ev.last if end else 0)):
                power = power.with_end(end)
        return power

    def at(self, boots: Floats) -> Floats:
        threshold = (self.low + self.high) / 4
        return np.where(boots > 0, self.d2 / (self.layout + self.boot / np.maximum(boots, 1) + threshold), 0.0)

    def with_end(self, end: int) -> _Power:
        """After one more boot of the good (0) or the bad end."""
        variance = self.high if end else self.low
        fixed = min(variance, self.layout)  # boots do not average layout out
        better = fixed + 1.0 / (1.0 / max(variance - fixed, 1e-300) + 1.0 / max(self.boot, 1e-300))
        return replace(self, high=better) if end else replace(self, low=better)


def _gains(ev: Evidence, post: Posterior, under_way: list[int]) -> Floats:
    """Position -> bits that one more boot there tells about which side of it the step is on. A boot of an end tells about the
    points measured so far: it sharpens what they are judged against."""
    seen = np.bincount([b.position for b in ev.boots], minlength=ev.last + 1).astype(np.float64)
    planned = seen + np.bincount(under_way, minlength=ev.last + 1) if under_way else seen
    behind = np.cumsum(post.commit) / max(float(post.commit.sum()), 1e-300)
    power = _Power.of(post)
    known, then = power.at(seen), power.after(ev, under_way)
    bits = np.zeros(ev.last + 1)
    cuts = [-1, *sorted({p for p in under_way if then.at(planned)[p] >= _DECISIVE}), ev.last]
    for left, right in pairwise(cuts):
        before = float(behind[left]) if left >= 0 else 0.0
        share = float(behind[right]) - before
        if share > 1e-12:
            inside = slice(left + 1, right + 1)
            p = np.clip((behind[inside] - before) / share, 0.0, 1.0)
            bits[inside] = share * (information(p, (then.at(planned + 1) - known)[inside]) - information(p, (then.at(planned) - known)[inside]))
    for end, position in ((0, 0), (1, ev.last)):
        bits[position] = (information(behind, then.with_end(end).at(planned) - known) - information(behind, then.at(planned) - known)).max()
    return np.where(np.array(ev.measurable), np.maximum(bits, 0.0), 0.0)


def information(p: Floats, d2: Floats) -> Floats:
    """Bits that a unit Gaussian tells about a coin with P(heads) = p whose heads shift it by sqrt(d2)."""
    q = np.minimum(p, 1.0 - p)
    safe = np.clip(q, 1e-12, 0.5)
    entropy = -(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe))
    logit, ln_d2 = np.log(safe / (1 - safe)), np.log(np.maximum(d2, 1e-12))
    x = np.clip((logit - _LOGITS[0]) / (_LOGITS[1] - _LOGITS[0]), 0.0, len(_LOGITS) - 1.000001)
    y = np.clip((ln_d2 - _LN_D2[0]) / (_LN_D2[1] - _LN_D2[0]), 0.0, len(_LN_D2) - 1.000001)
    i, j, table = x.astype(int), y.astype(int), _told()
    u, v = x - i, y - j
    share = (1 - u) * ((1 - v) * table[i, j] + v * table[i, j + 1]) + u * ((1 - v) * table[i + 1, j] + v * table[i + 1, j + 1])
    share = share * np.minimum(1.0, np.maximum(d2, 0.0) / math.exp(_LN_D2[0]))  # below the table: in proportion
    return np.where(q > 1e-9, entropy * share, 0.0)


@lru_cache(maxsize=1)
def _told() -> Floats:
    """(logit, ln d^2) -> share of the coin's entropy that is told, by quadrature."""
    y = np.linspace(-8.0, 21.0, 2901)
    step = y[1] - y[0]
    table = np.empty((len(_LOGITS), len(_LN_D2)))
    for i, logit in enumerate(_LOGITS):
        p = 1 / (1 + math.exp(-logit))
        entropy = -(p * math.log(p) + (1 - p) * math.log(1 - p))
        for j, ln_d2 in enumerate(_LN_D2):
            d = math.exp(ln_d2 / 2)
            tails, heads = np.exp(-0.5 * y**2), np.exp(-0.5 * (y - d) ** 2)
            mixture = (1 - p) * tails + p * heads
            with np.errstate(divide="ignore", invalid="ignore"):
                told = (1 - p) * tails * np.log(tails / mixture) + p * heads * np.log(heads / mixture)
            table[i, j] = np.nansum(told) * step / math.sqrt(2 * math.pi) / entropy
    return np.clip(table, 0.0, 1.0)
