"""Simulated testboxes: kernels, boots and runs of worlds with a known truth.

Shares nothing with the engine.

Samples are made up: their provenance is `simulated`, and nothing that mails ever sees them.
All spreads and effects are relative, on the log scale inside: a spread of 0.02 is 2 %,
an effect of -0.12 is -12 %. Time is in seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
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
_WANDER_BOOTS = 4096  # then it begins again
RECORDED = Path(__file__).parent / "calibration" / "vm-tcg.json"


Draw = Callable[[np.random.Generator, float, int], NDArray[np.float64]]
# Draw n values with a given spread: all but "cauchy" have that sd, and mean 0.
SHAPES: dict[str, Draw] = {
    "gauss": lambda rng, sd, n: rng.normal(0.0, sd, n),
    "student": lambda rng, sd, n: sd / math.sqrt(3.0) * rng.standard_t(3, n),
    "flat": lambda rng, sd, n: rng.uniform(-math.sqrt(3.0) * sd, math.sqrt(3.0) * sd, n),
    "slow tail": lambda rng, sd, n: sd - rng.exponential(sd, n),  # most are a little fast
    "fast tail": lambda rng, sd, n: rng.exponential(sd, n) - sd,
    # no sd at all: half of the values are within 2/3 `sd`; none is a factor of e^3 off
    "cauchy": lambda rng, sd, n: np.clip(0.6745 * sd * rng.standard_cauchy(n), -3.0, 3.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds.

    Builders work side by side, as many as are needed; each testbox does one boot at a time.
    """

    build: float = 300.0
    boot: float = 60.0
    run: float = 60.0
    link: float = 60.0  # of a built kernel in another layout

    def of_boot(self, runs: int) -> float:
        return self.boot + runs * self.run


