"""Which repeated values are a bound of the scale, and what a boot at a bound says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from swingbot.core.bisect.posterior import mixture_likelihood
from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.posterior.mixture_noise import Theta
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.stats.bound import Bound, reached_bound
from tests.simulate import (
    SimulatedBench,
    a_state,
    bisect_to_the_end,
    known_noise,
    with_history,
)

Images = list[list[tuple[float, ...]]]
BELOW = [(993.81,), (989.12,), (1001.87,)]


def images(cap: float = np.inf, quantum: float = 0.0, boot_noise: float = 0.02) -> Images:
    """Twenty boots each of two kernels 5 % apart."""
    bench = SimulatedBench(
        commits=1, culprit=1, effect=-0.05, boot_noise=boot_noise, runs=2, cap=cap, quantum=quantum
    )
    return [[bench.boot(idx, k)[0] for k in range(20)] for idx in (0, 1)]


def test_a_value_that_whole_boots_reach_and_none_exceeds_is_a_bound() -> None:
    assert reached_bound(images(cap=1000.0)) == Bound(1000.0, upper=True)
    turned = [[tuple(-v for v in boot) for boot in boots] for boots in images(cap=1000.0)]
    assert reached_bound(turned) == Bound(-1000.0, upper=False)


def test_more_boots_at_a_bound_tell_it_from_coarser_digits() -> None:
    percent = [[(100.0,)] * 9 + [(99.97,), (99.46,), (98.81,), (99.12,), (99.46,)]]
    assert reached_bound(percent) is None  # others are equal too
    percent[0] += [(v,) for v in (99.71, 99.03, 98.6, 99.83, 98.52, 99.3, 98.9, 99.21, 99.6)]
    assert reached_bound(percent) == Bound(100.0, upper=True)


@pytest.mark.parametrize(
    "of",
    [
        images(),
        images(quantum=2.0),
        images(quantum=20.0),
        images(cap=1000.0, quantum=2.0),  # rounding may explain it
        images(boot_noise=0.0),  # boots that repeat exactly
        [[(1000.0,), *BELOW]],  # one boot
        [[(1000.0,), (1000.0,)], [*BELOW]],  # an exact kernel beside others
        [[(1000.0,), (1000.0,), (993.81,)], [(989.12,)]],  # too few others
        [[(1000.0,), (1000.0,), (980.0,), (990.0,)], [(960.0,)]],  # a coarse clock
        [[(100.0,)] * 3 + [(99.97,), (99.46,), (98.81,), (99.12,)]],  # too few for two digits
        [],
    ],
)
def test_values_that_repeat_for_another_reason_are_no_bound(of: Images) -> None:
    assert reached_bound(of) is None


@pytest.mark.parametrize("upper", [True, False])
def test_a_boot_at_a_bound_has_the_probability_of_all_that_is_beyond(upper: bool) -> None:
    kind = Theta(0.02, 0.0, 0.1, 8.0, 1.5)
    levels = np.linspace(-0.1, 0.1, 41)
    density = mixture_likelihood._BootDensity.of([kind], np.float64)
    found = density.ln_beyond(0.01 - levels, upper)[0]
    tail = norm.sf if upper else norm.cdf
    z = (0.01 - levels) / kind.spread
    p = (1 - kind.wild) * tail(z) + kind.wild * tail((z - kind.apart) / kind.width)
    assert found == pytest.approx(np.log(p), rel=1e-6)


@pytest.mark.parametrize("seed", [0, 2, 3, 5])
def test_boots_at_a_bound_are_no_more_alike_than_the_share_that_reaches_it(seed: int) -> None:
    """Six boots in ten of the good end are at the bound, and those of the upper mode of the bad
    one. Three boots there are 0.1 to 0.4 times as likely behind the step, not 10 000 times."""
    bench = SimulatedBench(
        commits=8,
        culprit=3,
        run_noise=0.02,
        boot_noise=0.002,
        bimodal=0.45,
        apart=-9.0,
        cap=1009.5,
        runs=2,
        seed=seed,
    )
    state = with_history(bench, a_state(bench, noise=known_noise(bench, 2.0)))
    ks = range(100, 200)
    for idx, at in ((3, True), (4, False)):
        asked = ((k, bench.boot(idx, k)[0]) for k in ks)
        picked = [(k, runs) for k, runs in asked if (set(runs) == {1009.5}) == at][:3]
        seen = tuple(
            Observation(idx=idx, k=k, values=runs, phase="search", at=float(k))
            for k, runs in picked
        )
        state = replace(state, observations=state.observations + seen)
    case = assess(state, Policy())
    assert case.ev.bound == Bound(1009.5, upper=True)
    commit = case.posterior.commit
    assert 0.1 < float(commit[1:4].sum() / commit[4]) < 3.0


@pytest.mark.parametrize(
    "values",
    [
        (1e308, 1e308, -1e308, -1.1e308, -1.2e308),
        (5.0, 5.0, 5e-324, 1.0, 2.0),
        (1e100, 1e100, 1e-300, 2e-300, 3e-300),
        (0.0, 0.0, 5e-324, 1e-323, 2e-323),
    ],
)
def test_values_at_the_ends_of_what_numbers_hold_are_judged(values: tuple[float, ...]) -> None:
    found = reached_bound([[(value,) for value in values]])
    assert found is None or found.value == values[0]


def ended(cap: float) -> tuple[str, str]:
    """The good end's level is 1000, and the bad end 10 % beyond it."""
    bench = SimulatedBench(commits=8, culprit=3, effect=0.1, run_noise=0.02, runs=1, cap=cap)
    state = with_history(bench, a_state(bench, min_effect_pct=3.0))
    said = bisect_to_the_end(bench, state).conclusion
    return said.kind, said.reason


def test_ends_at_a_bound_are_neither_alike_nor_stuck() -> None:
    kind, reason = ended(cap=990.0)
    assert kind == "inconclusive"
    assert reason.startswith("88 of 100 boots of the ends are at 990, and none is above"), reason


def test_what_does_not_come_through_a_bound_is_no_change() -> None:
    assert ended(cap=1010.0)[0] == "not_reproduced"


def test_a_culprit_says_how_many_boots_are_at_a_bound() -> None:
    kind, reason = ended(cap=1060.0)
    assert kind == "culprit"
    assert "boots are at 1060, and none is above: no change shows there" in reason
