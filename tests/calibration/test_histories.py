"""Histories in which nothing happens have at most one false step in 1000 points.

The series and the comparison with other tools: `benchmarks/histories.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.histories import NOISE, POINTS, ours

SERIES, ALLOWED = 300, 0.001


@pytest.mark.parametrize("kind", NOISE)
def test_a_flat_history_has_few_false_steps(kind: str) -> None:
    rng = np.random.default_rng([7, 1])
    false = sum(len(ours(100.0 * np.exp(NOISE[kind](rng)))) for _ in range(SERIES))
    assert false <= ALLOWED * SERIES * POINTS, f"{1000 * false / SERIES / POINTS:.2f} in 1000"