@dataclass(kw_only=True)
class SimulatedBench:
    """Kernels 0..n of which some commits change the level.

    The same (seed, point, k, layout, testbox) gives the same boot in whatever order boots are asked
    for; only drift, day and creep look at `at`, only `wander` and `by_order` look at `order`, the
    number of boots that the testbox made before, and only `path_after` at the boot before.
    """

    commits: int = 16
    culprit: int | None = 7
    effect: float = -0.10
    others: Mapping[int, float] = field(default_factory=dict)  # further steps: commit -> effect
    commit_creep: float = 0.0  # further effect, of all commits together, each the same share of it
    effect_share: float = 1.0  # share of the boots that show the steps; creep shows in all
    spread_steps: Mapping[int, float] = field(
        default_factory=dict
    )  # commit -> factor of run and boot noise from there on
    # noise
    run_noise: float = 0.0
    boot_noise: float = 0.0
    layout_noise: float = 0.0  # frozen in each (kernel, layout)
    pert_noise: float = 0.0  # shift that the k-th boot gives all kernels alike
    heavy: float = 0.0  # share of boots that lose an exponential of mean 6 boot or run spreads
    heavy_runs: float = (
        0.0  # share of runs that lose an exponential of mean 6 spreads of a run in a fresh boot
    )
    # commit -> share of runs on another path from there on; before the first, `path_before`
    path_steps: Mapping[int, float] = field(default_factory=dict)
    path_before: float = 0.0
    path_apart: float = math.log(0.5)  # log units by which these runs are off
    path_after: float = 1.0  # factor of that share in a boot after one of another kernel
    bimodal: float = 0.0  # share of boots that fall into a second mode
    apart: float = (
        4.0  # how far that mode lies low, in spreads of a run in a fresh boot; negative: high
    )
    shape: str = "gauss"  # of run and boot noise: a key of SHAPES
    image_modes: float = 0.0  # share of images (kernel and layout) that are in a second mode
    image_apart: float = 0.04  # log units by which that mode is low; negative: high
    testbox_noise: float = 0.0  # testboxes of one group have different levels
    recorded: Sequence[
        Sequence[float]
    ] = ()  # real boots: their residuals take the place of run and boot noise
    # time
    drift: float = 0.0  # sd of a first-order autoregression
    drift_seconds: float = 3600.0  # its correlation length: 30 boots of one run at two minutes
    day_noise: float = 0.0  # each day has a level of its own
    day_modes: float = 0.0  # share of days that are in a second mode
    day_apart: float = 0.04  # log units by which that mode is low; negative: high
    wander: float = 0.0  # sd of a first-order autoregression over the boots of a testbox
    wander_rho: float = 0.95  # correlation of two boots in a row
    creep: float = 0.0  # log level per day
    # by the order of the boots of a testbox, log units
    sink: float = 0.0  # that it loses at each boot
    lost: float = 0.0  # that it loses for good at its boot `lost_at`
    lost_at: int = 20
    low_every: int = 0  # each of so many boots is low by `stuck_apart`
    stuck: float = 0.0  # share of blocks of `stuck_boots` boots that are low by `stuck_apart`
    stuck_boots: int = 5
    stuck_apart: float = 0.05
    unequal: float = 0.0  # sd of the ln of a factor of run and boot noise, another for each kernel
    # the scale
    quantum: float = 0.0  # values are multiples of it, the metric's unit
    cap: float = math.inf  # upper limit of all values, the metric's unit
    # kernels without a measurement
    skip_rate: float = 0.0  # share of inner kernels that do not build
    unbuildable: Sequence[int] = ()
    unbootable: Sequence[int] = ()
    boot_failure_rate: float = 0.0  # of each boot, whatever the kernel
    failing_images: float = 0.0  # share of images that fail; layout 0 of the ends never does
    failing: float = 1.0  # share of the boots of such an image that fail
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
        crept = math.log1p(self.commit_creep) * np.arange(self.commits + 1) / self.commits
        self.shown = logs + crept  # of boots that show the steps
        self.hidden = crept  # of boots that do not
        # point -> log level against the good end, without layout; mean over boots
        self.truth = logs if not self.commit_creep else self.shown
        if self.effect_share < 1.0:
            self.truth = self.effect_share * logs + crept
        if self.path_steps:
            shares = np.array([self.path(i) for i in range(self.commits + 1)])
            slowed = np.log1p(shares * math.expm1(self.path_apart))
            self.truth = self.truth + slowed - slowed[0]

    @property
    def steps(self) -> dict[int, float]:
        """Commit -> effect, all of them."""
        first = {self.culprit: self.effect} if self.culprit is not None else {}
        return dict(sorted({**self.others, **first}.items()))

    def changes(self, least: float) -> list[int]:
        """Commits that may be named: those of the steps, those that change the noise,
        and any that creeps by `least` or more (log units).
        """
        crept = abs(math.log1p(self.commit_creep)) / self.commits
        if crept and crept >= least:
            return list(range(1, self.commits + 1))
        return sorted({*self.steps, *self.spread_steps, *self.path_steps})

    @property
    def spreads(self) -> tuple[float, float]:
        """Between runs of a boot and between boots, without wild runs and odd boots.

        Of recorded boots as plain sd.
        """
        if self.recorded:
            _, run, boot = _residuals(tuple(tuple(b) for b in self.recorded))
            return run, boot
        return self.run_noise, self.boot_noise

    @property
    def by_time(self) -> tuple[float, float, float, float]:
        """Sds of what moves the testbox: drift, days, modes of days, wandering."""
        modes = self.day_apart * math.sqrt(self.day_modes * (1.0 - self.day_modes))
        return self.drift, self.day_noise, modes, self.wander

    @property
    def sd(self) -> float:
        """Of one run in a boot of its own."""
        return math.hypot(*self.spreads)

    def path(self, idx: int) -> float:
        """Share of the runs of this kernel on the other path."""
        shares = [share for commit, share in sorted(self.path_steps.items()) if commit <= idx]
        return shares[-1] if shares else self.path_before

    def root(self, idx: int) -> int:
        return self.identical.get(idx, idx)

    def offset(self, idx: int, layout: int = 0) -> float:
        """What the layout of this kernel build adds to its log level."""
        root = self.root(idx)
        if layout == 0:
            smooth = float(self.layout[root])
        else:
            smooth = float(
                self._rng("layout", root, layout).normal(0.0, self.layout_noise or 1e-300)
            )
        if self.image_modes and self._rng("image", root, layout).random() < self.image_modes:
            return smooth - self.image_apart
        return smooth

    def fails(self, idx: int, layout: int = 0) -> bool:
        """Whether boots of this image fail, all or some of them."""
        root = self.root(idx)
        if not self.failing_images or (layout == 0 and root in (0, self.commits)):
            return False
        return bool(self._rng("fails", root, layout).random() < self.failing_images)

    def measured(self, idx: int, layout: int | None = None) -> float:
        """Log level of this kernel as many boots would measure it, layout None:
        without what the build adds.

        On a scale with a cap or with steps it is what comes through: a mean over 500 drawn boots.
        """
        built = 0.0 if layout is None else self.offset(idx, layout)
        if not self.quantum and math.isinf(self.cap):
            return float(self.truth[self.root(idx)]) + built
        rng, means = self._rng("scale"), []
        for _ in range(500):
            known = self.shown if rng.random() < self.effect_share else self.hidden
            level = math.log(self.level) + float(known[self.root(idx)]) + built
            means.append(self._scale(level + self._noise(rng, self.root(idx))).mean())
        return float(np.log(np.array(means)).mean()) - math.log(self.level)

    def boot(
        self, idx: int, k: int, layout: int = 0, testbox: int = 0, at: float = 0.0, order: int = 0
    ) -> tuple[tuple[float, ...], str | None]:
        """The runs of boot k of kernel idx at a time of the laboratory's clock,
        or why there are none.
        """
        idx = self.root(idx)
        if idx in self.broken:
            return (), "does not build: error: too few arguments"
        if idx in self.unbootable:
            return (), "panicked: unable to mount root"
        rng = (
            self._rng("boot", idx, k)
            if not (layout or testbox)
            else self._rng("boot", idx, k, layout, testbox)
        )
        if rng.random() < self.boot_failure_rate:
            return (), "hung: console went quiet"
        if self.fails(idx, layout) and (
            self._rng("sick", idx, k, layout, testbox).random() < self.failing
        ):
            return (), "panicked: general protection fault"
        known = self.shown if self.path_steps else self.truth
        if self.effect_share < 1.0:
            shows = self._rng("effect", idx, k, layout, testbox).random() < self.effect_share
            known = self.shown if shows else self.hidden
        level = (
            math.log(self.level)
            + float(known[idx])
            + self.offset(idx, layout)
            + self.at(at, testbox)
        )
        if self.pert_noise:
            level += float(self._rng("shift", k).normal(0.0, self.pert_noise))
        if self.wander:
            level += float(self._wanderings(testbox)[order % _WANDER_BOOTS])
        level += self.by_order(order, testbox)
        turned, self._last[testbox] = self._last.get(testbox, idx) != idx, idx
        noise = self._noise(rng, idx, self.path_after if turned else 1.0)
        return tuple(float(v) for v in self._scale(level + noise)), None

    def by_order(self, order: int, testbox: int = 0) -> float:
        """What the number of its boots so far adds to the log level of a testbox."""
        level = -self.sink * order - self.lost * (order >= self.lost_at)
        block = order // self.stuck_boots
        if self.stuck and self._rng("stuck", block, testbox).random() < self.stuck:
            level -= self.stuck_apart
        if self.low_every and order % self.low_every == self.low_every - 1:
            level -= self.stuck_apart
        return level

    def _scale(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the scale makes of log values: the metric's unit."""
        values: NDArray[np.float64] = np.minimum(np.exp(logs), self.cap)
        if self.quantum:
            values = np.maximum(np.round(values / self.quantum), 1.0) * self.quantum
        return values

    def _noise(
        self, rng: np.random.Generator, idx: int = 0, path: float = 1.0
    ) -> NDArray[np.float64]:
        """Of each run of one boot of this kernel, log units; `path` is a factor of its share."""
        louder = math.prod(f for commit, f in self.spread_steps.items() if commit <= idx)
        if self.unequal:
            louder *= math.exp(float(self._rng("loud", idx).normal(0.0, self.unequal)))
        if self.recorded:
            boots, run, between = _residuals(tuple(tuple(b) for b in self.recorded))
            drawn = boots[int(rng.integers(len(boots)))]
            picked = np.array([drawn[int(rng.integers(len(drawn)))] for _ in range(self.runs)])
            # smoothed: no value comes twice
            return louder * (
                picked
                + float(rng.normal(0.0, between / 5))
                + rng.normal(0.0, run / 5 + 1e-9, self.runs)
            )
        draw = SHAPES[self.shape]
        boot = louder * float(draw(rng, self.boot_noise or 1e-300, 1)[0])
        if rng.random() < self.heavy:
            boot -= float(rng.exponential(6.0 * max(self.boot_noise, self.run_noise)))
        if self.bimodal and rng.random() < self.bimodal:
            boot -= self.apart * self.sd
        noise: NDArray[np.float64] = boot + louder * draw(rng, self.run_noise or 1e-300, self.runs)
        if self.heavy_runs:
            lost = rng.exponential(6.0 * self.sd, self.runs)
            noise = noise - np.where(rng.random(self.runs) < self.heavy_runs, lost, 0.0)
        if self.path_steps or self.path_before:
            noise = noise + self.path_apart * (rng.random(self.runs) < path * self.path(idx))
        return noise

    def at(self, at: float, testbox: int = 0) -> float:
        """What the hour, the day and the testbox add to the log level of every kernel."""
        level = self.creep * at / DAY
        if self.testbox_noise:
            level += float(self._rng("box", testbox).normal(0.0, self.testbox_noise))
        if self.day_noise:
            level += float(
                self._rng("day", int(at // DAY) + 10_000, testbox).normal(0.0, self.day_noise)
            )
        if self.day_modes and (
            self._rng("mode", int(at // DAY) + 10_000, testbox).random() < self.day_modes
        ):
            level -= self.day_apart
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

    def _wanderings(self, testbox: int) -> NDArray[np.float64]:
        """What each boot of a testbox in the order of booting is off by:
        stationary, correlation wander_rho to the distance.
        """
        if testbox not in self._wandered:
            white = self._rng("wander", testbox).normal(0.0, self.wander, _WANDER_BOOTS)
            white[1:] *= math.sqrt(1.0 - self.wander_rho**2)
            self._wandered[testbox] = np.asarray(
                lfilter([1.0], [1.0, -self.wander_rho], white), dtype=np.float64
            )
        return self._wandered[testbox]

    @cached_property
    def _last(self) -> dict[int, int]:
        """Testbox -> the kernel that it booted last."""
        return {}

    @cached_property
    def _wandered(self) -> dict[int, NDArray[np.float64]]:
        return {}

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
