"""What a boot would tell, against sums that can be done otherwise."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from swingbot.core.bisect.choice.choose import _BootGains, _Kernels, choose, information
from swingbot.core.bisect.choice.expected_bits import answered, divided, foreseen, on_testbox
from swingbot.core.bisect.posterior.assessment import Assessment, assess
from swingbot.core.bisect.posterior.step_posterior import Hypotheses
from swingbot.core.bisect.state import BisectionState, PointState
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior

# no odd images: sums that can be done otherwise know nothing of them
POLICY = Policy(odd_images=0.0)


def seen(*boots: tuple[int, float, int], commits: int = 16, layout: float = 0.0) -> Assessment:
    """Assess one boot per (point, value, testbox), with a given noise of 2 %."""
    points = tuple(PointState(idx=i, built=True) for i in range(commits + 1))
    values = tuple(
        Observation(idx=i, k=k, values=(value,), phase="search", testbox=testbox)
        for k, (i, value, testbox) in enumerate(boots)
    )
    noise = NoisePrior(sd_run=0.02, sd_boot=1e-4, sd_layout=layout, certainty=500.0, sd_day=0.0)
    return assess(
        BisectionState(
            points=points,
            observations=values,
            noise=noise,
            testboxes=1 + max(testbox for _, _, testbox in boots),
        ),
        POLICY,
    )


def two_levels(weight: float, apart: float, none: float = 0.0) -> Hypotheses:
    """A step before kernel 8 with `weight`, behind it with the rest; levels known exactly,
    `apart` from each other."""
    zero = np.zeros(3)
    high = np.array([apart, apart, 0.0])
    return Hypotheses(
        np.array([0, 8, 16]), np.array([weight, 1.0 - weight - none, none]), zero, zero, high, zero
    )


@pytest.mark.parametrize("share", [0.5, 0.2, 0.03])
@pytest.mark.parametrize("apart", [0.01, 0.05, 0.2])
def test_with_levels_that_are_known_it_is_the_information_of_a_coin_and_a_shifted_gaussian(
    share: float, apart: float
) -> None:
    case = seen((0, 100.0, 0), (16, 95.0, 0), (8, 97.0, 0))
    assert case.post is not None
    by_hypotheses = foreseen(
        case.ev, case.post, two_levels(share, apart), np.array([8]), new_layout=False
    )[0]
    by_table = information(np.array([share]), np.array([apart**2 / case.post.boot_var]))[0]
    assert by_hypotheses == pytest.approx(by_table, rel=0.03, abs=2e-4)


def test_a_kernel_inside_a_gap_parts_its_commits() -> None:
    case = seen((0, 100.0, 0), (16, 95.0, 0), (8, 97.0, 0))
    assert case.post is not None
    # the step is in 1..8, evenly; ten sd are as good as an answer
    all_before = two_levels(1.0, 0.2)
    bits = foreseen(case.ev, case.post, all_before, np.array([0, 2, 4, 6, 8, 12]), new_layout=False)
    quarter = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    assert bits == pytest.approx([0.0, quarter, 1.0, quarter, 0.0, 0.0], abs=0.01)


def test_levels_that_are_hardly_known_leave_little_to_conclude() -> None:
    case = seen((0, 100.0, 0), (16, 95.0, 0), (8, 97.0, 0))
    assert case.post is not None
    sure = two_levels(0.5, 0.05)
    vague = Hypotheses(
        sure.at, sure.weight, sure.low, np.full(3, 0.05**2), sure.high, np.full(3, 0.05**2)
    )
    gains = [
        foreseen(case.ev, case.post, which, np.array([8]), new_layout=False)[0]
        for which in (sure, vague)
    ]
    assert 0 < gains[1] < gains[0] / 3


def test_a_repeat_of_a_build_tells_less_than_another_build_where_layout_is_all_there_is() -> None:
    case = seen(*[(0, 100.0, 0), (16, 95.0, 0)] * 3, *[(8, 97.4, 0)] * 4, layout=0.02)
    assert case.post is not None and case.post.hypotheses is not None
    repeat, rebuild = (
        foreseen(case.ev, case.post, case.post.hypotheses, np.array([8]), new_layout=new)[0]
        for new in (False, True)
    )
    assert repeat < rebuild


def test_the_model_tells_what_each_hypothesis_says_of_the_levels() -> None:
    case = seen((0, 100.0, 0), (0, 101.0, 0), (16, 95.0, 0), (16, 94.0, 0), (8, 95.0, 0))
    assert case.post is not None
    hypotheses = case.post.hypotheses
    assert hypotheses is not None and list(hypotheses.at) == [0, 8, 16]
    assert hypotheses.weight.sum() == pytest.approx(1.0)
    assert hypotheses.weight[0] > hypotheses.weight[1]  # kernel 8 looks like the bad end
    # of the first hypothesis: boots of kernel 0, and of 8 and 16
    good, bad = (math.log(100.5), math.log(94.667))
    third = 0.02 / 3  # of the spread: boots may fall into two modes, a little
    assert hypotheses.low[0] == pytest.approx(good, abs=third) and hypotheses.high[
        0
    ] == pytest.approx(bad, abs=third)
    assert hypotheses.low_var[0] == pytest.approx(0.02**2 / 2, rel=0.2) and hypotheses.high_var[
        0
    ] == pytest.approx(0.02**2 / 3, rel=0.2)


def test_in_a_group_each_testbox_has_its_own_level_and_all_have_one_step() -> None:
    case = seen(
        (0, 100.0, 0), (16, 95.0, 0), (0, 200.0, 1), (16, 190.0, 1), (8, 95.0, 0), (8, 190.0, 1)
    )
    assert case.post is not None
    here, there = (
        on_testbox(case.ev, case.post, testbox, POLICY.prior_effect) for testbox in (0, 1)
    )
    assert there.low[0] - here.low[0] == pytest.approx(math.log(2.0), abs=1e-6)
    assert (here.high - here.low)[0] == pytest.approx(math.log(0.95), abs=0.005)
    assert (here.high - here.low)[0] == pytest.approx((there.high - there.low)[0])


def test_nothing_is_foreseen_on_a_testbox_that_booted_nothing() -> None:
    case = seen((0, 100.0, 0), (16, 95.0, 0), (8, 95.0, 1))
    assert case.post is not None
    hypotheses = on_testbox(case.ev, case.post, 2, POLICY.prior_effect)
    assert foreseen(
        case.ev, case.post, hypotheses, np.array([4, 8]), new_layout=False
    ) == pytest.approx([0.0, 0.0], abs=1e-3)


def test_cutting_gaps_changes_nothing_that_is_foreseen() -> None:
    case = seen((0, 100.0, 0), (16, 95.0, 0), (8, 97.0, 0))
    assert case.post is not None
    whole, positions = two_levels(0.3, 0.05, none=0.1), np.arange(17)
    cut = divided(whole, case.ev.mass, [0, 2, 8, 12, 16])
    assert cut.at.tolist() == [0, 2, 8, 12, 16]
    assert cut.weight == pytest.approx([0.3 / 4, 0.3 * 3 / 4, 0.3, 0.3, 0.1])
    gains = [
        foreseen(case.ev, case.post, which, positions, new_layout=False) for which in (whole, cut)
    ]
    assert gains[0] == pytest.approx(gains[1], abs=1e-6)


def test_a_boot_under_way_that_settles_it_leaves_one_side_in_each_way_it_may_answer() -> None:
    ways = answered({0: two_levels(0.25, 1.0)}, [(8, 0)], noise=0.02**2)
    before = [weight[0] for weight in ways]
    assert all(weight[0] < 1e-6 or weight[0] > 1 - 1e-6 for weight in ways)
    assert np.mean(before) == pytest.approx(0.25)


@pytest.mark.parametrize("apart", [0.01, 0.03])
def test_answers_that_may_come_leave_the_belief_where_it_is_on_average(apart: float) -> None:
    ways = answered(
        {0: two_levels(0.25, apart), 1: two_levels(0.25, apart)}, [(8, 0), (8, 1)], noise=0.02**2
    )
    assert np.mean([weight[0] for weight in ways]) == pytest.approx(0.25, abs=0.06)
    assert np.std([weight[0] for weight in ways]) > 0.02


def test_in_a_group_a_boot_that_is_asked_elsewhere_is_not_asked_again() -> None:
    """Ten sd apart, one boot at the middle is as good as an answer: the next ones split what is
    left on either side."""
    ends = [
        (end, value, testbox)
        for testbox in (0, 1, 2)
        for end, value in ((0, 100.0), (16, 80.0), (0, 100.4), (16, 80.2))
    ]
    case = seen(*ends)
    assert case.post is not None
    plan = choose(case.ev, case.post, replace(POLICY, parallel=3, worth=0.3), testboxes=3)
    assert [c.position for c in plan.chosen] == [8, 4, 12] or [c.position for c in plan.chosen] == [
        8,
        12,
        4,
    ]


def test_boots_under_way_in_another_part_of_the_range_keep_their_testboxes_busy() -> None:
    case = seen((0, 100.0, 0), (16, 80.0, 0), (0, 100.4, 1), (16, 80.2, 1))
    assert case.post is not None
    policy = replace(POLICY, parallel=2, worth=0.0)
    elsewhere = [WantedBoot(40, 0, "search", testbox=0)]
    (choice,) = choose(case.ev, case.post, policy, 2, elsewhere).chosen
    assert choice.testbox == 1
    assert not choose(case.ev, case.post, replace(policy, parallel=1), 2, elsewhere).chosen


@pytest.mark.parametrize("off", [-1e-13, 1e-13])
def test_the_last_digits_of_a_probability_do_not_decide_what_is_examined(off: float) -> None:
    """Where all commits are as likely, quantiles of them fall on a commit exactly."""
    case = seen((0, 100.0, 0), (64, 95.0, 0), commits=64)
    examined = []
    for digits in (0.0, off):
        commit = np.append(0.0, np.full(64, 1 / 64)) * (1.0 + np.linspace(digits, -digits, 65))
        post = replace(case.posterior, commit=commit)
        gains = _BootGains(case.ev, post, case.policy, _Kernels(Counter(), group=False))
        examined.append(gains._positions_to_examine(np.zeros((2, 65))).tolist())
    assert examined[0] == examined[1]
