"""Comparisons of few boots where the noise record says how far boots spread. Seeded.

`python -m tests.calibration.test_recorded 10000 [WORLD ...]` prints the tables of
docs/calibration-results.md, "A noise record and few boots": equal kernels that get a direction, in
percent, and (without names of worlds) the power beside Welch's test.

The records are those of `estimate`, from boots of other kernels in the same world.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pytest

from swingbot.core.model.noise import PastBoot
from swingbot.core.plan.noise import estimate, sd_at_most
from swingbot.core.stats.compare import BootRuns, Rule, compare
from tests.calibration.power import power
from tests.calibration.test_comparisons import most

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Levels = Callable[[np.random.Generator, int], Array]  # logarithms of so many boots of one run
COMPARISONS_OF_A_RECORD: Final = 20
KERNELS: Final = 12  # of a record, three boots each


def modes(share: float, apart: float) -> Levels:
    """`share` of the boots are so many spreads of 1 % lower."""
    return lambda rng, boots: (
        rng.normal(0.0, 0.01, boots) - 0.01 * apart * (rng.random(boots) < share)
    )


WORLDS: Final[dict[str, Levels]] = {
    "one mode": modes(0.0, 0.0),
    "modes 50 %, 4 sd apart": modes(0.5, 4.0),
    "modes 50 %, 6 sd apart": modes(0.5, 6.0),
    "modes 50 %, 10 sd apart": modes(0.5, 10.0),
    "modes 50 %, 20 sd apart": modes(0.5, 20.0),
    "modes 30 %, 4 sd apart": modes(0.3, 4.0),
    "modes 30 %, 10 sd apart": modes(0.3, 10.0),
    "modes 20 %, 10 sd apart": modes(0.2, 10.0),
    "modes 10 %, 10 sd apart": modes(0.1, 10.0),
}


def limit(world: Levels, rng: np.random.Generator, kernels: int) -> float | None:
    """What a record of so many kernels says of the spread of boots."""
    boots = [
        PastBoot(
            code=str(kernel), image=str(kernel), day=str(kernel), k=k, shared=False, values=(value,)
        )
        for kernel in range(kernels)
        for k, value in enumerate(np.exp(world(rng, 3)).tolist())
    ]
    return sd_at_most(estimate(boots))


def directions(world: Levels, boots: int, comparisons: int, kernels: int = 0, seed: int = 1) -> int:
    """Equal kernels that are worse or better, any effect counting; 0 kernels: no record."""
    rng = np.random.default_rng([seed, boots, kernels])
    known: float | None = None
    found = 0
    for i in range(comparisons):
        if kernels and i % COMPARISONS_OF_A_RECORD == 0:
            known = limit(world, rng, kernels)
        rule = Rule(better="higher", min_effect_pct=0.0, sd_at_most=known)
        sides = [
            [BootRuns(k=k, values=(v,)) for k, v in enumerate((100.0 * side).tolist())]
            for side in np.exp([world(rng, boots), world(rng, boots)])
        ]
        found += compare(sides[0], sides[1], rule).verdict in ("worse", "better")
    return found


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("boots", [3, 4])
def test_modes_separate_few_boots_as_rarely_as_stated(world: str, boots: int) -> None:
    assert directions(WORLDS[world], boots, 1200, KERNELS) <= most(1200 * 0.005)


def test_a_record_of_one_mode_gives_three_boots_a_direction() -> None:
    """Eight spreads: Welch's test sees nearly all of them."""
    found = power(3, 1, 8.0, 200, kernels=KERNELS)
    assert found.found >= 0.95 * found.welch > 100
    assert power(3, 1, 8.0, 50).found == 0, "without a record"


@pytest.mark.parametrize(("boots", "effect"), [(4, 4.4), (5, 3.4)])
def test_a_record_costs_gaussian_boots_no_power(boots: int, effect: float) -> None:
    found = power(boots, 3, effect, 500, kernels=KERNELS)
    assert found.only_welch - found.only_found <= 0.01 * 500 + 4 * found.only_welch**0.5


def main(comparisons: int, names: Sequence[str]) -> None:
    print("| noise | boots a side | no record | a record |\n|---|---|---|---|")
    for name in names or WORLDS:
        for boots in (3, 4, 6):
            cells = [
                f"{100 * directions(WORLDS[name], boots, comparisons, kernels) / comparisons:.2f}"
                for kernels in (0, KERNELS)
            ]
            print(f"| {name} | {boots} | {' | '.join(cells)} |", flush=True)
    if names:
        return
    for boots, effect in ((3, 8.0), (4, 4.4), (6, 2.8), (10, 2.0)):
        cells = [str(power(boots, 3, effect, comparisons, kernels=k)) for k in (0, KERNELS)]
        print(f"| Gaussian, {effect} sd | {boots} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:])
