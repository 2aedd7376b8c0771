"""Are verdicts and intervals of comparisons right as often as they say? Seeded.

`python -m tests.calibration.test_comparisons 20000` prints the table, `... 20000 shares` the one of
an effect that only some boots show.

The worlds share no code with the comparison: plain draws of runs in boots.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from swingbot.core.stats.compare import BootRuns, Rule, compare
from tests.calibration import power

Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Noise = Callable[[np.random.Generator, int, int], Values]


def _gauss(rng: np.random.Generator, boots: int, runs: int) -> Values:
    return rng.normal(0, 0.02, (boots, runs))


def _nested(rng: np.random.Generator, boots: int, runs: int) -> Values:
    return rng.normal(0, 0.02, (boots, runs)) + rng.normal(0, 0.02, (boots, 1))


def _wild_runs(rng: np.random.Generator, boots: int, runs: int) -> Values:
    """One run in ten loses six spreads on average."""
    return rng.normal(0, 0.02, (boots, runs)) - 0.12 * rng.exponential(1, (boots, runs)) * (
        rng.random((boots, runs)) < 0.1
    )


def _wild_boots(rng: np.random.Generator, boots: int, runs: int) -> Values:
    return (
        rng.normal(0, 0.005, (boots, runs))
        + rng.normal(0, 0.02, (boots, 1))
        - 0.12 * rng.exponential(1, (boots, 1)) * (rng.random((boots, 1)) < 0.1)
    )


def _student(rng: np.random.Generator, boots: int, runs: int) -> Values:
    return rng.normal(0, 0.005, (boots, runs)) + 0.01 * rng.standard_t(2, (boots, 1))


def _two_modes(rng: np.random.Generator, boots: int, runs: int) -> Values:
    """Three boots in ten are four spreads lower."""
    return (
        rng.normal(0, 0.01, (boots, runs))
        + rng.normal(0, 0.01, (boots, 1))
        - 0.04 * (rng.random((boots, 1)) < 0.3)
    )


def _far_modes(rng: np.random.Generator, boots: int, runs: int) -> Values:
    """Half of the boots are ten spreads of a run lower."""
    return rng.normal(0, 0.01, (boots, runs)) - 0.105 * (rng.random((boots, 1)) < 0.5)


def _percentile(percent: float, of: int, latency: Callable[[Values], Values]) -> Noise:
    """Each run is the percentile of `of` latencies, boots spread by 2 % more.

    `latency`: the inverse of its distribution. The k-th of n uniform values follows Beta(k, n-k+1).
    """
    k = math.ceil(of * percent / 100)

    def noise(rng: np.random.Generator, boots: int, runs: int) -> Values:
        levels = latency(rng.beta(k, of - k + 1, (boots, runs)))
        return np.log(levels) + rng.normal(0, 0.02, (boots, 1))

    return noise


def _power_law(share: Values) -> Values:
    """P(latency > x) = x^-1.5: without a variance."""
    return (1 - share) ** (-1 / 1.5)


def _slow_path(share: Values) -> Values:
    """One request in a hundred is 20 times as slow: the 99th percentile is of either kind."""
    fast = -np.log1p(-np.minimum(share / 0.99, 1 - 1e-12))
    slow = -np.log(np.maximum((1 - share) / 0.01, 1e-12))
    return np.where(share < 0.99, fast, 20 * (1 + np.maximum(slow, 0)))


LATENCIES: dict[str, Noise] = {
    "p50 of 1000, tail x^-1.5": _percentile(50, 1000, _power_law),
    "p99 of 1000, tail x^-1.5": _percentile(99, 1000, _power_law),
    "p99.9 of 10 000, tail x^-1.5": _percentile(99.9, 10_000, _power_law),
    "p99 of 10 000, 1 % of them 20 x as slow": _percentile(99, 10_000, _slow_path),
}
# Fewer values beyond than `has_enough` asks for: printed, not promised.
TOO_FEW: dict[str, Noise] = {"p99.9 of 1000, tail x^-1.5": _percentile(99.9, 1000, _power_law)}
WORLDS: dict[str, Noise] = {
    "run 2 %": _gauss,
    "run 2 % + boot 2 %": _nested,
    "wild runs": _wild_runs,
    "wild boots": _wild_boots,
    "boots t with 2 df": _student,
    "two modes": _two_modes,
    "modes 50 %, 10 sd apart": _far_modes,
}
LOUDER = {"base 3 x as noisy": 3.0, "base 10 x as noisy": 10.0}  # run 2 % + boot 2 % on base
SIZES = (
    (3, 3, 1),
    (4, 4, 3),
    (5, 5, 1),
    (6, 6, 4),
    (10, 10, 1),
    (20, 20, 2),
    (4, 8, 2),
    (4, 10, 1),
)
# Four boots a side fall into different modes altogether in 2 / 4^4; and a spread of four that is
# small by chance governs.
STATED = 0.005
STATED_FOUR = 0.01


@dataclass(frozen=True, kw_only=True)
class Tally:
    comparisons: int
    directions: int  # worse or better
    invalid: int
    robust: int
    covered: int  # of all that have an interval
    intervals: int


def tally(
    noise: Noise,
    base: int,
    head: int,
    runs: int,
    comparisons: int,
    *,
    change: float = 0.0,
    share: float = 1.0,
    paired: bool = False,
    louder: float = 1.0,
    seed: int = 0,
) -> Tally:
    """Compare kernels that differ by the log ratio `change`, any effect counting.

    `share`: of the boots of head that show the change; intervals shall then hold that of the mean.

    Paired: what both sides share is 3 %.

    `louder`: base is so many times as noisy as head; its noise is that of the world.
    """
    rng = np.random.default_rng([seed, base, head, runs])
    rule = Rule(better="higher", min_effect_pct=0.0, paired=paired)
    verdicts: Counter[str] = Counter()
    robust = covered = intervals = 0
    true = 100.0 * share * math.expm1(change)
    for _ in range(comparisons):
        shown = change if share == 1.0 else change * (rng.random((head, 1)) < share)
        shared = (
            rng.normal(0, 0.03, (max(base, head), 1)) if paired else np.zeros((max(base, head), 1))
        )
        row = compare(
            _boots(noise(rng, base, runs) + shared[:base]),
            _boots(noise(rng, head, runs) / louder + shared[:head] + shown),
            rule,
        )
        verdicts[row.verdict] += 1
        robust += row.level is not None
        if row.interval_pct is not None:
            intervals += 1
            covered += row.interval_pct[0] <= true <= row.interval_pct[1]
    directions = verdicts["worse"] + verdicts["better"]
    return Tally(
        comparisons=comparisons,
        directions=directions,
        invalid=verdicts["invalid"],
        robust=robust,
        covered=covered,
        intervals=intervals,
    )


def _boots(logs: Values) -> list[BootRuns]:
    return [
        BootRuns(k=k, values=tuple(float(v) for v in 100 * np.exp(row)))
        for k, row in enumerate(logs)
    ]


def most(expected: float) -> float:
    """Four standard errors above what is expected: one honest cell in 30 000 exceeds it."""
    return expected + 4 * math.sqrt(expected)


@pytest.mark.parametrize("world", WORLDS | LATENCIES)
@pytest.mark.parametrize(
    ("boots", "runs", "paired"),
    [(4, 2, False), (6, 4, False), (10, 1, False), (5, 2, True)],
)
def test_equal_kernels_get_a_direction_as_rarely_as_stated(
    world: str, boots: int, runs: int, paired: bool
) -> None:
    found = tally((WORLDS | LATENCIES)[world], boots, boots, runs, 1200, paired=paired)
    stated = STATED_FOUR if boots == 4 else STATED
    assert found.directions <= most(1200 * stated)
    assert found.invalid <= most(1200 * 0.002)
    assert found.covered >= found.intervals - most(found.intervals * 0.05)


@pytest.mark.parametrize(("base", "head"), [(2, 20), (3, 10), (20, 4)])
def test_sides_of_unequal_size_raise_no_more_alarms(base: int, head: int) -> None:
    assert tally(_nested, base, head, 2, 1200).directions <= most(1200 * STATED)


@pytest.mark.parametrize("louder", [3.0, 10.0])
@pytest.mark.parametrize(("base", "head"), [(3, 3), (6, 6), (3, 12), (4, 8)])
def test_a_noisier_side_raises_no_more_alarms(base: int, head: int, louder: float) -> None:
    found = tally(_nested, base, head, 1, 1200, louder=louder)
    assert found.directions <= most(1200 * (STATED_FOUR if min(base, head) == 4 else STATED))


@pytest.mark.parametrize("boots", [6, 10])
def test_intervals_hold_an_effect_that_some_of_the_boots_show(boots: int) -> None:
    """-5 % in 60 % of the boots, which spread by 2 %."""
    found = tally(_nested, boots, boots, 3, 500, change=math.log(0.95), share=0.6)
    assert found.intervals == 500
    assert found.covered >= 500 - most(500 * 0.07)


@pytest.mark.parametrize("world", ["wild runs", "wild boots"])
def test_wild_values_cost_little_power(world: str) -> None:
    """5 % at 10 boots a side: plain means see less than half of these."""
    assert tally(WORLDS[world], 10, 10, 2, 300, change=-0.05).directions >= 0.65 * 300


@pytest.mark.parametrize(("boots", "effect"), power.SIZES)
def test_gaussian_boots_are_told_apart_as_often_as_by_welchs_test(
    boots: int, effect: float
) -> None:
    """Within a point, four standard errors of the discordant comparisons aside."""
    found = power.power(boots, 3, effect, 500)
    assert 0.7 * 500 <= found.welch <= 0.97 * 500  # neither hopeless nor certain
    assert found.only_welch - found.only_found <= 0.01 * 500 + 4 * math.sqrt(found.only_welch)


def in_some_boots(comparisons: int) -> None:
    """Print how often intervals hold an effect that 60 % of the boots of head show."""
    print(
        "| effect | boots a side x runs | direction % | 95 % interval covers % |\n|---|---|---|---|"
    )
    for effect in (-0.05, -0.2):
        for boots in (4, 6, 10):
            found = tally(
                _nested, boots, boots, 3, comparisons, change=math.log1p(effect), share=0.6, seed=1
            )
            covers = 100 * found.covered / max(found.intervals, 1)
            share = 100 * found.directions / comparisons
            print(f"| {100 * effect:g} % | {boots} x 3 | {share:.1f} | {covers:.1f} |", flush=True)


def main(comparisons: int) -> None:
    print(
        "| noise | boots base / head x runs | direction % (promised:"
        " 0.5) | invalid % | robust level % | 95 % interval covers % |"
    )
    print("|---|---|---|---|---|---|")
    worlds = [(world, noise, 1.0) for world, noise in (WORLDS | LATENCIES | TOO_FEW).items()]
    worlds += [(world, _nested, louder) for world, louder in LOUDER.items()]
    for world, noise, louder in worlds:
        for base, head, runs in SIZES:
            found = tally(noise, base, head, runs, comparisons, louder=louder, seed=1)
            shares = [
                100 * n / comparisons for n in (found.directions, found.invalid, found.robust)
            ]
            covers = 100 * found.covered / max(found.intervals, 1)
            print(
                (
                    f"| {world} | {base} / {head} x {runs} | {shares[0]:.2f} | {shares[1]:.2f} |"
                    f" {shares[2]:.1f} | {covers:.1f} |"
                ),
                flush=True,
            )


if __name__ == "__main__":
    (in_some_boots if sys.argv[2:] == ["shares"] else main)(
        int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    )
