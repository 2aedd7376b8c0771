"""Noise records find the spreads of simulated testboxes, with wild boots and small samples, and
are worth what they say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from swingbot.core.model.noise import EMULATED, NOISY, NoiseRecord, PastBoot, Spread
from swingbot.core.plan.noise import estimate, layout_of, noise_prior, pair_prior, sd_at_most
from swingbot.core.stats.evidence import UNKNOWN
from swingbot_jobs import codec


def past(
    seed: int,
    *,
    codes: int = 20,
    layouts: int = 1,
    days: int = 1,
    boots: int = 4,
    runs: int = 3,
    level: float = 1000.0,
    wild: float = 0.0,
    shared: bool = False,
    **sd: float,
) -> list[PastBoot]:
    """Boots of `codes` kernels; spreads by name: run, boot, day, layout, shift (of k, alike for
    all)."""
    rng = np.random.default_rng(seed)

    def draw(name: str, size: Any = None) -> Any:
        return rng.normal(0.0, sd.get(name, 0.0), size)

    shifts, found = draw("shift", boots * days), []
    for code in range(codes):
        level_here = math.log(level) + rng.normal(0.0, 0.3)
        for layout in range(layouts):
            offset = draw("layout")
            for day in range(days):
                today = draw("day")
                for b in range(boots):
                    k = day * boots + b
                    at = level_here + offset + today + shifts[k] + draw("boot")
                    if rng.random() < wild:
                        at -= rng.exponential(0.2)
                    values = tuple(float(v) for v in np.exp(at + draw("run", runs)))
                    found.append(
                        PastBoot(
                            code=f"c{code}",
                            image=f"i{code}/{layout}",
                            day=f"d{day}",
                            k=k,
                            shared=shared,
                            values=values,
                        )
                    )
    return found


def test_runs_and_boots_are_distinguished() -> None:
    found = estimate(past(1, boots=16, run=0.02, boot=0.01))
    assert found.run.sd == pytest.approx(0.02, rel=0.12)
    assert found.boot.sd == pytest.approx(0.01, rel=0.3)
    assert found.boot_mean.sd == pytest.approx(math.sqrt(0.01**2 + 0.02**2 / 3), rel=0.2)
    assert (found.run.df, found.boot_mean.df) == (640, 300)
    assert (found.boots, found.runs, found.images) == (320, 960, 20)


def test_estimates_are_unbiased_over_many_small_pasts() -> None:
    found = [estimate(past(seed, codes=4, boots=3, run=0.01, boot=0.02)) for seed in range(200)]
    assert math.sqrt(np.mean([f.run.sd**2 for f in found])) == pytest.approx(0.01, rel=0.03)
    assert math.sqrt(np.mean([f.boot_mean.sd**2 for f in found])) == pytest.approx(
        math.sqrt(0.02**2 + 0.01**2 / 3), rel=0.05
    )
    assert math.sqrt(np.mean([f.boot.sd**2 for f in found])) == pytest.approx(0.02, rel=0.06)


def test_days_and_layouts_have_spreads_of_their_own() -> None:
    found = [
        estimate(
            past(
                seed,
                codes=12,
                layouts=3,
                days=3,
                boots=2,
                run=0.004,
                boot=0.005,
                day=0.01,
                layout=0.02,
            )
        )
        for seed in range(20)
    ]
    assert np.median([f.day.sd for f in found]) == pytest.approx(0.01, rel=0.15)
    assert np.median([f.layout.sd for f in found]) == pytest.approx(0.02, rel=0.2)
    assert np.median([f.boot.sd for f in found]) == pytest.approx(0.005, rel=0.15)
    assert found[0].layout.df > 5


def test_wild_boots_are_counted_and_left_out() -> None:
    found = estimate(past(3, codes=30, wild=0.06, run=0.004, boot=0.005))
    assert found.boot.sd < 0.01
    assert 3 <= found.wild_boots <= 12


def test_a_second_mode_is_noise_and_not_wild() -> None:
    rng = np.random.default_rng(4)
    two = [
        PastBoot(
            code="c",
            image="i",
            day="d",
            k=k,
            shared=False,
            values=(100.0 if rng.random() < 0.6 else 70.0,),
        )
        for k in range(60)
    ]
    found = estimate(two)
    assert found.wild_boots == 0
    assert found.boot_mean.sd > 0.1


def test_the_shift_of_k_is_no_noise_of_a_pair() -> None:
    found = estimate(
        past(5, codes=15, boots=5, shared=True, run=0.001, boot=0.0008, shift=0.01), paired=True
    )
    assert found.pair.sd == pytest.approx(math.sqrt(0.0008**2 + 0.001**2 / 3), rel=0.2)
    assert found.boot_mean.sd == pytest.approx(0.01, rel=0.6)
    assert found.pair.df == 15 * 5 - 15 - 4


def test_a_boot_that_was_made_twice_at_one_k_counts_twice_and_spoils_nothing() -> None:
    boots = past(5, codes=15, boots=5, shared=True, run=0.001, boot=0.0008, shift=0.01)
    once, twice = estimate(boots, paired=True), estimate([*boots, *boots[:20]], paired=True)
    assert twice.pair.sd == pytest.approx(once.pair.sd, rel=0.2)


def test_boots_that_share_no_k_tell_nothing_of_pairs() -> None:
    lonely = [
        PastBoot(code=f"c{i}", image=f"i{i}", day="d", k=i, shared=True, values=(100.0 + i,))
        for i in range(5)
    ]
    assert not estimate(lonely, paired=True).pair.known


def test_a_repeatable_testbox_without_shared_boots_has_no_spread_of_pairs() -> None:
    anchors = past(6, codes=2, boots=5, shared=False, run=0.001, boot=0.0008)
    record = estimate(anchors, paired=True)
    assert record.boots == 10 and not record.pair.known


def test_identical_values_have_the_smallest_spread_that_is_believed() -> None:
    same = [
        PastBoot(code="c", image="i", day="d", k=k, shared=True, values=(5.0, 5.0))
        for k in range(6)
    ]
    found = estimate(same)
    assert 0 < found.run.sd <= 1e-5
    assert 0 < found.boot_mean.sd <= 1e-5


def test_scaling_every_value_changes_nothing() -> None:
    one = past(6, run=0.01, boot=0.01)
    other = [
        PastBoot(
            code=b.code,
            image=b.image,
            day=b.day,
            k=b.k,
            shared=b.shared,
            values=tuple(7e3 * v for v in b.values),
        )
        for b in one
    ]
    assert estimate(other).boot.sd == pytest.approx(estimate(one).boot.sd)


def test_zeros_negatives_gaps_and_nothing_are_no_trouble() -> None:
    def boot(k: int, *values: float) -> PastBoot:
        return PastBoot(code="c", image="i", day="d", k=k, shared=False, values=values)

    assert estimate([]) == NoiseRecord()
    assert estimate([boot(0), boot(1, math.nan)]) == NoiseRecord()
    assert not estimate([boot(0, 5.0)]).boot_mean.known
    assert estimate([boot(0, 0.0, 0.0), boot(1, 0.0)]).boot_mean.known
    assert estimate([boot(0, -1.0, 1.0), boot(1, 0.5)]).run.sd > 0


def test_a_record_is_worth_its_degrees_of_freedom_and_no_record_is_the_built_in_guess() -> None:
    assert noise_prior(None, True) == EMULATED
    assert noise_prior(None, False) == NOISY
    assert pair_prior(None, False) == UNKNOWN
    found = estimate(past(7, codes=50, run=0.02, boot=0.01))
    prior = noise_prior(found, False)
    assert prior.sd_run == pytest.approx(0.02, rel=0.1)
    assert prior.sd_boot == pytest.approx(0.01, rel=0.25)
    assert prior.certainty == 50
    assert pair_prior(found, False).sd == pytest.approx(math.sqrt(2) * found.boot_mean.sd)


def test_one_run_a_boot_shares_the_spread_between_run_and_boot() -> None:
    prior = noise_prior(estimate(past(8, codes=30, runs=1, boot=0.02)), False)
    assert prior.sd_run == pytest.approx(0.02 / math.sqrt(2), rel=0.15)
    assert prior.sd_boot == pytest.approx(prior.sd_run, rel=0.05)
    assert prior.certainty == pytest.approx(90 / 2 + 0.5)


def test_days_that_differ_are_part_of_the_prior_once_there_are_several() -> None:
    daily = estimate(past(10, codes=6, days=4, boots=2, run=0.004, boot=0.004, day=0.02))
    assert noise_prior(daily, False).sd_day == pytest.approx(0.02, rel=0.5)
    assert noise_prior(estimate(past(10, codes=6)), False).sd_day == NOISY.sd_day


def test_a_little_known_spread_leans_on_the_guess() -> None:
    sure = NoiseRecord(run=Spread(sd=0.001, df=400), boot=Spread(sd=0.001, df=100))
    vague = NoiseRecord(run=Spread(sd=0.001, df=1), boot=Spread(sd=0.001, df=1))
    assert noise_prior(sure, False).sd_run < 0.0025
    assert noise_prior(vague, False).sd_run > 0.02


def test_a_record_survives_json() -> None:
    found = estimate(past(9, run=0.02, boot=0.01, layouts=2))
    assert codec.typed(NoiseRecord, codec.plain(found)) == found


def test_a_record_limits_the_spread_of_boots_once_it_has_enough_of_them() -> None:
    known = NoiseRecord(boot_mean=Spread(sd=0.02, df=30.0), boots=45)
    assert sd_at_most(known) == pytest.approx(0.02 * math.sqrt(30 / 18.493), rel=1e-4)
    assert sd_at_most(None) is None
    assert sd_at_most(replace(known, boot_mean=Spread(sd=0.02, df=19.0))) is None
    assert sd_at_most(replace(known, wild_boots=5)) is not None
    assert sd_at_most(replace(known, wild_boots=6)) is None, "these may be a second mode"


def test_layouts_are_found_below_the_shift_of_each_boot_of_a_repeatable_testbox() -> None:
    """A shift a hundred times larger than the layouts, and kernels with other k's beside them."""
    own = past(5, codes=6, layouts=4, boots=3, shift=0.01, layout=1e-4, boot=1e-5, shared=True)
    apart = [
        replace(b, image=f"{b.image}/gate", k=b.k + 100, values=tuple(v * 1.03 for v in b.values))
        for b in own
        if b.image.endswith("/0")
    ]
    found = estimate([*own, *apart], paired=True)
    assert found.layout.sd == pytest.approx(1e-4, rel=0.4)
    assert found.layout.df == pytest.approx(18, rel=0.1)
    assert layout_of(found, 1e-3, repeatable=True) == found.layout


