"""A history of numbers: what it says of the next one, whatever wild values, creep or likeness of
neighbours it has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from swingbot.core.stats.findings import look
from swingbot.core.stats.findings_text import tell
from swingbot.core.stats.history import Array, baseline, neighbours_alike, robust_sd, sd_between


def wandering(rng: np.random.Generator, n: int, alike: float) -> Array:
    away = [float(rng.normal())]
    for _ in range(n - 1):
        away.append(alike * away[-1] + (1 - alike**2) ** 0.5 * float(rng.normal()))
    return np.array(away)


def test_the_spread_is_the_standard_deviation_of_gaussian_values() -> None:
    values = np.random.default_rng(1).normal(0.0, 0.02, 20_000)
    assert robust_sd(values) == pytest.approx(0.02, rel=0.02)


def test_wild_values_hardly_move_the_spread() -> None:
    values = np.random.default_rng(2).normal(0.0, 0.02, 2000)
    values[::10] -= 1.0
    assert robust_sd(values) < 1.4 * 0.02


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.8])
def test_the_likeness_of_neighbours_is_estimated(alike: float) -> None:
    rng = np.random.default_rng(3)
    found = [neighbours_alike(wandering(rng, 100, alike)) for _ in range(100)]
    assert np.mean(found) == pytest.approx(alike, abs=0.08)


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.8])
def test_the_next_level_of_a_testbox_that_wanders_is_expected_where_it_comes(alike: float) -> None:
    rng, worlds = np.random.default_rng(4), 2000
    odd = 0
    for _ in range(worlds):
        levels = wandering(rng, 31, alike)
        expected = baseline(levels[:-1])
        odd += expected.p(float(levels[-1]) - expected.centre) < 0.01
    assert odd <= 0.02 * worlds


def test_a_creep_is_no_noise_and_a_testbox_that_wanders_is() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(0.0, 1.0, 100)
    creep = noise + 0.2 * np.arange(100)
    assert sd_between(creep, 30) == pytest.approx(sd_between(noise, 30), rel=0.1)
    levels = wandering(rng, 100, 0.9)
    assert sd_between(levels, 30) > 1.5 * sd_between(levels, 1)


def test_a_history_without_any_spread_is_no_infinite_certainty() -> None:
    expected = baseline(np.full(30, 5.0))
    assert expected.centre == 5.0
    assert expected.sd >= 1e-4
    assert neighbours_alike(np.zeros(30)) == 0.0


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: np.round(rng.normal(50.0, 0.5, 80)),
        lambda rng: np.round(rng.normal(50.3, 0.3, 80)),
        lambda rng: 1000.0 / np.round(rng.normal(50.3, 0.5, 80)),
        lambda rng: np.round(np.minimum(rng.normal(99.8, 1.5, 80), 100.0)),
        lambda rng: np.minimum(rng.normal(99.8, 0.5, 80), 100.0),
    ],
    ids=["whole numbers", "mostly equal", "ticks of a clock", "rounded at a bound", "at a bound"],
)
def test_rounded_noise_has_neither_steps_nor_modes(
    draw: Callable[[np.random.Generator], Array],
) -> None:
    found = [look(draw(np.random.default_rng(seed)).tolist()) for seed in range(60)]
    assert sum(bool(f.changes or f.mode_changes or f.modes) for f in found) <= 6
    assert sum(f.noise_pct < 0.2 for f in found) <= 1  # two levels alone may be modes


def test_a_step_of_rounded_values_is_found() -> None:
    rng = np.random.default_rng(3)
    found = look(
        np.round(np.concatenate([rng.normal(50, 0.5, 40), rng.normal(52, 0.5, 40)])).tolist()
    )
    (change,) = found.changes
    assert change.first <= 40 <= change.last
    assert change.low_pct is not None
    assert change.high_pct is not None
    assert change.low_pct < 4.0 < change.high_pct


def test_levels_that_repeat_exactly_are_not_spread() -> None:
    assert [level.mean for level in look([50.0] * 20 + [51.0] * 20).levels] == [50.0, 51.0]


def test_levels_of_rounded_noise_are_the_means_of_the_values() -> None:
    values = np.round(np.random.default_rng(7).normal(50.0, 0.5, 80))
    (level,) = look(values.tolist()).levels
    assert level.mean == pytest.approx(values.mean(), rel=1e-12)


@pytest.mark.parametrize("zeros_first", [True, False])
def test_zeros_beside_counts_are_exact(zeros_first: bool) -> None:
    steps = 0
    for seed in range(30):
        counts = np.random.default_rng(seed).integers(3, 10, 20)
        values = np.concatenate([np.zeros(20), counts] if zeros_first else [counts, np.zeros(20)])
        found = look(values.tolist())
        assert found.spread is None
        beside = [change for change in found.changes if change.first <= 20 <= change.last]
        for change in beside:
            assert (change.before if zeros_first else change.after) == pytest.approx(0.0, abs=1e-9)
        steps += len(beside)
    assert steps >= 15


def test_percentages_of_a_history_have_no_exponent() -> None:
    values = [float(n % 3 == 0) for n in range(60)]
    first = tell(look(values), [str(n) for n in range(60)])[0]
    noise = first.split("noise ")[1].split(" %")[0]
    assert float(noise) > 100.0
    assert "e" not in noise


@pytest.mark.parametrize("unit", [1.0, 5.0])
def test_a_level_without_noise_is_one_in_any_unit(unit: float) -> None:
    noisy = np.random.default_rng(1).normal(1.5, 0.1, 20)
    found = look((unit * np.concatenate([np.ones(20), noisy])).tolist())
    assert found.spread is not None
    assert found.spread.at == 20
