"""Boots that fall into two modes: the noise record and the boots themselves know them, and a
bisection looks through them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.posterior.mixture_noise import (
    Combinations,
    Theta,
    Thetas,
    with_least_spread,
)
from swingbot.core.bisect.state import Conclusion
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.noise import NoisePrior, NoiseRecord, PastBoot
from swingbot.core.plan.noise import estimate, noise_prior
from swingbot.core.stats.boot_modes import boot_modes
from swingbot_jobs import codec
from tests.simulate import SimulatedBench, a_state, bisect_to_the_end, known_noise


def kernels(share: float, apart: float, seed: int = 1) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [
        list(rng.normal(level, 0.01, 6) + np.where(rng.random(6) < share, apart, 0.0))
        for level in rng.normal(7.0, 0.1, 10)
    ]


@pytest.mark.parametrize(("share", "apart"), [(0.3, -0.2), (0.3, 0.2), (0.45, -0.1)])
def test_two_modes_are_found_with_their_share_and_distance(share: float, apart: float) -> None:
    found = boot_modes(kernels(share, apart))
    assert found is not None
    assert found.apart == pytest.approx(apart, rel=0.1)
    assert found.share == pytest.approx(share, abs=0.15)


def test_one_mode_is_not_two() -> None:
    assert not any(boot_modes(kernels(0.0, 0.0, seed)) for seed in range(200))
    assert boot_modes([]) is None
    assert boot_modes([[1.0, 1.0]] * 20) is None


def test_three_boots_are_a_mode_and_one_wild_boot_is_none() -> None:
    """Of small kernels, three differences in two or three show it; one boot has many."""
    few = [[7.0, 6.75], [7.001, 6.999], [7.0005, 7.002], [6.999, 6.7505], [6.7495, 7.0, 7.001]]
    found = boot_modes(few)
    assert found is not None and found.apart == pytest.approx(-0.25, rel=0.01)
    assert found.share == pytest.approx(3 / 7)
    assert boot_modes([[7.0, 7.001, 6.999, 7.002, 6.998, 7.0005, 7.0015, 6.75]]) is None


def test_a_mode_stays_where_it_is_if_levels_need_wider_spreads() -> None:
    """The grid of levels of large changes is coarser than repeatable boots."""
    theta = Theta(0.002, 0.0, 0.4, 1.0, 0.25 / 0.002, tight=True)
    of = Combinations(Thetas((theta, replace(theta, tight=False, apart=3.0))), ())
    mode, wild = with_least_spread(of, -28).thetas.each  # 2 to the power of -7
    assert mode.spread == wild.spread == 2.0**-7
    assert mode.apart * mode.spread == pytest.approx(0.25)
    assert wild.apart == 3.0


def in_two_of_three_boots(seed: int) -> Conclusion:
    """-22 % in two of three boots that repeat to 0.2 %."""
    bench = SimulatedBench(
        commits=20, culprit=15, effect=-0.22, effect_share=0.67, run_noise=0.004, runs=4, seed=seed
    )
    state = a_state(bench, noise=known_noise(bench, 2.0))
    return bisect_to_the_end(bench, state, Policy()).conclusion


@pytest.mark.parametrize("seed", [1, 2, 9])
def test_a_change_that_some_boots_show_is_not_put_behind_its_commit(seed: int) -> None:
    """Boots that look good again lie at the level of good, and those of commits before a later one
    at the level of bad."""
    said = in_two_of_three_boots(seed)
    assert (said.kind, said.members) == ("culprit", (15,))


def test_most_boots_of_the_good_end_are_no_path_whichever_mode_the_model_takes_for_the_first() -> (
    None
):
    """6 of 10 boots behind it are low, none of 4 before: with the low mode as the first, the others
    would have a share that is near one on either side."""
    said = in_two_of_three_boots(7012)
    assert (said.kind, said.members) == ("culprit", (15,))


def test_the_effect_of_a_share_of_boots_is_said_of_all_boots() -> None:
    said = in_two_of_three_boots(7006)
    assert (said.kind, said.members) == ("culprit", (15,))
    assert re.search(
        r"boots about 22 % lower than the others, before it 1 boot in \d+; mean of all boots"
        r" -1\d\.\d %; confirmed by \d+ fresh pairs of boots; layout",
        said.reason,
    )


def test_a_noise_record_knows_modes_and_the_spread_within_them() -> None:
    past = [
        PastBoot(
            code=str(n), image=str(n), day="2026-01-01", k=k, shared=False, values=(math.exp(v),)
        )
        for n, levels in enumerate(kernels(0.3, -0.2))
        for k, v in enumerate(levels)
    ]
    record = estimate(past)
    assert record.mode_apart == pytest.approx(-0.2, rel=0.1)
    assert record.mode_boot.sd == pytest.approx(0.01, rel=0.3)
    assert record.boot_mean.sd > 0.05  # what comparisons lean on: both modes
    assert codec.typed(NoiseRecord, codec.plain(record)) == record
    prior = noise_prior(record, paired=False)
    assert (prior.mode_share, prior.mode_apart) == (record.mode_share, record.mode_apart)
    assert codec.typed(BisectionTerms, codec.plain(BisectionTerms(noise=prior))).noise == prior
    assert math.hypot(prior.sd_run, prior.sd_boot) < 0.03
    assert noise_prior(record, paired=True).mode_apart == 0.0


def test_noise_without_modes_is_stored_as_it_was() -> None:
    assert "mode_share" not in codec.plain(NoisePrior())


@pytest.mark.parametrize("modes_known", [True, False])
def test_a_bisection_looks_through_modes(modes_known: bool) -> None:
    bench = SimulatedBench(
        commits=30, culprit=12, effect=-0.05, run_noise=0.02, bimodal=0.5, apart=10.0, seed=4
    )
    noise = known_noise(bench, modes=modes_known)
    ended = bisect_to_the_end(bench, a_state(bench, noise=noise, layouts=True))
    assert ended.named == 12
    assert ended.boots <= 60
    assert ended.conclusion.interval_pct is not None
    assert ended.conclusion.interval_pct[0] > -15.0  # modes are 20 % apart
    assert any(assess(ended.state, Policy()).posterior.mode)


def test_modes_that_are_gone_do_no_harm() -> None:
    bench = SimulatedBench(commits=30, culprit=12, effect=-0.05, run_noise=0.01, seed=4)
    noise = replace(known_noise(bench), mode_share=0.4, mode_apart=-0.2)
    assert bisect_to_the_end(bench, a_state(bench, noise=noise, layouts=True)).named == 12
