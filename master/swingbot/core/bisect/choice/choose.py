"""The boot that is expected to tell most about the step for its cost.

Formulas: docs/statistics.md, "The next boot".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from swingbot.core.bisect.choice.expected_bits import answered, divided, foreseen, on_testbox
from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.step_posterior import Hypotheses, Posterior
from swingbot.core.bisect.thresholds import (
    END_SHARE,
    IMAGE_BOOTS,
    IMAGE_VARIANCE,
    LIKELY_COMMIT,
    SETTLED_SIDE,
    Policy,
)
from swingbot.core.model.bisection import WantedBoot

_LOGITS: Final = np.linspace(-9.0, 0.0, 19)
# positions examined closely: those that the rule ranks highest, and as many quantiles of P(commit)
_PARTS: Final = 16
_SAME: Final = 1e-9  # shares of probability that differ by less are equal
_LN_D2: Final = np.linspace(math.log(1e-3), math.log(150.0), 25)


@dataclass(frozen=True, slots=True)
class Choice:
    position: int
    bits: float
    layout: int = 0  # which build of it
    testbox: int = 0  # which testbox of the group


@dataclass(frozen=True, slots=True)
class Plan:
    """The boots to request now, best first.

    `best` is the best single boot by the rule as if no boot were under way; None if no boot would
    tell enough.
    """

    chosen: tuple[Choice, ...]
    best: Choice | None


@dataclass(frozen=True, slots=True)
class _Kernels:
    """Boots made of each build on each testbox: (position, layout, testbox) -> boots."""

    boots: Counter[tuple[int, int, int]]
    group: bool

    def and_(self, under_way: Sequence[tuple[int, int, int]]) -> _Kernels:
        return _Kernels(self.boots + Counter(under_way), self.group)

    def built(self) -> Counter[tuple[int, int]]:
        """(position, layout) -> boots."""
        total: Counter[tuple[int, int]] = Counter()
        for (position, layout, _), boots in self.boots.items():
            total[position, layout] += boots
        return total

    def worth(self) -> Mapping[tuple[int, int], float]:
        """(position, layout) -> equivalent number of boots on a testbox whose level is known.

        In a group, the level of a testbox is known only from its other boots: n boots of a build
        against m boots of others are worth nm / (n + m).
        """
        if not self.group:
            return self.built()
        by_testbox, worth = self._by_testbox(), Counter[tuple[int, int]]()
        for (position, layout, testbox), boots in self.boots.items():
            worth[position, layout] += _against(boots, by_testbox[testbox] - boots)  # type: ignore[assignment]
        return worth

    def more(self, layouts: Mapping[int, int], testbox: int) -> Mapping[int, float]:
        """Position -> what one more boot of that layout would add to the worth of the build."""
        if not self.group:
            return dict.fromkeys(layouts, 1.0)
        total = self._by_testbox()[testbox]
        here = {
            position: self.boots[position, layout, testbox] for position, layout in layouts.items()
        }
        return {
            position: _against(n + 1, total - n) - _against(n, total - n)
            for position, n in here.items()
        }

    def first(self, testbox: int) -> float:
        """The worth of the first boot of a new build."""
        return _against(1, self._by_testbox()[testbox]) if self.group else 1.0

    def _by_testbox(self) -> Counter[int]:
        total: Counter[int] = Counter()
        for (_, _, testbox), boots in self.boots.items():
            total[testbox] += boots
        return total


def _against(boots: int, others: int) -> float:
    return boots * others / (boots + others) if boots and others else 0.0


def choose(
    ev: Evidence,
    post: Posterior,
    policy: Policy,
    testboxes: int = 1,
    elsewhere: Sequence[WantedBoot] = (),
) -> Plan:
    """Choose greedily: add boots while each one tells, per second, at least the share
    `policy.worth` of what the best boot alone would tell.

    Boots under way count as chosen already, so a second call after their requests were recorded
    adds none. `elsewhere` are boots under way for other parts of the range: they tell nothing about
    this part, but they keep testboxes busy.
    """
    kernels = _Kernels(Counter((ev.where(b), b.layout, b.testbox) for b in ev.boots), testboxes > 1)
    busy = Counter(p.testbox for p in (*ev.pending, *elsewhere))
    done = Counter(b.testbox for b in ev.boots)

    gains_of, first = _BootGains(ev, post, policy, kernels), least_busy(busy, done, testboxes)
    cost, by_rule = _costs(ev), gains_of.by_rule([], first)
    if by_rule.max(initial=0.0) < policy.least_gain:
        return Plan((), None)
    best = _pick(by_rule, _rate(by_rule, cost, policy), kernels, first)
    alone = gains_of.bits([], first)
    most = float(_rate(alone, cost, policy).max())
    under_way = [(ev.where(p), p.layout, p.testbox) for p in ev.pending if p.phase == "search"]
    others = sum(p.phase == "search" for p in elsewhere)
    chosen: list[Choice] = []
    while len(under_way) + others + len(chosen) < policy.parallel:
        planned, testbox = (
            under_way + [(c.position, c.layout, c.testbox) for c in chosen],
            least_busy(busy, done, testboxes),
        )
        gains = gains_of.bits(planned, testbox) if planned else alone
        rate = _rate(gains, cost, policy)
        if (
            rate.max() <= 0
            or rate.max() < policy.worth * most
            or (planned and gains.max() < policy.least_gain)
        ):
            break
        chosen.append(_pick(gains, rate, kernels.and_(planned), testbox))
        busy[testbox] += 1
    return Plan(tuple(chosen), best)


@dataclass(frozen=True, slots=True)
class _BootGains:
    """The expected information of boots: by the rule, and from what each hypothesis predicts."""

    ev: Evidence
    post: Posterior
    policy: Policy
    kernels: _Kernels
    closer: dict[int, Floats] = field(default_factory=dict)  # testbox -> bits

    def by_rule(self, under_way: Sequence[tuple[int, int, int]], testbox: int) -> Floats:
        """(repeat, new layout) x position -> bits of one more boot on that testbox, with the levels
        taken as known.
        """
        return _gains(self.ev, self.post, self.kernels, under_way, self.policy.decisive, testbox)

    def bits(self, under_way: Sequence[tuple[int, int, int]], testbox: int) -> Floats:
        """The same, computed from what each hypothesis predicts where hypotheses are known.

        Boots under way reduce the gain by the share by which they reduce it under the rule. In a
        group, where each other testbox has a boot under way, their possible answers are enumerated.
        """
        if self.post.hypotheses is None and not self.kernels.group:
            return self.by_rule(under_way, testbox)
        alone = self.by_rule([], testbox)
        if self.kernels.group and under_way:
            return self._when_answered(alone, under_way, testbox)
        if testbox not in self.closer:
            self.closer[testbox] = self._foreseen(alone, [self._predictions(testbox)])
        closer = self.closer[testbox] if self.closer[testbox].any() else alone
        return (
            closer * np.clip(self.by_rule(under_way, testbox) / np.maximum(alone, 1e-300), 0.0, 1.0)
            if under_way
            else closer
        )

    def _predictions(self, testbox: int) -> Hypotheses:
        hypotheses = (
            on_testbox(self.ev, self.post, testbox, self.policy.prior_effect)
            if self.kernels.group
            else self.post.hypotheses
        )
        assert hypotheses is not None
        return hypotheses

    def _when_answered(
        self, rule: Floats, under_way: Sequence[tuple[int, int, int]], testbox: int
    ) -> Floats:
        asked = [(position, b) for position, _, b in under_way]
        on = {
            b: divided(self._predictions(b), self.ev.mass, [position for position, _ in asked])
            for b in {testbox, *(b for _, b in asked)}
        }
        believed = answered(on, asked, self.post.sd_layout**2 + self.post.boot_var)
        return self._foreseen(rule, [replace(on[testbox], weight=weight) for weight in believed])

    def _foreseen(self, rule: Floats, hypotheses: Sequence[Hypotheses]) -> Floats:
        """Bits at the positions worth examining closely, as a mean over `hypotheses`."""
        positions = self._positions_to_examine(rule)
        measured = np.array(
            [p for p in positions if self.ev.layout_cost is not None and self.ev.at(int(p))],
            np.intp,
        )
        bits = np.zeros((2, self.ev.last + 1))
        for each in hypotheses:
            bits[0, positions] += foreseen(
                self.ev, self.post, each, positions, new_layout=False
            ) / len(hypotheses)
            if len(measured):
                bits[1, measured] += foreseen(
                    self.ev, self.post, each, measured, new_layout=True
                ) / len(hypotheses)
        return bits

    def _positions_to_examine(self, rule: Floats) -> Indices:
        """The ends, the positions that the rule ranks highest, those where the step may be, and
        those measured already that are not settled.
        """
        ev, upto = self.ev, np.cumsum(self.post.commit)
        rate = np.where(np.array(ev.measurable), rule / _costs(ev), 0.0)[0]
        likely = np.flatnonzero(self.post.commit > LIKELY_COMMIT * upto[-1])
        share = upto / max(float(upto[-1]), 1e-300)
        seen = [p for p in set(ev.boot_positions) if SETTLED_SIDE < share[p] < 1.0 - SETTLED_SIDE]
        # equal commits reach a quantile exactly: the last digits do not decide where it is
        parts = np.arange(1, _PARTS) / _PARTS
        quantiles = np.searchsorted(upto, upto[-1] * parts * (1.0 - _SAME))
        wanted = {
            0,
            ev.last,
            *seen,
            *np.argsort(-rate, kind="stable")[:_PARTS].tolist(),
            *quantiles.tolist(),
            *likely.tolist(),
            *(likely - 1).tolist(),
        }
        return np.array(
            sorted(p for p in wanted if 0 <= p <= ev.last and ev.measurable[p]), np.intp
        )


def least_busy(busy: Mapping[int, int], done: Mapping[int, int], testboxes: int) -> int:
    """The testbox with the fewest boots under way; among equals, the one with the fewest boots."""
    return min(
        range(testboxes), key=lambda testbox: (busy.get(testbox, 0), done.get(testbox, 0), testbox)
    )


def _rate(bits: Floats, cost: Floats, policy: Policy) -> Floats:
    """Bits per second. A boot that tells next to nothing is excluded, however cheap, if another
    tells more.
    """
    return np.where(bits >= min(policy.least_gain, float(bits.max())), bits / cost, 0.0)


def _costs(ev: Evidence) -> Floats:
    return np.stack(
        [ev.cost, np.full(len(ev.cost), ev.layout_cost if ev.layout_cost is not None else math.inf)]
    )


def _pick(gains: Floats, rate: Floats, kernels: _Kernels, testbox: int) -> Choice:
    """The best of (repeat, new layout) x position. A repeat goes to the build with the fewest
    boots.
    """
    new, position = (int(i) for i in np.unravel_index(int(np.argmax(rate)), rate.shape))
    built = sorted((n, layout) for (p, layout), n in kernels.built().items() if p == position)
    layout = (max(i for _, i in built) + 1 if new else built[0][1]) if built else 0
    return Choice(position, float(gains[new, position]), layout, testbox)


def weak_end(ev: Evidence, post: Posterior, *, careful: bool) -> int | None:
    """The position of the end whose level is too uncertain to judge other kernels against
    (docs/statistics.md, "The next boot"), or None.

    The variances are means over the possible places of the step. If the step is next to an end,
    only the few boots of that end show its level, and no other boot reveals that they were
    outliers; so each end gets a share of all boots. `careful` holds while it is not clear that
    there is a change, and where boots are chosen by the rule alone. More boots of an end do not
    reduce the uncertainty that its image causes, because all its boots share that image.
    """
    new = post.sd_layout**2 + post.boot_var
    limit = min(new, max(post.effect**2 / 12, 0.02 * new)) if careful else new
    variances = {0: post.low_var, ev.last: post.high_var}
    seldom = min(variances, key=lambda p: (len(ev.at(p)), p))
    if len(ev.at(seldom)) < END_SHARE * ev.used:
        return seldom
    variances = {p: v for p, v in variances.items() if not _image_limited(ev, post, p, v)}
    if not variances:
        return None
    end = max(variances, key=lambda p: (variances[p], -len(ev.at(p)), -p))
    floor = 1.25 * post.sd_layout**2  # layout stays whatever is booted
    return end if variances[end] > max(limit, floor) else None


def _image_limited(ev: Evidence, post: Posterior, end: int, variance: float) -> bool:
    """Return True if the level of an end is far less certain than its number of boots explains, so
    that the rest is due to its image.
    """
    boots = len(ev.at(end))
    return boots >= IMAGE_BOOTS and variance > IMAGE_VARIANCE * post.boot_var / boots


@dataclass(frozen=True, slots=True)
class _Power:
    """Power of the boots of a kernel to separate the two levels.

    `d2` is the squared distance of the levels; `low` and `high` are the variances of the levels.
    """

    d2: float
    layout: float
    boot: float
    low: float
    high: float

    @staticmethod
    def of_step(post: Posterior) -> _Power:
        return _Power(
            post.effect**2 + post.effect_var,
            post.sd_layout**2,
            post.boot_var,
            post.low_var,
            post.high_var,
        )

    def after(self, ev: Evidence, under_way: Sequence[tuple[int, int, int]]) -> _Power:
        """The same once the boots of the ends that are under way have arrived."""
        power = self
        for position, _, _ in under_way:
            if position in (0, ev.last):
                power = power.with_end(int(position == ev.last))
        return power

    def precision(self, boots: float) -> float:
        """Precision of the level of a kernel after that many boots."""
        return 1.0 / (self.layout + self.boot / boots) if boots else 0.0

    def at(self, precision: Floats) -> Floats:
        """Squared distance of the levels in sd, for kernels whose levels have these precisions.

        A precision is summed over the builds of a kernel, whose layouts are independent.
        """
        threshold = (self.low + self.high) / 4
        return np.where(
            precision > 0, self.d2 / (1.0 / np.maximum(precision, 1e-300) + threshold), 0.0
        )

    def with_end(self, end: int) -> _Power:
        """The same after one more boot of the good (0) or the bad (1) end."""
        variance = self.high if end else self.low
        fixed = min(variance, self.layout)  # boots do not average layout out
        better = fixed + 1.0 / (1.0 / max(variance - fixed, 1e-300) + 1.0 / max(self.boot, 1e-300))
        return replace(self, high=better) if end else replace(self, low=better)


def _precisions(
    ev: Evidence, power: _Power, kernels: _Kernels, testbox: int
) -> tuple[Floats, Floats, Floats]:
    """Position -> precision now, after one more boot on that testbox of the build with the fewest
    boots, and after one boot there of a new layout.
    """
    now, worth = np.zeros(ev.last + 1), kernels.worth()
    least: dict[int, tuple[float, int]] = {}
    for (position, layout), boots in worth.items():
        now[position] += power.precision(boots)
        least[position] = min((boots, layout), least.get(position, (boots, layout)))
    fresh = power.precision(kernels.first(testbox))
    more, adds = (
        now + fresh,
        kernels.more({position: layout for position, (_, layout) in least.items()}, testbox),
    )
    for position, (boots, _) in least.items():
        more[position] = (
            now[position] - power.precision(boots) + power.precision(boots + adds[position])
        )
    return now, more, np.where(now > 0, now + fresh, 0.0)


def _gains(
    ev: Evidence,
    post: Posterior,
    kernels: _Kernels,
    under_way: Sequence[tuple[int, int, int]],
    decisive: float,
    testbox: int,
) -> Floats:
    """(repeat, new layout) x position -> bits that one more boot there, on that testbox, tells
    about the side on which the step is.

    A boot of an end tells about the kernels measured so far: it sharpens the level that they are
    judged against.
    """
    behind = np.cumsum(post.commit) / max(float(post.commit.sum()), 1e-300)
    power = _Power.of_step(post)
    then = power.after(ev, under_way)
    seen = _precisions(ev, power, kernels, testbox)[0]
    planned, more, new = _precisions(ev, then, kernels.and_(under_way), testbox)
    measured, plan = power.at(seen), then.at(planned)
    bits = np.zeros((2, ev.last + 1))
    cuts = [-1, *sorted({p for p, _, _ in under_way if plan[p] >= decisive}), ev.last]
    for left, right in pairwise(cuts):
        before = float(behind[left]) if left >= 0 else 0.0
        share = float(behind[right]) - before
        if share > 1e-12:
            inside = slice(left + 1, right + 1)
            p = np.clip((behind[inside] - before) / share, 0.0, 1.0)
            already = information(p, (plan - measured)[inside])
            for row, after in enumerate((more, new)[: 1 if ev.layout_cost is None else 2]):
                bits[row, inside] = share * (
                    information(p, np.maximum(then.at(after) - measured, 0.0)[inside]) - already
                )
    for end, position in ((0, 0), (1, ev.last)):
        bits[:, position] = (
            (
                information(behind, then.with_end(end).at(planned) - measured)
                - information(behind, plan - measured)
            ).max(),
            0.0,
        )
    return np.where(np.array(ev.measurable), np.maximum(bits, 0.0), 0.0)


def information(p: Floats, d2: Floats) -> Floats:
    """Mutual information, in bits, of a coin with P(heads) = p and a unit Gaussian whose mean is
    shifted by sqrt(d2) on heads.
    """
    q = np.minimum(p, 1.0 - p)
    safe = np.clip(q, 1e-12, 0.5)
    entropy = -(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe))
    logit, ln_d2 = np.log(safe / (1 - safe)), np.log(np.maximum(d2, 1e-12))
    x = np.clip((logit - _LOGITS[0]) / (_LOGITS[1] - _LOGITS[0]), 0.0, len(_LOGITS) - 1.000001)
    y = np.clip((ln_d2 - _LN_D2[0]) / (_LN_D2[1] - _LN_D2[0]), 0.0, len(_LN_D2) - 1.000001)
    i, j, table = x.astype(int), y.astype(int), _information_table()
    u, v = x - i, y - j
    share = (1 - u) * ((1 - v) * table[i, j] + v * table[i, j + 1]) + u * (
        (1 - v) * table[i + 1, j] + v * table[i + 1, j + 1]
    )
    # below the table: in proportion
    share = share * np.minimum(1.0, np.maximum(d2, 0.0) / math.exp(_LN_D2[0]))
    return np.where(q > 1e-9, entropy * share, 0.0)


@lru_cache(maxsize=1)
def _information_table() -> Floats:
    """(logit, ln d^2) -> share of the entropy of the coin that is learned, by quadrature."""
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
                learned = (1 - p) * tails * np.log(tails / mixture) + p * heads * np.log(
                    heads / mixture
                )
            table[i, j] = np.nansum(learned) * step / math.sqrt(2 * math.pi) / entropy
    return np.clip(table, 0.0, 1.0)
