"""What the comparison with other tools counts: finds, labels and Perfherder's rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import histories
from swingbot.core.stats.history import robust_sd


def test_a_label_is_found_once_and_every_other_find_is_false() -> None:
    assert histories.scored([10, 12, 40], [11, 70]) == (1, 2)
    assert histories.scored([10, 14], [12, 16]) == (2, 0)  # the nearer pairs first
    assert histories.scored([], [5]) == (0, 0)
    assert histories.scored([16], [10]) == (0, 1)  # six points away


def test_perfherders_rule_finds_a_large_step_at_its_place_and_nothing_in_noise() -> None:
    noise = np.random.default_rng(3).normal(0.0, 0.005, 80)
    step = noise - 0.05 * (np.arange(80) >= 47)
    assert histories.perfherder(100.0 * np.exp(step)) == [47]
    assert histories.perfherder(100.0 * np.exp(noise)) == []


def test_perfherders_rule_needs_twelve_points_on_both_sides() -> None:
    noise = np.random.default_rng(4).normal(0.0, 0.005, 80)
    early, late = (noise - 0.05 * (np.arange(80) >= at) for at in (8, 74))
    assert all(12 <= at <= 68 for one in (early, late) for at in histories.perfherder(np.exp(one)))
    assert histories.perfherder(np.exp(late)) == []


def test_perfherders_t_is_that_of_its_definition() -> None:
    # By hand: weights 1, 2/3, 1/3; the mean (3 + 2 * 2/3 + 1/3) / 2; squares about it over n - 1.
    mean, variance = histories._weighted(np.array([3.0, 2.0, 1.0]))
    assert mean == pytest.approx(7.0 / 3.0)
    assert variance == pytest.approx((4.0 / 9.0 + 1.0 / 9.0 + 16.0 / 9.0) / 2.0)


@pytest.mark.parametrize("kind", histories.NOISE)
def test_every_kind_of_noise_has_the_spread_that_the_table_states(kind: str) -> None:
    rng = np.random.default_rng(5)
    drawn = np.concatenate([histories.NOISE[kind](rng) for _ in range(200)])
    assert robust_sd(drawn - np.median(drawn)) == pytest.approx(histories.SD, rel=0.25)


def test_labelled_series_are_read_and_bad_ones_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,value\n0,5\n1,6\n2,7\n")
    with pytest.raises(SystemExit, match=r"a\.labels"):
        histories.read_labelled(tmp_path / "a.csv")
    (tmp_path / "a.labels").write_text("2\n1\n")
    values, labels = histories.read_labelled(tmp_path / "a.csv")
    assert (values.tolist(), labels) == ([5.0, 6.0, 7.0], [1, 2])
    (tmp_path / "a.labels").write_text("3\n")
    with pytest.raises(SystemExit, match="a label is not between 1 and 2"):
        histories.read_labelled(tmp_path / "a.csv")
    with pytest.raises(SystemExit, match=r"holds no NAME\.csv"):
        histories.labelled({}, tmp_path / "none")
