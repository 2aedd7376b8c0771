"""The tables of likelihoods are the sums that they stand for, however they are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from swingbot.core.bisect.posterior import mixture_likelihood, mixture_noise
from swingbot.core.bisect.posterior.mixture_noise import BootColumns, Theta, thetas_of
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.noise import NoisePrior

LEVELS = np.linspace(-0.3, 0.3, 301)


def gaussian(apart: np.ndarray, sigma: float) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * (apart / sigma) ** 2))


def peaks(sigma: float) -> np.ndarray:
    """(kind, image, level): narrow likelihoods, each with 1 as its largest."""
    at = np.array([[20, 150], [280, 3]])
    return gaussian(np.arange(301) - at[:, :, None], sigma)


@pytest.mark.parametrize("sigma", [0.7, 4.9, 5.0, 27.0, 90.0])
def test_a_wide_convolution_is_that_of_the_matrix(sigma: float) -> None:
    apart = np.subtract.outer(np.arange(301), np.arange(301))
    density = gaussian(apart, sigma) / (sigma * np.sqrt(2 * np.pi))
    found = mixture_likelihood._far(peaks(1.5), sigma)
    assert found == pytest.approx(peaks(1.5) @ density, rel=1e-11, abs=1e-250)


@pytest.mark.parametrize("sigma", [0.3, 2.0, 21.0, 80.0])
def test_a_layout_is_a_convolution_that_is_cut_at_five_sd(sigma: float) -> None:
    reach = int(5 * sigma + 0.5)
    whole = gaussian(np.arange(-reach, reach + 1), sigma)
    apart = np.abs(np.subtract.outer(np.arange(301), np.arange(301)))
    density = np.where(apart <= reach, gaussian(apart, sigma), 0.0) / whole.sum()
    found = mixture_likelihood._smeared(peaks(1.5), sigma)
    assert found == pytest.approx(peaks(1.5) @ density, rel=1e-12, abs=1e-250)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_a_boot_is_gaussian_with_a_share_of_wild_ones(dtype: Any, digits: float) -> None:
    x = np.array([0.01, -0.02, 0.05])
    kinds = [Theta(0.02, 0.0, 0.1, 8.0, 0.0), Theta(0.03, 0.0, 0.4, 1.2, -3.0)]
    found = mixture_likelihood._BootDensity.of(kinds, dtype).ln(x[:, None, None] - LEVELS)
    for i, kind in enumerate(kinds):
        z = (x[:, None] - LEVELS) / kind.spread
        wild = gaussian(z - kind.apart, kind.width) / kind.width
        ln = np.log(((1 - kind.wild) * gaussian(z, 1) + kind.wild * wild) / kind.spread)
        assert found[:, i] == pytest.approx(ln, rel=digits, abs=digits)


def boots(x: list[float], node: list[int], point: list[int], positions: list[int]) -> BootColumns:
    return BootColumns(
        np.array(positions), np.array(point), np.array(node), np.array(x), 0.02, 0.02, 0.1, 2.0
    )


def test_a_position_has_the_product_of_its_images_whatever_was_kept() -> None:
    columns = boots([0.01, -0.02, 0.05, 0.30, 0.07], [0, 0, 1, 1, 2], [0, 0, 1], [0, 4])
    noise = NoisePrior(sd_run=0.02, sd_layout=0.01, certainty=12.0)
    of = thetas_of(columns, noise, Policy())
    grid = mixture_likelihood.level_grid(columns, of)
    mixture_likelihood._KEPT.clear()
    first, last = mixture_likelihood.position_likelihoods(columns, of, grid)
    alone = boots([0.01, -0.02, 0.07], [0, 0, 1], [0, 1], [0, 4])
    mixture_likelihood._KEPT.clear()
    image, same = mixture_likelihood.position_likelihoods(alone, of, grid)
    other = boots([0.05, 0.30, 0.07], [0, 0, 1], [0, 1], [0, 4])
    rest, again = mixture_likelihood.position_likelihoods(other, of, grid)
    for theta in range(len(of.thetas.each)):
        whole = image.of(theta) + rest.of(theta)
        assert first.of(theta) == pytest.approx(whole, rel=1e-5, abs=1e-4)
        assert last.of(theta).tolist() == same.of(theta).tolist() == again.of(theta).tolist()


def test_one_more_boot_of_many_leaves_levels_and_spreads_as_they_are() -> None:
    noise = NoisePrior(sd_run=0.02, certainty=12.0)
    changes, before = 0, None
    for seen in range(20, 60):
        node = np.arange(seen) % 6
        order = np.argsort(node, kind="stable")
        x = np.random.default_rng(3).normal(0.0, 0.02, 60)[:seen][order]
        columns = boots(x.tolist(), node[order].tolist(), list(range(6)), list(range(6)))
        known = mixture_noise._known_spread(x, columns.node, 0.02, 12.0)
        columns = replace(columns, spread=known[0], error=known[1], df=known[2])
        of = thetas_of(columns, noise, Policy())
        now = of.thetas, mixture_likelihood.level_grid(columns, of)
        changes += now != before
        before = now
    assert changes < 25


def test_more_images_than_are_kept_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-0.05, 0.05, 12).tolist()
    columns = boots(x, list(range(12)), list(range(12)), list(range(12)))
    of = thetas_of(columns, NoisePrior(sd_run=0.02, certainty=12.0), Policy())
    grid = mixture_likelihood.level_grid(columns, of)
    monkeypatch.setattr(mixture_likelihood, "_MOST_KEPT", 1)
    mixture_likelihood._KEPT.clear()
    first = mixture_likelihood.position_likelihoods(columns, of, grid)
    again = mixture_likelihood.position_likelihoods(columns, of, grid)
    assert all(a is b for a, b in zip(first, again, strict=True))  # those of a step are all kept
    few = boots(x[:2], [0, 1], [0, 1], [0, 1])
    mixture_likelihood.position_likelihoods(few, of, grid)
    third = mixture_likelihood.position_likelihoods(columns, of, grid)
    for a, b in zip(first, third, strict=True):
        assert a.below.tolist() == b.below.tolist() and a.top.tolist() == b.top.tolist()
    assert not any(a is b for a, b in zip(first[2:], third[2:], strict=True))


def test_all_lattices_together_keep_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture_likelihood._KEPT.clear()
    monkeypatch.setattr(mixture_likelihood, "_MOST_KEPT_IN_ALL", 1_000_000)
    most = 0
    for scale in range(1, 30):
        x = (np.linspace(-0.05, 0.05, 12) * scale).tolist()
        columns = boots(x, list(range(12)), list(range(12)), list(range(12)))
        of = thetas_of(columns, NoisePrior(sd_run=0.02 * scale, certainty=12.0), Policy())
        grid = mixture_likelihood.level_grid(columns, of)
        mixture_likelihood.position_likelihoods(columns, of, grid)
        kept = [tables.numbers for tables in mixture_likelihood._KEPT.values()]
        assert sum(kept[:-1]) <= 1_000_000
        most = max(most, len(kept))
    assert 1 < most < 29
