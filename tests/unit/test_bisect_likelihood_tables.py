"""The tables of likelihoods are the sums that they stand for, however they are computed."""

from __future__ import annotations

import numpy as np
import pytest

from swingbot.core.bisect.posterior import mixture_likelihood
from swingbot.core.bisect.posterior.mixture_noise import BootColumns, Theta

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


def test_an_image_has_the_product_of_its_boots() -> None:
    x = np.array([0.01, -0.02, 0.05, 0.30, 0.07])
    node, point = np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1])
    columns = BootColumns(np.array([0, 4]), point, node, x, 0.02, 0.02, 0.1, 2.0)
    kinds = [Theta(0.02, 0.0, 0.1, 8.0, 0.0), Theta(0.03, 0.0, 0.4, 1.2, -3.0)]
    found = mixture_likelihood._node_likelihoods(columns, kinds, LEVELS)
    fine = (LEVELS[1] - LEVELS[0]) / 8
    placed = LEVELS[0] + np.rint((x - LEVELS[0]) / fine) * fine
    for kind, rows in zip(kinds, found, strict=True):
        z = (placed[:, None] - LEVELS) / kind.spread
        wild = gaussian(z - kind.apart, kind.width) / kind.width
        ln = np.log(((1 - kind.wild) * gaussian(z, 1) + kind.wild * wild) / kind.spread)
        whole = np.array([ln[node == i].sum(axis=0) for i in range(3)])
        assert rows == pytest.approx(whole, rel=1e-9, abs=1e-9)
