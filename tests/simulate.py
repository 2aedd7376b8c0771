"""A simulated testbox and the shortest loop that bisects on it. Shared by properties, calibration and demonstrations.

Its samples are made up: their provenance is `simulated`, and nothing that mails ever sees them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from swingbot.core.bisect.state import BisectionState, Conclude, Conclusion, InFlight, Measure, NoisePrior, Observation, PointState, Policy
from swingbot.core.bisect.step import step

Key = int | str


@dataclass(kw_only=True)
class SimulatedBench:
    """Kernels 0..n of which some commits change the level. All spreads are relative; an effect of -0.12 is -12 %.

    The same seed gives the same kernels and boots, in whatever order they are asked for.
    """

    commits: int = 16
    culprit: int | None = 7
    effect: float = -0.10
    others: Mapping[int, float] = field(default_factory=dict)  # further steps: commit -> effect
    run_noise: float = 0.0
    boot_noise: float = 0.0
    layout_noise: float = 0.0
    pert_noise: float = 0.0  # shift that the k-th boot gives all kernels alike
    heavy: float = 0.0  # share of boots that lose an exponential of mean 6 boot or run spreads
    skip_rate: float = 0.0  # share of inner kernels that do not build
    unbuildable: Sequence[int] = ()
    unbootable: Sequence[int] = ()
    boot_failure_rate: float = 0.0  # of each boot, whatever the kernel
    identical: Mapping[int, int] = field(default_factory=dict)  # point -> earlier point with the same image
    runs: int = 3
    level: float = 1000.0
    seed: int = 1

    def __post_init__(self) -> None:
        rng = self._rng("kernels")
        self.layout = rng.normal(0.0, self.layout_noise or 1e-300, self.commits + 1)
        drawn = rng.random(self.commits + 1) < self.skip_rate
        self.broken = {i for i in range(1, self.commits) if drawn[i]} | set(self.unbuildable)

    def boot(self, idx: int, k: int) -> tuple[tuple[float, ...], str | None]:
        """The runs of boot k of kernel idx, or why there are none."""
        idx = self.identical.get(idx, idx)
        if idx in self.broken:
            return (), "does not build: error: too few arguments"
        if idx in self.unbootable:
            return (), "panicked: unable to mount root"
        rng = self._rng("boot", idx, k)
        if rng.random() < self.boot_failure_rate:
            return (), "hung: console went quiet"
        steps = dict(self.others) | ({self.culprit: self.effect} if self.culprit is not None else {})
        level = math.log(self.level) + sum(math.log1p(e) for c, e in steps.items() if c <= idx) + float(self.layout[idx])
        level += float(self._rng("shift", k).normal(0.0, self.pert_noise or 1e-300)) + float(rng.normal(0.0, self.boot_noise or 1e-300))
        if rng.random() < self.heavy:
            level -= float(rng.exponential(6.0 * max(self.boot_noise, self.run_noise)))
        noise = rng.normal(0.0, self.run_noise or 1e-300, self.runs)
        return tuple(float(v) for v in np.exp(level + noise)), None

    def _rng(self, *key: Key) -> np.random.Generator:
        return np.random.default_rng([self.seed, *(sum(ord(c) << 8 * i for i, c in enumerate(k[:4])) if isinstance(k, str) else k for k in key)])


@dataclass(frozen=True, kw_only=True)
class Ended:
    conclusion: Conclusion
    boots: int
    builds: int
    steps: int
    state: BisectionState

    @property
    def named(self) -> int | None:
        """The one commit that the conclusion names, if it does."""
        return self.conclusion.members[0] if self.conclusion.kind == "culprit" else None


def a_state(
    bench: SimulatedBench, *, paired: bool = False, noise: NoisePrior | None = None, min_effect_pct: float = 1.0, build_cost: float = 10.0
) -> BisectionState:
    """A bisection over the whole bench that has seen nothing yet."""
    points = tuple(PointState(idx=i, build_cost_seconds=build_cost) for i in range(bench.commits + 1))
    return BisectionState(points=points, paired=paired, noise=noise or NoisePrior(), min_effect_pct=min_effect_pct, boot_cost_seconds=9.0)


def bisect_to_the_end(bench: SimulatedBench, state: BisectionState | None = None, policy: Policy | None = None) -> Ended:
    """Step, boot everything that was asked, step again, until there is a conclusion."""
    state, policy = state or a_state(bench), policy or Policy()
    steps = 0
    while True:
        action = step(state, policy)
        steps += 1
        if isinstance(action, Conclude):
            built = sum(p.built for p in state.points)
            return Ended(conclusion=action.conclusion, boots=len(state.observations), builds=built, steps=steps, state=state)
        assert isinstance(action, Measure), f"nothing is in flight, yet {action}"
        assert steps < 5000, "the bisection does not end"
        asked = tuple(InFlight(idx=r.idx, k=r.k, phase=action.phase, layout=r.layout, box=r.box) for r in action.requests)
        state = arrived(bench, replace(state, in_flight=asked))


def arrived(bench: SimulatedBench, state: BisectionState) -> BisectionState:
    """All boots in flight come back: as the service records them, an unbuildable point is skipped and equal images are known."""
    seen = {(o.idx, o.k) for o in state.observations}
    points, observations = list(state.points), list(state.observations)
    for f in state.in_flight:
        assert (f.idx, f.k) not in seen, f"boot {f.k} of point {f.idx} was asked for twice"
        seen.add((f.idx, f.k))
        values, skip = bench.boot(f.idx, f.k)
        observations.append(Observation(idx=f.idx, k=f.k, values=values, skip=skip, phase=f.phase))
        unbuildable = skip if f.idx in bench.broken else None
        points[f.idx] = replace(points[f.idx], built=not unbuildable, skipped=unbuildable, same_as=_known_twin(bench, points, f.idx))
    return replace(state, points=tuple(points), observations=tuple(observations), in_flight=())


def _known_twin(bench: SimulatedBench, points: Sequence[PointState], idx: int) -> int | None:
    """An already built point with the same image."""
    root = bench.identical.get(idx, idx)
    return next((p.idx for p in points if p.built and p.idx != idx and bench.identical.get(p.idx, p.idx) == root), None)
