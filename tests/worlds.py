"""Simulated testboxes: what kernels, boots and runs are like in worlds whose truth is known. Shares nothing with the engine.

Samples are made up: their provenance is `simulated`, and nothing that mails ever sees them.
All spreads and effects are relative, on the log scale inside: a spread of 0.02 is 2 %, an effect of -0.12 is -12 %. Time is in seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Key = int | str

DAY = 86400.0
_GRID = 120.0  # seconds between two values of the drift; one boot with one run takes as long
_PAST, _FUTURE = 30 * DAY, 60 * DAY  # what the drift is made for; later it stays where it is
RECORDED = Path(__file__).parent / "calibration" / "vm-tcg.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds. Builders work side by side, as many as are needed; each testbox does one boot at a time."""

    build: float = 300.0
    boot: float = 60.0
    run: float = 60.0
    link: float = 60.0  # of a built kernel in another layout

    def of_boot(self, runs: int) -> float:
        return self.boot + runs * self.run


@dataclass(kw_only=True)
class SimulatedBench:
    """Kernels 0..n of which some commits change the level.

    The same (seed, point, k, layout, box) gives the same boot in whatever order boots are asked for; only drift, day and creep look at `at`.
    """

    commits: int = 16
    culprit: int | None = 7
    effect: float = -0.10
    others: Mapping[int, float] = field(default_factory=dict)  # further steps: commit -> effect
    # noise
    run_noise: float = 0.0
    boot_noise: float = 0.0
    layout_noise: float = 0.0  # frozen in each (kernel, layout)
    pert_noise: float = 0.0  # shift that the k-th boot gives all kernels alike
    heavy: float = 0.0  # share of boots that lose an exponential of mean 6 boot or run spreads
    heavy_runs: float = (
        0.0  # share of runs that lose an exponential of mean 6 spreads of a run in a fresh boot
    )
    bimodal: float = 0.0  # share of boots that fall into a second mode
    apart: float = (
        4.0  # how far that mode lies low, in spreads of a run in a fresh boot; negative: high
    )
    box_noise: float = 0.0  # testboxes of one group stand at levels of their own
    recorded: Sequence[
        Sequence[float]
    ] = ()  # real boots: their residuals take the place of run and boot noise
    # time
    drift: float = 0.0  # sd of a first-order autoregression
    drift_seconds: float = 3600.0  # its correlation length: 30 boots of one run at two minutes
    day_noise: float = 0.0  # each day has a level of its own
    creep: float = 0.0  # log level per day
    # kernels that tell nothing
    skip_rate: float = 0.0  # share of inner kernels that do not build
    unbuildable: Sequence[int] = ()
    unbootable: Sequence[int] = ()
    boot_failure_rate: float = 0.0  # of each boot, whatever the kernel
    # point -> earlier point with the same image
    identical: Mapping[int, int] = field(default_factory=dict)
    runs: int = 3
    level: float = 1000.0
    seed: int = 1

    def __post_init__(self) -> None:
        rng = self._rng("kernels")
        self.layout = rng.normal(0.0, self.layout_noise or 1e-300, self.commits + 1)
        drawn = rng.random(self.commits + 1) < self.skip_rate
        self.broken = {i for i in range(1, self.commits) if drawn[i]} | set(self.unbuildable)
        logs = np.concatenate([[0.0], np.zeros(self.commits)])
        for commit, effect in self.steps.items():
            logs[commit:] += math.log1p(effect)
        self.truth = logs  # point -> log level against the good end, without layout

    @property
    def steps(self) -> dict[int, float]:
        """Commit -> effect, all of them."""
        first = {self.culprit: self.effect} if self.culprit is not None else {}
        return dict(sorted({**self.others, **first}.items()))

    @property
    def spreads(self) -> tuple[float, float]:
        """Between runs of a boot and between boots, without wild runs and odd boots; of recorded boots as plain sd."""
        if self.recorded:
            _, run, boot = _residuals(tuple(tuple(b) for b in self.recorded))
            return run, boot
        return self.run_noise, self.boot_noise

    @property
    def sd(self) -> float:
        """Of one run in a boot of its own."""
        return math.hypot(*self.spreads)

    def root(self, idx: int) -> int:
        return self.identical.get(idx, idx)

    def offset(self, idx: int, layout: int = 0) -> float:
        """What the layout of this kernel build adds to its log level."""
        if layout == 0:
            return float(self.layout[self.root(idx)])
        return float(
            self._rng("layout", self.root(idx), layout).normal(0.0, self.layout_noise or 1e-300)
        )

    def boot(
        self, idx: int, k: int, layout: int = 0, box: int = 0, at: float = 0.0
    ) -> tuple[tuple[float, ...], str | None]:
        """The runs of boot k of kernel idx at a time of the laboratory's clock, or why there are none."""
        idx = self.root(idx)
        if idx in self.broken:
            return (), "does not build: error: too few arguments"
        if idx in self.unbootable:
            return (), "panicked: unable to mount root"
        rng = (
            self._rng("boot", idx, k)
            if not (layout or box)
            else self._rng("boot", idx, k, layout, box)
        )
        if rng.random() < self.boot_failure_rate:
            return (), "hung: console went quiet"
        level = (
            math.log(self.level)
            + float(self.truth[idx])
            + self.offset(idx, layout)
            + self.at(at, box)
        )
        if self.pert_noise:
            level += float(self._rng("shift", k).normal(0.0, self.pert_noise))
        noise = self._noise(rng)
        return tuple(float(v) for v in np.exp(level + noise)), None

    def _noise(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Of each run of one boot."""
        if self.recorded:
            boots, run, between = _residuals(tuple(tuple(b) for b in self.recorded))
            drawn = boots[int(rng.integers(len(boots)))]
            picked = np.array([drawn[int(rng.integers(len(drawn)))] for _ in range(self.runs)])
            # smoothed: no value comes twice
            return (
                picked
                + float(rng.normal(0.0, between / 5))
                + rng.normal(0.0, run / 5 + 1e-9, self.runs)
            )
        boot = float(rng.normal(0.0, self.boot_noise or 1e-300))
        if rng.random() < self.heavy:
            boot -= float(rng.exponential(6.0 * max(self.boot_noise, self.run_noise)))
        if self.bimodal and rng.random() < self.bimodal:
            boot -= self.apart * self.sd
        noise: NDArray[np.float64] = boot + rng.normal(0.0, self.run_noise or 1e-300, self.runs)
        if self.heavy_runs:
            lost = rng.exponential(6.0 * self.sd, self.runs)
            noise = noise - np.where(rng.random(self.runs) < self.heavy_runs, lost, 0.0)
        return noise

    def at(self, at: float, box: int = 0) -> float:
        """What the hour, the day and the testbox add to the log level of every kernel."""
        level = self.creep * at / DAY
        if self.box_noise:
            level += float(self._rng("box", box).normal(0.0, self.box_noise))
        if self.day_noise:
            level += float(
                self._rng("day", int(at // DAY) + 10_000, box).normal(0.0, self.day_noise)
            )
        if self.drift:
            path = self._path
            level += float(path[min(max(int((at + _PAST) / _GRID), 0), len(path) - 1)])
        return level

    @cached_property
    def _path(self) -> NDArray[np.float64]:
        """The drift: stationary, correlation exp(-distance / drift_seconds)."""
        rho = math.exp(-_GRID / self.drift_seconds)
        white = self._rng("drift").normal(0.0, self.drift, int((_PAST + _FUTURE) / _GRID))
        white[1:] *= math.sqrt(1.0 - rho**2)
        return np.asarray(lfilter([1.0], [1.0, -rho], white), dtype=np.float64)

    def _rng(self, *key: Key) -> np.random.Generator:
        return np.random.default_rng(
            [
                self.seed,
                *(
                    sum(ord(c) << 8 * i for i, c in enumerate(k[:4])) if isinstance(k, str) else k
                    for k in key
                ),
            ]
        )


@lru_cache(maxsize=8)
def _residuals(
    boots: tuple[tuple[float, ...], ...],
) -> tuple[list[NDArray[np.float64]], float, float]:
    """Logs about the median of boot means; the spreads within boots and between them."""
    logs = [np.log(np.array(b)) for b in boots if b]
    means = np.array([x.mean() for x in logs])
    within = np.concatenate([x - x.mean() for x in logs])
    run = math.sqrt(float((within**2).sum()) / max(len(within) - len(logs), 1))
    between = float(means.var(ddof=1)) - run**2 * float(np.mean([1.0 / len(x) for x in logs]))
    return [x - float(np.median(means)) for x in logs], run, math.sqrt(max(between, 0.0))


def recorded_boots(metric: str, path: Path = RECORDED) -> tuple[tuple[float, ...], ...]:
    """Boots of one kernel recorded on the vm-tcg testbox: a value per run."""
    return tuple(
        tuple(float(v) for v in boot) for boot in json.loads(path.read_text())["boots"][metric]
    )
