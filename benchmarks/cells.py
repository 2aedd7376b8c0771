"""The cells of the benchmark: families of worlds, and the knowledge of the engine about them.

Every world is repeatable by its seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from swingbot.core.bisect.thresholds import Policy
from tests.worlds import SimulatedBench

Make = Callable[[int], SimulatedBench]
# A budget far above the needs of a bounded cell. The troubled cells have that of the service:
# a search for two changes that cancel each other out would never end.
PATIENT = Policy(max_boots=1500, max_end_boots=400)


@dataclass(frozen=True, kw_only=True)
class Cell:
    name: str
    make: Make
    bounded: bool = True  # whether the bound means anything: layout and drift are left out of it
    layouts: bool = False  # kernels can be built with another layout
    testboxes: int = 1
    ahead: int = 0  # kernels that idle build workers build before they are asked for
    table: bool = True  # in the table of targets; others run by --cell or --full
    peers: bool = True
    policy: Policy = PATIENT


def plain(
    effect: float,
    *,
    commits: int = 100,
    run_noise: float = 0.0,
    boot_noise: float = 0.0,
    heavy_runs: float = 0.0,
    bimodal: float = 0.0,
) -> Make:
    """One culprit anywhere.

    `effect` is the log ratio (-0.05), as the bound has it, one run a boot.
    """

    def make(seed: int) -> SimulatedBench:
        rng = np.random.default_rng([seed, 90])
        return SimulatedBench(
            commits=commits,
            culprit=int(rng.integers(1, commits + 1)),
            effect=math.expm1(effect),
            runs=1,
            seed=seed,
            run_noise=run_noise,
            boot_noise=boot_noise,
            heavy_runs=heavy_runs,
            bimodal=bimodal,
        )

    return make


def troubled(
    *, layout: float = 0.0, drift: float = 0.0, two: float = 0.0, unbootable: float = 0.0
) -> Make:
    """-5 %, run 2 %, each trouble with its probability, at least one of them:
    layout 1 %, drift 2 %, a second culprit, 10 % unbootable.
    """

    def make(seed: int) -> SimulatedBench:
        rng = np.random.default_rng([seed, 91])
        chances = np.array([layout, drift, two, unbootable])
        has = np.zeros(4, bool)
        while not has.any():
            has = rng.random(4) < chances
        first, second = (int(c) for c in rng.choice(np.arange(1, 101), 2, replace=False))
        size = float(rng.uniform(0.03, 0.08)) * (-1.0 if rng.random() < 0.5 else 1.0)
        dead = tuple(int(i) for i in range(1, 100) if rng.random() < 0.10)
        return SimulatedBench(
            commits=100,
            culprit=first,
            effect=math.expm1(-0.05),
            others={second: math.expm1(size)} if has[2] else {},
            run_noise=0.02,
            layout_noise=0.01 if has[0] else 0.0,
            drift=0.02 if has[1] else 0.0,
            unbootable=dead if has[3] else (),
            runs=1,
            seed=seed,
        )

    return make


def on_testboxes(make: Make) -> Make:
    """The same worlds in a group of testboxes with different levels."""
    return lambda seed: replace(make(seed), testbox_noise=0.03)


AHEAD = 15
# the same worlds; on one testbox its level does not matter
ONE_TESTBOX, FOUR_TESTBOXES = ("1 testbox", "4 testboxes")
CELLS = [
    Cell(name="gauss -5 %", make=plain(-0.05, run_noise=0.02)),
    Cell(name="boot -5 %", make=plain(-0.05, run_noise=0.02, boot_noise=0.02)),
    Cell(name="gauss -2 %", make=plain(-0.02, run_noise=0.02)),
    Cell(name="boot -18 %", make=plain(-0.18, run_noise=0.02, boot_noise=0.02)),
    Cell(name="heavy -5 %", make=plain(-0.05, run_noise=0.02, heavy_runs=0.1)),
    Cell(
        name="mixed",
        make=troubled(layout=0.5, drift=0.5, two=0.5, unbootable=0.5),
        bounded=False,
        layouts=True,
        policy=Policy(),
    ),
    Cell(
        name=ONE_TESTBOX,
        make=plain(-0.05, run_noise=0.02, boot_noise=0.02),
        ahead=AHEAD,
        peers=False,
    ),
    Cell(
        name=FOUR_TESTBOXES,
        make=on_testboxes(plain(-0.05, run_noise=0.02, boot_noise=0.02)),
        testboxes=4,
        ahead=AHEAD,
        peers=False,
    ),
    Cell(
        name="layout 1 %",
        make=troubled(layout=1.0),
        bounded=False,
        layouts=True,
        table=False,
        policy=Policy(),
    ),
    Cell(name="drift 2 %", make=troubled(drift=1.0), bounded=False, table=False, policy=Policy()),
    Cell(name="two culprits", make=troubled(two=1.0), bounded=False, table=False, policy=Policy()),
    Cell(
        name="unbootable 10 %",
        make=troubled(unbootable=1.0),
        bounded=False,
        table=False,
        policy=Policy(),
    ),
    Cell(
        name="all four",
        make=troubled(layout=1.0, drift=1.0, two=1.0, unbootable=1.0),
        bounded=False,
        layouts=True,
        table=False,
        policy=Policy(),
    ),
    Cell(name="boot -2 %", make=plain(-0.02, run_noise=0.02, boot_noise=0.02), table=False),
    Cell(name="heavy -18 %", make=plain(-0.18, run_noise=0.02, heavy_runs=0.1), table=False),
    Cell(name="bimodal -5 %", make=plain(-0.05, run_noise=0.02, bimodal=0.3), table=False),
    Cell(
        name="gauss -5 %, n = 10 000",
        make=plain(-0.05, run_noise=0.02, commits=10_000),
        table=False,
    ),
]
