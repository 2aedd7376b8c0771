"""Families of worlds in which the engine has to be honest.

Each is drawn by its seed: commits, culprits and effects differ from world to world.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.worlds import RECORDED, Costs, SimulatedBench, recorded_boots


@dataclass(frozen=True, kw_only=True)
class Family:
    name: str
    make: Callable[[int], SimulatedBench]
    certainty: float = 12.0  # precision of the engine's noise record: +-15 %
    told_layout: float | None = None  # in place of the world's own
    told_days: bool = True  # whether it knows that the testbox's level moves from day to day
    told_modes: bool = False  # whether the noise record knows the two modes of its boots
    noise_factor: float = 1.0  # its run and boot spread as a multiple of the true one
    history: bool = False  # 50 earlier boots of each end
    paired: bool = False
    layouts: bool = False  # kernels can be rebuilt with another layout
    testboxes: int = 1
    min_effect_pct: float = 1.0
    costs: Costs = field(default_factory=Costs)
    full: int = 200


def world(
    *,
    sizes: tuple[float, float] = (0.04, 0.15),
    commits: tuple[int, int] = (2, 120),
    steps: int = 1,
    worse: float = 2 / 3,
    at: str = "anywhere",
    louder: float = 1.0,
    unbuildable: float = 0.0,
    unbootable: float = 0.0,
    block: int = 1,
    **noise: Any,
) -> Callable[[int], SimulatedBench]:
    """`sizes` in absolute log ratio, drawn evenly on a log scale, two in three for the worse.

    `at`: anywhere, first, last, or repaired (the second step undoes the first).
    The culprit multiplies run and boot noise by `louder`.
    Kernels fail alone or in blocks; the ends never do.
    """

    def make(seed: int) -> SimulatedBench:
        rng = np.random.default_rng([seed, 92])
        n = round(math.exp(rng.uniform(math.log(commits[0]), math.log(commits[1] + 0.49))))
        places = sorted(
            int(c) for c in rng.choice(np.arange(1, n + 1), min(steps, n), replace=False)
        )
        logs = [
            float(math.exp(rng.uniform(*np.log(sizes)))) * (-1.0 if rng.random() < worse else 1.0)
            for _ in places
        ]
        if at == "repaired" and len(places) == 2:
            logs[1] = -logs[0] * float(rng.uniform(0.3, 0.7))
        if at in ("first", "last") and places:
            places[0] = 1 if at == "first" else n
        table = {place: math.expm1(size) for place, size in zip(places, logs, strict=True)}
        first = places[0] if places else None
        return SimulatedBench(
            commits=n,
            culprit=first,
            effect=table.pop(first) if first is not None else 0.0,
            others=table,
            spread_steps={first: louder} if first is not None and louder != 1.0 else {},
            unbuildable=_some(rng, n, unbuildable, block),
            unbootable=_some(rng, n, unbootable, block),
            seed=seed,
            **{"runs": 1, **noise},
        )

    return make


def slow_runs(
    shares: tuple[float, float] = (0.05, 0.3),
    speeds: tuple[float, float] = (0.4, 0.9),
    commits: tuple[int, int] = (8, 24),
    before: float = 0.0,
    **noise: Any,
) -> Callable[[int], SimulatedBench]:
    """The culprit slows a share of the runs, one in `shares`, to a speed in `speeds`; the others
    stay as they are. `before`: as a share of that, the runs that were slow without it.
    """

    def make(seed: int) -> SimulatedBench:
        rng = np.random.default_rng([seed, 93])
        n, share = int(rng.integers(commits[0], commits[1] + 1)), float(rng.uniform(*shares))
        return SimulatedBench(
            commits=n,
            culprit=None,
            path_steps={int(rng.integers(1, n + 1)): share},
            path_before=before * share,
            path_apart=math.log(float(rng.uniform(*speeds))),
            seed=seed,
            **{"runs": 10, "run_noise": 0.01, **noise},
        )

    return make


def slow_boots(
    shares: tuple[float, float] = (0.05, 0.3), speeds: tuple[float, float] = (0.4, 0.9)
) -> Callable[[int], SimulatedBench]:
    """The culprit slows a share of the boots, one in `shares`, to a speed in `speeds`."""

    def make(seed: int) -> SimulatedBench:
        rng = np.random.default_rng([seed, 94])
        slowed = world(effect_share=float(rng.uniform(*shares)), sizes=(0.1, 0.1), **TIGHT)(seed)
        return replace(slowed, effect=float(rng.uniform(*speeds)) - 1.0)

    return make


def _some(rng: np.random.Generator, n: int, share: float, block: int) -> tuple[int, ...]:
    """Inner kernels, about this share of all, in runs of `block`."""
    starts = np.flatnonzero(rng.random(n + 1) < share / block)
    return tuple(sorted({int(s) + i for s in starts for i in range(block) if 1 <= s + i < n}))


def on_vm_tcg(metric: str) -> Callable[[int], SimulatedBench]:
    """Residuals of boots that were recorded there; effects from one to four spreads."""

    def make(seed: int) -> SimulatedBench:
        boots = recorded_boots(metric)
        sd = SimulatedBench(recorded=boots).sd
        return world(sizes=(sd, 4 * sd), commits=(2, 60), recorded=boots, runs=3)(seed)

    return make


BOOT: dict[str, Any] = {"run_noise": 0.02, "boot_noise": 0.02}
RUN: dict[str, Any] = {"run_noise": 0.02}
# 20 to 80 commits, exactly -5 %, three runs in a boot: where the engine was first seen to be wrong.
MANY: dict[str, Any] = {
    **BOOT,
    "runs": 3,
    "commits": (20, 80),
    "sizes": (math.log(1 / 0.95), math.log(1 / 0.95)),
    "worse": 1.0,
}
IMAGES: dict[str, Any] = {**MANY, "image_modes": 0.3, "image_apart": 0.04}
EMULATED: dict[str, Any] = {
    "run_noise": 0.002,
    "boot_noise": 0.0003,
    "layout_noise": 0.002,
    "pert_noise": 0.003,
    "runs": 2,
}

TIGHT: dict[str, Any] = {"run_noise": 0.01, "boot_noise": 0.01, "runs": 3, "commits": (8, 24)}

FAMILIES = [
    Family(name="run 2 %", make=world(**RUN)),
    Family(name="run 2 %, 0.5..2 x its spread", make=world(sizes=(0.012, 0.04), **RUN)),
    Family(name="run 2 % + boot 2 %", make=world(**BOOT)),
    Family(name="the same, 3 runs a boot", make=world(**{**BOOT, "runs": 3})),
    Family(
        name="the same, told half the spread", make=world(**BOOT), noise_factor=0.5, certainty=2.0
    ),
    Family(
        name="the same, told twice the spread", make=world(**BOOT), noise_factor=2.0, certainty=2.0
    ),
    Family(
        name="run 0.1 %, effects from 0.5 %",
        make=world(sizes=(0.005, 0.02), run_noise=0.001),
        min_effect_pct=0.3,
    ),
    Family(name="effects 20..50 %", make=world(sizes=(0.2, 0.69), **BOOT)),
    Family(name="10 % of runs wild", make=world(heavy_runs=0.1, **RUN)),
    Family(name="10 % of boots wild", make=world(heavy=0.1, **BOOT)),
    Family(name="30 % of boots 4 sd low", make=world(bimodal=0.3, **RUN)),
    Family(name="30 % of boots 8 sd low", make=world(bimodal=0.3, apart=8.0, **RUN)),
    Family(name="40 % of boots 5 sd high", make=world(bimodal=0.4, apart=-5.0, **RUN)),
    Family(name="45 % of boots 3 sd low", make=world(bimodal=0.45, apart=3.0, **RUN)),
    Family(name="layout 0.5 %", make=world(layout_noise=0.005, **RUN), layouts=True),
    Family(name="layout 1 %", make=world(layout_noise=0.01, **RUN), layouts=True),
    Family(name="layout 1 %, no rebuilds", make=world(layout_noise=0.01, **RUN)),
    Family(name="layout 2 %", make=world(layout_noise=0.02, **RUN), layouts=True),
    Family(
        name="layout 1 %, told 0.3 %",
        make=world(layout_noise=0.01, **RUN),
        layouts=True,
        told_layout=0.003,
    ),
    Family(
        name="layout 1 %, no culprit",
        make=world(layout_noise=0.01, steps=0, **RUN),
        layouts=True,
    ),
    Family(name="drift 2 %, an hour", make=world(drift=0.02, **RUN)),
    Family(name="drift 2 %, not told", make=world(drift=0.02, **RUN), told_days=False),
    Family(name="drift 2 %, history", make=world(drift=0.02, **RUN), history=True),
    Family(name="days differ by 2 %", make=world(day_noise=0.02, **BOOT), history=True),
    Family(name="creep of 10 % a day", make=world(creep=-0.1, **RUN)),
    Family(name="10 % unbuildable", make=world(unbuildable=0.1, **RUN)),
    Family(name="30 % unbootable in blocks of 4", make=world(unbootable=0.3, block=4, **RUN)),
    Family(name="a third of boots fail", make=world(boot_failure_rate=0.3, **RUN)),
    Family(name="two culprits", make=world(steps=2, **RUN)),
    Family(name="three culprits", make=world(steps=3, commits=(3, 120), **RUN)),
    Family(
        name="broken and half repaired",
        make=world(steps=2, at="repaired", sizes=(0.08, 0.2), **RUN),
    ),
    Family(name="no culprit", make=world(steps=0, **RUN)),
    Family(name="no culprit, run + boot", make=world(steps=0, **BOOT), min_effect_pct=2.0),
    Family(name="first commit", make=world(at="first", **RUN)),
    Family(name="last commit", make=world(at="last", **RUN)),
    Family(name="one or two commits", make=world(commits=(1, 2), **BOOT)),
    Family(name="10 000 commits", make=world(commits=(9000, 10_000), **RUN), full=60),
    Family(
        name="4 testboxes, levels apart",
        make=lambda s: replace(world(**BOOT)(s), testbox_noise=0.03),
        testboxes=4,
    ),
    Family(name="50 boots of each end before", make=world(**BOOT), history=True, certainty=50.0),
    Family(
        name="emulated, pairs",
        make=world(commits=(2, 30), unbuildable=0.08, **EMULATED),
        paired=True,
        certainty=0.75,
    ),
    Family(
        name="emulated, pairs, no culprit",
        make=world(commits=(2, 30), steps=0, **EMULATED),
        paired=True,
        certainty=0.75,
    ),
    Family(
        name="all troubles",
        make=world(steps=2, layout_noise=0.01, drift=0.02, unbootable=0.1, **RUN),
        layouts=True,
    ),
]
# One row each of "Difficult worlds" (docs/calibration-results.md): `difficult.py`.
DIFFICULT = [
    Family(
        name=f"30 % of images 4 % low{culprit}{rebuilt}",
        make=world(steps=steps, **IMAGES),
        told_layout=0.002,
        layouts=not rebuilt,
    )
    for culprit, steps in ((", no culprit", 0), (", -5 %", 1))
    for rebuilt in ("", ", no rebuilds")
] + [
    Family(name="-5 % and three times the noise", make=world(louder=3.0, **MANY)),
    Family(
        name="three times the noise, no other change",
        make=lambda s: replace(world(louder=3.0, **MANY)(s), effect=0.0),
    ),
    Family(name="50 % of boots 10 sd low", make=world(bimodal=0.5, apart=10.0, **MANY)),
    Family(
        name="50 % of boots 10 sd low, told",
        make=world(bimodal=0.5, apart=10.0, **MANY),
        told_modes=True,
    ),
    Family(name="-5 % in 60 % of boots", make=world(effect_share=0.6, **MANY)),
    Family(
        name="creep of -12 % over all commits, no culprit",
        make=world(commit_creep=-0.12, **{**MANY, "steps": 0}),
    ),
    Family(
        name="creep of -12 % over all commits and -5 %",
        make=world(commit_creep=-0.12, **MANY),
    ),
    Family(name="wandering testbox, 2 %", make=world(wander=0.02, **MANY)),
    Family(
        name="wandering testbox, 2 %, no culprit",
        make=world(wander=0.02, **{**MANY, "steps": 0}),
    ),
]
DIFFICULT += [
    Family(
        name="15 % of runs half as fast",
        make=slow_runs(shares=(0.15, 0.15), speeds=(0.5, 0.5), commits=(16, 16)),
    ),
    Family(name="5..30 % of runs slowed to 40..90 %", make=slow_runs(boot_noise=0.01)),
    Family(name="the same, a third of them before", make=slow_runs(before=0.33, boot_noise=0.01)),
    Family(
        name="5 % of runs slow, 15 % after another kernel, no culprit",
        make=lambda s: replace(
            world(steps=0, **{**TIGHT, "runs": 10})(s), path_before=0.05, path_after=3.0
        ),
    ),
]
DIFFICULT += [
    Family(
        name="-10 % in 60 % of boots",
        make=world(effect_share=0.6, sizes=(0.105, 0.105), worse=1.0, **TIGHT),
    ),
    Family(name="5..30 % of boots slowed to 40..90 %", make=slow_boots()),
]
FAMILIES += DIFFICULT
# What a testbox, a scale or an image may do beside a culprit of -5 %, and without one: too many
# for `make calibrate`.
EIGHT: dict[str, Any] = {**TIGHT, "sizes": MANY["sizes"], "worse": 1.0}
BESIDE: dict[str, dict[str, Any]] = {
    "modes stick for five boots": {"stuck": 0.3},
    "every second boot 5 % low": {"low_every": 2},
    "5 % lost for good at boot 20": {"lost": 0.05},
    "0.3 % lost at each boot": {"sink": 0.003},
    "each image off by 0.3 %": {"layout_noise": 0.003},
    "each image off by 1 %": {"layout_noise": 0.01},
    "each image off by 1 %, exact boots": {
        "layout_noise": 0.01,
        "run_noise": 1e-4,
        "boot_noise": 1e-4,
    },
    "steps of 0.2 % of the level": {"quantum": 2.0},
    "steps of 5 % of the level": {"quantum": 50.0},
    "a cap at the level": {"cap": 1000.0},
    "noise of kernels 0.4 to 2.7 times": {"unequal": 0.5},
    "Cauchy boots": {"shape": "cauchy"},
}
DIFFICULT += [
    Family(name=f"{name}{culprit}", make=world(steps=steps, **{**EIGHT, **noise}))
    for name, noise in BESIDE.items()
    for culprit, steps in ((", -5 %", 1), (", no culprit", 0))
]
if RECORDED.exists():
    FAMILIES += [
        Family(name=f"vm-tcg: {metric.split('.')[0]}", make=on_vm_tcg(metric), min_effect_pct=4.0)
        for metric in ("page-fault.per_process_ops",)
    ]
