"""A laboratory with a clock around a simulated testbox, and the loop that bisects in it.

Shared by properties, calibration and benchmarks.

Only this module knows both the worlds (`tests/worlds.py`) and the engine.
Time is in seconds of the laboratory's clock.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.state import BisectionState, Conclude, Conclusion, Measure, PointState
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior
from swingbot.core.plan.speculative_builds import likely_next
from tests.worlds import DAY, Costs, SimulatedBench

__all__ = [
    "Costs",
    "Ended",
    "Laboratory",
    "SimulatedBench",
    "a_state",
    "arrived",
    "bisect_to_the_end",
    "known_noise",
    "with_history",
]


@dataclass(frozen=True, kw_only=True)
class Ended:
    conclusion: Conclusion
    boots: int  # without history
    builds: int
    steps: int
    state: BisectionState
    runs_per_boot: int = 1
    seconds: float = 0.0  # of the laboratory's clock
    cpu_seconds: float = 0.0  # of the engine, all steps together
    slowest_step: float = 0.0  # the longest one, processor seconds

    @property
    def named(self) -> int | None:
        """The one commit that the conclusion names, if it does."""
        return self.conclusion.members[0] if self.conclusion.kind == "culprit" else None

    def runs(self, *phases: str) -> int:
        """Values that boots of these phases gave, or would give that were still under way at the
        end.
        """
        given = sum(len(o.values) for o in self.state.observations if o.phase in phases)
        return given + self.runs_per_boot * sum(f.phase in phases for f in self.state.in_flight)


def known_noise(
    bench: SimulatedBench,
    certainty: float = 12.0,
    *,
    layout: float | None = None,
    wanders: bool = True,
    modes: bool = False,
) -> NoisePrior:
    """The results of A/A boots in this world: its spreads, each off by the factor that the
    certainty admits.

    12 is +-15 %, 50 is +-7 % (`1 / (4 e^2) + 1/2` for a relative error e).
    `layout` in place of the world's own spread, for a wrong prior.
    `modes`: where boots fall into two, the share of the smaller one and its distance (to about 2 %)
    are known. Whether the level of the testbox differs from day to day is known if `wanders`,
    else it was not checked; the speed of a drift is never known.
    """
    error = math.sqrt(1.0 / (4.0 * (certainty - 0.5))) if certainty > 0.5 else 1.0
    factors = np.exp(np.random.default_rng([bench.seed, 4711]).normal(0.0, error, 4))
    sd_run, sd_boot = bench.spreads
    share = bench.bimodal if modes else 0.0
    apart = -bench.apart * bench.sd if share else 0.0
    if share > 0.5:
        share, apart = 1.0 - share, -apart
    return NoisePrior(
        sd_run=float(max(sd_run, 1e-4) * factors[0]),
        sd_boot=float(max(sd_boot, 1e-4) * factors[1]),
        sd_layout=float((bench.layout_noise if layout is None else layout) * factors[2]),
        sd_day=float(math.hypot(*bench.by_time) * factors[3]) if wanders else None,
        certainty=certainty,
        mode_share=share,
        mode_apart=apart * (1.0 + 0.02 * math.log(float(factors[3]))),
    )


def a_state(
    bench: SimulatedBench,
    *,
    paired: bool = False,
    noise: NoisePrior | None = None,
    min_effect_pct: float = 1.0,
    build_cost: float = 10.0,
    boot_cost: float = 9.0,
    testboxes: int = 1,
    layouts: bool = False,
) -> BisectionState:
    """A bisection over the whole bench that has seen nothing yet."""
    points = tuple(
        PointState(idx=i, build_cost_seconds=build_cost) for i in range(bench.commits + 1)
    )
    return BisectionState(
        points=points,
        paired=paired,
        noise=noise or NoisePrior(),
        min_effect_pct=min_effect_pct,
        boot_cost_seconds=boot_cost,
        testboxes=testboxes,
        layouts=layouts,
        layout_cost_seconds=Costs().link,
    )


def with_history(
    bench: SimulatedBench, state: BisectionState, boots: int = 50, costs: Costs | None = None
) -> BisectionState:
    """Each end was booted before: the good one in a row three days ago,
    the bad one the day before yesterday. Both are built.
    """
    costs, ends = costs or Costs(), (0, bench.commits)
    earlier: list[Observation] = []
    for end, days in zip(ends, (3.0, 2.0), strict=True):
        for k in range(boots):
            at = -days * DAY + k * costs.of_boot(bench.runs)
            values, skip = bench.boot(end, k, at=at, order=len(earlier))
            earlier.append(
                Observation(idx=end, k=k, values=values, skip=skip, phase="history", at=at)
            )
    points = tuple(replace(p, built=p.built or p.idx in ends) for p in state.points)
    return replace(state, points=points, observations=state.observations + tuple(earlier))


@dataclass
class Laboratory:
    """Builds and boots what is asked; outcomes come back one at a time, when they are ready."""

    bench: SimulatedBench
    state: BisectionState
    costs: Costs = field(default_factory=Costs)
    now: float = 0.0
    free: dict[int, float] = field(default_factory=dict)  # testbox -> when its last boot ends
    # (kernel, layout) -> when it is built
    ready: dict[tuple[int, int], float] = field(default_factory=dict)
    # testbox -> what it shall boot, in the order of asking
    waiting: dict[int, list[WantedBoot]] = field(default_factory=dict)
    # heap: (when, order of starting, what, when it started)
    coming: list[tuple[float, int, WantedBoot, float]] = field(default_factory=list)
    asked: set[tuple[int, int]] = field(default_factory=set)
    started: int = 0

    def __post_init__(self) -> None:
        self.asked = {(o.idx, o.k) for o in self.state.observations}
        self.ready = {(self.bench.root(p.idx), 0): -math.inf for p in self.state.points if p.built}
        self.given = len(self.ready)

    @property
    def builds(self) -> int:
        """Begun by this bisection, broken ones too; links of another layout are none."""
        return sum(layout == 0 for _, layout in self.ready) - self.given

    def place(self, action: Measure) -> None:
        new = action.requests
        for f in new:
            assert (f.idx, f.k) not in self.asked, (
                f"boot {f.k} of point {f.idx} was asked for twice"
            )
            assert 0 <= f.testbox < self.state.testboxes, f"there is no testbox {f.testbox}"
            self.asked.add((f.idx, f.k))
            built = self._built(self.bench.root(f.idx), f.layout)
            if self.bench.root(f.idx) in self.bench.broken:
                self._start(f, max(built, self.now), 0.0)
            else:
                self.waiting.setdefault(f.testbox, []).append(f)
        self.state = replace(self.state, in_flight=self.state.in_flight + new)

    def _start(self, f: WantedBoot, begin: float, seconds: float) -> None:
        self.started += 1
        heapq.heappush(self.coming, (begin + seconds, self.started, f, begin))

    def _built(self, root: int, layout: int) -> float:
        """When a kernel is ready. Another layout is another link of the same objects."""
        if (root, layout) not in self.ready:
            self.ready[root, layout] = (
                max(self._built(root, 0), self.now) + self.costs.link
                if layout
                else self.now + self.costs.build
            )
        return self.ready[root, layout]

    def build_ahead(self, most: int, policy: Policy) -> None:
        """Begin up to `most` builds that the next answers will probably ask for,
        as idle build workers do; note what is built by now.
        """
        for idx in likely_next(self.state, belief(self.state, policy), most):
            self._built(self.bench.root(idx), 0)
        done = {
            root
            for (root, layout), when in self.ready.items()
            if layout == 0 and when <= self.now and root not in self.bench.broken
        }
        points = tuple(
            p if p.built or self.bench.root(p.idx) not in done else replace(p, built=True)
            for p in self.state.points
        )
        self.state = replace(self.state, points=points)

    def wait(self) -> None:
        """Until the next outcome.

        A testbox that is free takes the first of its boots whose kernel is built.
        """
        while self.waiting and (begin := min(map(self._begin, self.waiting))) <= min(
            (when for when, *_ in self.coming), default=math.inf
        ):
            testbox = next(testbox for testbox in self.waiting if self._begin(testbox) == begin)
            f = next(f for f in self.waiting[testbox] if self._able(f) <= begin)
            self.waiting[testbox].remove(f)
            self.waiting = {testbox: boots for testbox, boots in self.waiting.items() if boots}
            self.free[testbox] = begin + self.costs.of_boot(self.bench.runs)
            self._start(f, begin, self.costs.of_boot(self.bench.runs))
        assert self.coming, "nothing is under way, and nothing more is asked"
        self.now, _, f, begin = heapq.heappop(self.coming)
        self.state = _with_outcome(self.bench, self.state, f, begin)

    def _begin(self, testbox: int) -> float:
        """When this testbox starts the next of what it shall boot."""
        return max(
            self.now, self.free.get(testbox, 0.0), min(map(self._able, self.waiting[testbox]))
        )

    def _able(self, f: WantedBoot) -> float:
        return self._built(self.bench.root(f.idx), f.layout)


def bisect_to_the_end(
    bench: SimulatedBench,
    state: BisectionState | None = None,
    policy: Policy | None = None,
    costs: Costs | None = None,
    most_steps: int = 20_000,
    ahead: int = 0,
) -> Ended:
    """Step, do what was asked, step again when an outcome comes, until there is a conclusion.

    `ahead`: kernels built before they are asked for.
    """
    policy, costs = policy or Policy(), costs or Costs()
    lab = Laboratory(bench, state or a_state(bench), costs)
    before, cpu, slowest = len(lab.state.observations), 0.0, 0.0
    for steps in range(1, most_steps):
        began = time.process_time()
        action = step(lab.state, policy)
        took = time.process_time() - began
        cpu, slowest = cpu + took, max(slowest, took)
        if isinstance(action, Conclude):
            return Ended(
                conclusion=action.conclusion,
                boots=len(lab.state.observations) + len(lab.state.in_flight) - before,
                builds=lab.builds,
                steps=steps,
                state=lab.state,
                runs_per_boot=bench.runs,
                seconds=lab.now,
                cpu_seconds=cpu,
                slowest_step=slowest,
            )
        if isinstance(action, Measure):
            lab.place(action)
        if ahead:
            lab.build_ahead(ahead, policy)
        lab.wait()
    raise AssertionError("the bisection does not end")


def arrived(bench: SimulatedBench, state: BisectionState) -> BisectionState:
    """All boots in flight come back at once."""
    seen = {(o.idx, o.k) for o in state.observations}
    for f in state.in_flight:
        assert (f.idx, f.k) not in seen, f"boot {f.k} of point {f.idx} was asked for twice"
        seen.add((f.idx, f.k))
        state = _with_outcome(bench, state, f, 0.0)
    return state


def _with_outcome(
    bench: SimulatedBench, state: BisectionState, f: WantedBoot, at: float
) -> BisectionState:
    """As the service records one boot: an unbuildable point is skipped, and equal images are
    known."""
    order = sum(o.testbox == f.testbox for o in state.observations)
    values, skip = bench.boot(f.idx, f.k, f.layout, f.testbox, at, order)
    seen = Observation(
        idx=f.idx,
        k=f.k,
        values=values,
        skip=skip,
        phase=f.phase,
        layout=f.layout,
        testbox=f.testbox,
        at=at,
    )
    points, point = state.points, state.points[f.idx]
    unbuildable = skip if bench.root(f.idx) in bench.broken else None
    now = replace(
        point,
        built=point.built or (f.layout == 0 and not unbuildable),
        skipped=unbuildable,
        same_as=_known_twin(bench, points, f.idx),
    )
    if now != point:
        points = (*points[: f.idx], now, *points[f.idx + 1 :])
    left = tuple(g for g in state.in_flight if (g.idx, g.k) != (f.idx, f.k))
    return replace(state, points=points, observations=(*state.observations, seen), in_flight=left)


def _known_twin(bench: SimulatedBench, points: Sequence[PointState], idx: int) -> int | None:
    """An already built point with the same image."""
    if not bench.identical:
        return None
    root = bench.root(idx)
    return next(
        (p.idx for p in points if p.built and p.idx != idx and bench.root(p.idx) == root), None
    )
