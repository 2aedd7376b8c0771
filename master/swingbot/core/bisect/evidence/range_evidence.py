"""Convert the state to arrays: identical kernels become one position, boots become numbers, and
failed boots are dropped.

Positions are points without the commits that cannot have changed anything. If kernels a < b are the
same image, no commit in (a, b] is the step, and all of a..b share one position, at which only boots
of that image count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.thresholds import EXACT_UNITS, FAILED_PER_GOOD, Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.statuses import Phase
from swingbot.core.stats.bound import Bound, reached_bound
from swingbot.core.stats.rounding import last_digit

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Evidence:
    """A range, or a part of one, by position."""

    # position -> the point that is asked for when it is measured, also the commit that leads to it
    points: tuple[int, ...]
    position: tuple[int, ...]  # point -> position in the whole range
    mass: Floats  # position -> prior mass of that commit, sum 1, mass[0] = 0
    measurable: tuple[bool, ...]
    cost: Floats  # position -> seconds of its next boot
    # seconds of a boot in a layout that is new for its commit; None: kernels can be built in one
    # only
    layout_cost: float | None
    boots: tuple[Observation, ...]  # that gave values, ordered by position, layout and k
    pending: tuple[WantedBoot, ...]
    failed: tuple[tuple[int, int], ...]  # (position, k) of boots without a result
    # (position, layout) of images of the same level that can be booted in its place
    controls: tuple[tuple[int, int], ...]
    ratio: bool  # effects are log ratios; else differences in `unit`
    unit: float
    bound: Bound | None = None  # of the scale, that boots of the whole range reach
    first: int = 0  # position in the whole range of what is position 0 here

    @property
    def last(self) -> int:
        return len(self.points) - 1

    @property
    def used(self) -> int:
        """Boots spent or under way, those left out that were there before."""
        return sum(b.phase != "history" for b in self.boots) + len(self.failed) + len(self.pending)

    def effect(self, value: float) -> float:
        return math.log(value) if self.ratio else value / self.unit

    def moved(self, value: float, effect: float) -> float:
        """The value with that effect on it."""
        return value * math.exp(effect) if self.ratio else value + effect * self.unit

    def level(self, effect: float) -> float:
        return math.exp(min(effect, 700.0)) if self.ratio else effect * self.unit

    def pct(self, effect: float) -> float:
        return 100.0 * (math.expm1(min(effect, 700.0)) if self.ratio else effect)

    def threshold(self, pct: float) -> float:
        return math.log1p(pct / 100.0) if self.ratio else pct / 100.0

    def where(self, boot: Observation | WantedBoot) -> int:
        """The position of a boot of this range."""
        return self.position[boot.idx] - self.first

    def key(self, boot: Observation | WantedBoot) -> tuple[int, int]:
        """Position and k, which identify a boot: boots of equal images with equal k are one."""
        return self.position[boot.idx] - self.first, boot.k

    @property
    def asked(self) -> list[Observation | WantedBoot]:
        """Boots that gave values, then those under way."""
        return [*self.boots, *self.pending]

    @cached_property
    def boot_positions(self) -> tuple[int, ...]:
        """The positions of `boots`."""
        return tuple(self.where(b) for b in self.boots)

    @cached_property
    def effects(self) -> tuple[Floats, ...]:
        """The runs of each of `boots` on the effect scale."""
        return tuple(np.array([self.effect(v) for v in b.values]) for b in self.boots)

    @cached_property
    def means(self) -> Floats:
        """The mean of each of `boots` on the effect scale."""
        return np.array([float(runs.sum()) / len(runs) for runs in self.effects])

    @cached_property
    def exact(self) -> bool:
        """Whether boots repeat to the last digit, with more digits than rounding explains.

        A second boot of an image is then no evidence. False until two images were booted twice.
        """
        images: dict[tuple[int, int, int], list[tuple[float, ...]]] = {}
        for b in self.boots:
            images.setdefault((self.where(b), b.layout, b.testbox), []).append(b.values)
        again = [boots for boots in images.values() if len(boots) > 1]
        return len(again) > 1 and all(
            len(set(boots)) == 1
            and max(abs(value) / last_digit(value) for value in boots[0]) >= EXACT_UNITS
            for boots in again
        )

    @cached_property
    def _by_position(self) -> Mapping[int, Sequence[Observation]]:
        boots: dict[int, list[Observation]] = {}
        for at, boot in zip(self.boot_positions, self.boots, strict=True):
            boots.setdefault(at, []).append(boot)
        return boots

    def at(self, position: int, phase: Phase | None = None) -> list[Observation]:
        """Return the boots of a position by layout and k, of one phase or of all."""
        return [b for b in self._by_position.get(position, ()) if phase in (None, b.phase)]

    def between(self, low: int, high: int) -> Evidence:
        """The part of the range from position `low` to `high`, which become its ends."""

        def inside(boot: Observation | WantedBoot) -> bool:
            return low <= self.where(boot) <= high

        mass = self.mass[low : high + 1].copy()
        mass[0] = 0.0
        return replace(
            self,
            points=self.points[low : high + 1],
            mass=mass / mass.sum() if mass.sum() > 0 else mass,
            measurable=self.measurable[low : high + 1],
            cost=self.cost[low : high + 1],
            boots=tuple(b for b in self.boots if inside(b)),
            pending=tuple(p for p in self.pending if inside(p)),
            failed=tuple((p - low, k) for p, k in self.failed if low <= p <= high),
            controls=tuple((p - low, i) for p, i in self.controls if low <= p <= high),
            first=self.first + low,
        )

    def next_k(self) -> int:
        """A k that no boot here has used, for confirmation."""
        return 1 + max((k for k in self._all_k()), default=-1)

    def _all_k(self) -> Iterable[int]:
        yield from (b.k for b in self.boots)
        yield from (p.k for p in self.pending)
        yield from (k for _, k in self.failed)


def gather(state: BisectionState, policy: Policy) -> Evidence:
    """Arrange everything by position. The order in which observations came makes no difference."""
    canon = _classes(state)
    alive = _alive(canon)
    position = tuple(int(i) for i in np.cumsum(alive))
    points = tuple(i for i, yes in enumerate([True, *alive[1:]]) if yes)
    counted = {i: position[i] for i in range(len(canon)) if canon[i] == canon[points[position[i]]]}
    boots, failed = _observed(state, counted)
    lost = {(counted[o.idx], o.k): o.layout for o in state.observations if o.idx in counted}
    lost_controls = {(p, lost[p, k]) for p, k in failed if not state.layouts and lost[p, k]}
    boot_positions = [position[b.idx] for b in boots]
    done = {(at, b.k) for at, b in zip(boot_positions, boots, strict=True)} | set(failed)
    pending = {
        (counted[f.idx], f.k): f
        for f in sorted(state.in_flight, key=lambda f: (f.idx, f.k))
        if f.idx in counted
    }
    members: dict[int, list[int]] = {}
    for i, p in counted.items():
        members.setdefault(p, []).append(i)
    of_kernel = [p for p, k in failed if (p, lost[p, k]) not in lost_controls]
    fails, seen = Counter(of_kernel), Counter(boot_positions)
    values = [v for b in boots for v in b.values]
    ratio = all(v > 0 for v in values)
    images: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    for at, b in zip(boot_positions, boots, strict=True):
        images.setdefault((at, b.layout), []).append(b.values)
    return Evidence(
        points=points,
        position=position,
        mass=_mass(state, points),
        measurable=tuple(
            not any(state.points[i].skipped for i in members[p])
            and (
                fails[p] < policy.boot_tries
                if not seen[p]
                else fails[p] < policy.boot_tries + FAILED_PER_GOOD * seen[p]
            )
            for p in range(len(points))
        ),
        cost=np.array([_cost(state, members[p]) for p in range(len(points))]),
        layout_cost=max(state.boot_cost_seconds, 1e-3) + state.layout_cost_seconds
        if state.layouts
        else None,
        boots=boots,
        pending=tuple(pending[key] for key in sorted(pending) if key not in done),
        failed=failed,
        controls=tuple(
            (p, layout)
            for p, i in enumerate(points)
            for layout in range(1, 1 + (0 if state.layouts else state.points[i].controls))
            if (p, layout) not in lost_controls
        ),
        ratio=ratio,
        unit=1.0 if ratio else _unit(boots, boot_positions, len(points) - 1),
        bound=None if state.paired else reached_bound(images.values()),
    )


def _classes(state: BisectionState) -> list[int]:
    """Point -> smallest point with the same image."""
    canon = list(range(len(state.points)))

    def find(i: int) -> int:
        while canon[i] != i:
            i = canon[i]
        return i

    for point in state.points:
        if point.same_as is not None:
            low, high = sorted((find(point.idx), find(point.same_as)))
            canon[high] = low
    return [find(i) for i in range(len(canon))]


def _alive(canon: list[int]) -> list[bool]:
    """Commit -> whether it can be the step: it does not stand between two identical kernels. [0] is
    False.
    """
    last = {c: i for i, c in enumerate(canon)}
    alive, until = [], 0
    for i, c in enumerate(canon):
        alive.append(i > until)
        until = max(until, last[c])
    return alive


def _observed(
    state: BisectionState, counted: dict[int, int]
) -> tuple[tuple[Observation, ...], tuple[tuple[int, int], ...]]:
    """Boots that gave values, without those that are no number, by position, layout and k; and
    (position, k) of those that gave none.
    """
    boots: dict[tuple[int, int], Observation] = {}
    failed: set[tuple[int, int]] = set()
    for o in sorted(state.observations, key=lambda o: (o.idx, o.k)):
        if o.idx not in counted:
            continue
        key = counted[o.idx], o.k
        values = tuple(v for v in o.values if math.isfinite(v))
        if values and not o.skip:
            boots.setdefault(key, o if len(values) == len(o.values) else replace(o, values=values))
        else:
            failed.add(key)
    order = sorted(boots, key=lambda key: (key[0], boots[key].layout, key[1]))
    return tuple(boots[key] for key in order), tuple(sorted(failed - boots.keys()))


def _mass(state: BisectionState, points: tuple[int, ...]) -> Floats:
    mass = np.array([0.0] + [max(state.points[i].weight, 0.0) for i in points[1:]])
    if mass.sum() <= 0:
        mass[1:] = 1.0
    return np.asarray(mass / mass.sum() if mass.sum() > 0 else mass)


def _cost(state: BisectionState, members: list[int]) -> float:
    build = (
        0.0
        if any(state.points[i].built for i in members)
        else state.points[members[0]].build_cost_seconds
    )
    return max(state.boot_cost_seconds, 1e-3) + build


def _unit(boots: Sequence[Observation], boot_positions: Sequence[int], last: int) -> float:
    """Difference form: the larger mean magnitude of the two ends, or of anything seen, or 1."""
    means = []
    for end in (0, last):
        runs = [b.values for at, b in zip(boot_positions, boots, strict=True) if at == end]
        means.append(abs(sum(v for vs in runs for v in vs) / max(1, sum(map(len, runs)))))
    return max(means) or max((abs(v) for b in boots for v in b.values), default=0.0) or 1.0