def test_layouts_that_do_not_differ_are_as_good_as_measured() -> None:
    """What is left of the noise of their boots is an upper limit."""
    own = past(6, codes=3, layouts=3, boots=3, shift=0.01, boot=2e-5, shared=True)
    found = estimate(own, paired=True)
    limit = layout_of(found, 1e-3, repeatable=True)
    assert limit.df == 6
    assert limit.sd == pytest.approx(2e-5 / math.sqrt(3), rel=0.8)


def test_layouts_are_assumed_until_enough_builds_have_shown_them() -> None:
    assert layout_of(None, 1e-3, repeatable=True) == Spread(sd=1e-3, df=math.inf)
    two = estimate(past(7, codes=20, boots=3, boot=1e-5, shared=True), paired=True)
    assert layout_of(two, 1e-3, repeatable=True) == Spread(sd=1e-3, df=math.inf)
    # one pair of builds that lie further apart than assumed is believed
    odd = estimate(past(8, codes=1, layouts=2, boots=3, layout=0.02, shared=True), paired=True)
    wide = layout_of(odd, 1e-3, repeatable=True)
    assert wide.sd > 2e-3 and math.isinf(wide.df)
    # boots of a noisy testbox show nothing of layouts, and do not widen what is assumed
    noisy = estimate(past(9, codes=2, layouts=3, boots=3, boot=0.03))
    assert layout_of(noisy, 1e-3, repeatable=False) == Spread(sd=1e-3, df=math.inf)


def test_measured_layouts_do_not_make_a_bisection_sure_of_harmless_commits() -> None:
    """They shift an instruction count by their code, which no layout of one kernel shows."""
    quiet = NoiseRecord(layout=Spread(sd=1e-5, df=100), pair=Spread(sd=1e-5, df=100))
    assert noise_prior(quiet, paired=True).sd_layout == EMULATED.sd_layout
    assert noise_prior(quiet, paired=False).sd_layout < 0.3 * NOISY.sd_layout
    loud = NoiseRecord(layout=Spread(sd=0.02, df=100), pair=Spread(sd=1e-5, df=100))
    assert noise_prior(loud, paired=True).sd_layout > 0.015
