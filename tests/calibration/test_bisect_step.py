"""Rules that every bisection keeps, on a simulated testbox."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from swingbot.core.bisect.choice.boot_requests import end_again
from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior import assessment
from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.state import BisectionState, Conclude, Measure, PointState, Wait
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import EMULATED, NoisePrior
from swingbot.core.model.statuses import Phase
from tests.simulate import (
    Costs,
    Ended,
    SimulatedBench,
    a_state,
    arrived,
    bisect_to_the_end,
    known_noise,
    with_history,
)

POLICY = Policy()


def emulated(**world: object) -> SimulatedBench:
    """A repeatable testbox: almost no boot noise, kernels shift each other a little, k shifts
    all alike."""
    return SimulatedBench(
        **{  # type: ignore[arg-type]
            "layout_noise": 0.002,
            "pert_noise": 0.003,
            "boot_noise": 0.0003,
            "run_noise": 0.002,
            **world,
        }
    )


def bisected(bench: SimulatedBench, policy: Policy = POLICY) -> Ended:
    return bisect_to_the_end(bench, a_state(bench, paired=True, noise=EMULATED), policy)


def halfway(bench: SimulatedBench, steps: int) -> BisectionState:
    state = a_state(bench, paired=True, noise=EMULATED)
    for _ in range(steps):
        state = arrived(bench, asked(state))
    return state


def asked(state: BisectionState) -> BisectionState:
    action = step(state, POLICY)
    assert isinstance(action, Measure), action
    return replace(
        state,
        in_flight=state.in_flight + action.requests,
    )


@pytest.mark.parametrize("culprit", range(1, 17))
def test_the_culprit_is_named_wherever_it_stands(culprit: int) -> None:
    ended = bisected(emulated(culprit=culprit, effect=-0.05, seed=culprit))
    if culprit in (1, 16):  # the image of an end may be odd, and no other one tells
        assert ended.named is None
        assert ended.conclusion.suspect == culprit
        assert 0.5 < (ended.conclusion.probability or 0.0) < POLICY.confidence
    else:
        assert ended.named == culprit
    assert ended.boots <= 16


def test_a_change_for_the_better_is_found_too() -> None:
    assert bisected(emulated(culprit=5, effect=0.08)).named == 5


def test_no_culprit_means_not_reproduced_after_a_few_boots() -> None:
    ended = bisected(emulated(culprit=None))
    assert ended.conclusion.kind == "not_reproduced"
    assert ended.boots <= 8


@pytest.mark.parametrize(
    ("layout", "pairs"),
    [(0.0, POLICY.confirm_boots), (0.01, POLICY.confirm_boots + POLICY.wary_boots)],
)
def test_where_layout_could_feign_the_step_more_fresh_pairs_confirm_it(
    layout: float, pairs: int
) -> None:
    bench = SimulatedBench(
        commits=20,
        culprit=12,
        effect=-0.06,
        run_noise=0.005,
        boot_noise=0.005,
        layout_noise=layout,
        runs=1,
        seed=3,
    )
    state = a_state(bench, noise=known_noise(bench), layouts=True)
    # odd images would take further pairs by themselves
    ended = bisect_to_the_end(bench, state, replace(POLICY, odd_images=0.0))
    assert ended.named == 12
    fresh = [o.idx for o in ended.state.observations if o.phase == "confirm"]
    assert (fresh.count(12), fresh.count(11)) == (pairs, pairs)


def test_in_a_group_the_ends_are_compared_on_one_testbox() -> None:
    bench = SimulatedBench(
        commits=100,
        culprit=79,
        effect=-0.0488,
        run_noise=0.02,
        boot_noise=0.02,
        testbox_noise=0.03,
        runs=1,
        seed=7,
    )
    state = a_state(bench, noise=known_noise(bench), build_cost=300.0, boot_cost=120.0, testboxes=4)
    ended = bisect_to_the_end(bench, state, Policy(max_boots=100))
    assert ended.named == 79
    where: dict[int, set[int]] = {}
    for boot in ended.state.observations:
        if boot.idx in (0, 100):
            where.setdefault(boot.k, set()).add(boot.testbox)
    assert len(where) >= 4
    assert {len(testboxes) for testboxes in where.values()} == {1}


def test_each_end_gets_its_share_of_the_boots() -> None:
    """Two odd boots of the good end next to the culprit: with these alone the search would look
    for a step among equal kernels for ever."""
    bench = SimulatedBench(
        commits=100, culprit=4, effect=-0.0488, run_noise=0.02, boot_noise=0.02, runs=1, seed=140
    )
    ended = bisect_to_the_end(
        bench,
        a_state(bench, noise=known_noise(bench), build_cost=300.0, boot_cost=120.0),
        Policy(max_boots=400, odd_images=0.0),
    )
    assert ended.named == 4
    for end in (0, 100):
        assert sum(boot.idx == end for boot in ended.state.observations) >= ended.boots / 20


def test_both_ends_once_more_means_a_number_that_neither_had() -> None:
    """The good end was booted alone at k = 5, as the neighbour of a suspect: the lowest number
    that is free at the bad end is taken."""
    bench = SimulatedBench(commits=8, culprit=4, effect=-0.05, run_noise=0.02, seed=3)
    state = a_state(bench, paired=True)
    made = [(0, k) for k in (0, 1, 2, 5)] + [(8, k) for k in range(5)]
    state = replace(state, in_flight=tuple(WantedBoot(idx, k, "ends") for idx, k in made))
    action = end_again(assess(arrived(bench, state), POLICY), 0)
    assert isinstance(action, Measure)
    assert [boot.key for boot in action.requests] == [(0, 6), (8, 6)]


def test_a_group_with_idle_testboxes_and_a_spent_budget_waits_for_nothing() -> None:
    bench = SimulatedBench(
        commits=100, culprit=40, effect=-0.05, run_noise=0.02, boot_noise=0.02, testbox_noise=0.03
    )
    state = a_state(bench, noise=known_noise(bench), testboxes=8)
    ended = bisect_to_the_end(bench, state, Policy(max_boots=10))
    assert ended.conclusion.kind == "inconclusive"
    assert ended.boots <= 10 + 2 * POLICY.confirm_boots


def in_group(*, history: bool = False) -> tuple[SimulatedBench, Ended]:
    """The culprit is the first commit: the good end is its parent and the one kernel without the
    change."""
    bench = SimulatedBench(
        commits=100,
        culprit=1,
        effect=-0.0488,
        run_noise=0.02,
        boot_noise=0.02,
        testbox_noise=0.03,
        runs=1,
        seed=21,
    )
    state = a_state(bench, noise=known_noise(bench), build_cost=300.0, boot_cost=120.0, testboxes=4)
    return bench, bisect_to_the_end(
        bench, with_history(bench, state) if history else state, Policy(), Costs(), ahead=7
    )


def test_in_a_group_the_kernels_next_to_the_step_are_booted_on_several_testboxes() -> None:
    _, ended = in_group()
    assert ended.named == 1
    for idx in (0, 1):
        assert len({boot.testbox for boot in ended.state.observations if boot.idx == idx}) >= 3


def test_in_a_group_each_testbox_boots_both_ends_before_it_tells_anything() -> None:
    bench, ended = in_group(history=True)  # all of it from testbox 0
    assert ended.named == 1
    fresh = sorted(
        (boot for boot in ended.state.observations if boot.phase != "history"),
        key=lambda boot: (boot.at or 0.0, boot.k),
    )
    for testbox in (1, 2, 3):
        assert {boot.idx for boot in [boot for boot in fresh if boot.testbox == testbox][:2]} == {
            0,
            bench.commits,
        }


def test_a_layout_shift_on_a_testbox_without_boot_noise_is_no_culprit() -> None:
    for seed in range(20):
        bench = SimulatedBench(culprit=None, layout_noise=0.003, seed=seed)
        assert bisected(bench).conclusion.kind in ("not_reproduced", "inconclusive")


def test_identical_values_everywhere_are_not_reproduced() -> None:
    assert bisected(SimulatedBench(culprit=None)).conclusion.kind == "not_reproduced"


def test_an_unbuildable_commit_never_votes() -> None:
    bench = emulated(culprit=9, unbuildable=(8, 4, 12))
    ended = bisected(bench)
    assert ended.conclusion.kind == "credible_set"
    assert ended.conclusion.members == (8, 9)
    assert "too few arguments" in ended.conclusion.reason
    far = bisected(emulated(culprit=9, unbuildable=(4, 12, 15)))
    assert far.named == 9


def test_an_unbuildable_commit_is_tried_once_and_an_unbootable_one_twice() -> None:
    ended = bisected(emulated(culprit=9, unbuildable=(8,), unbootable=(12,)))
    tries = [o.idx for o in ended.state.observations if not o.values]
    assert tries.count(8) <= 1
    assert tries.count(12) <= POLICY.boot_tries


def test_a_flaky_boot_does_not_condemn_a_commit() -> None:
    for seed in range(10):
        assert (
            7
            in bisected(
                emulated(culprit=7, effect=-0.12, boot_failure_rate=0.15, seed=seed)
            ).conclusion.members
        )


def test_an_end_that_never_boots_is_said_and_not_searched() -> None:
    ended = bisected(emulated(unbootable=(16,)))
    assert ended.conclusion.kind == "inconclusive"
    assert "bad end" in ended.conclusion.reason
    assert ended.boots <= 6


def test_equal_images_share_boots_and_carry_no_suspicion() -> None:
    ended = bisected(emulated(culprit=9, identical={8: 7, 7: 7}, effect=-0.2))
    assert ended.named == 9
    state = BisectionState(
        points=(PointState(idx=0), PointState(idx=1, same_as=0), PointState(idx=2)), paired=True
    )
    seen = belief(state)
    assert [c.probability for c in seen.candidates] == [0.0, pytest.approx(0.9)]


def test_equal_ends_need_no_boot() -> None:
    state = BisectionState(
        points=(PointState(idx=0), PointState(idx=1), PointState(idx=2, same_as=0))
    )
    action = step(state, POLICY)
    assert isinstance(action, Conclude)
    assert action.conclusion.kind == "not_reproduced"


@pytest.mark.parametrize("steps", range(6))
def test_step_twice_asks_nothing_twice(steps: int) -> None:
    state = asked(halfway(emulated(culprit=11), steps))
    assert isinstance(step(state, POLICY), Wait)


@pytest.mark.parametrize("steps", range(6))
def test_an_answer_that_comes_early_asks_for_nothing_that_is_under_way(steps: int) -> None:
    bench = emulated(culprit=11)
    state = asked(halfway(bench, steps))
    first, *rest = state.in_flight
    state = replace(arrived(bench, replace(state, in_flight=(first,))), in_flight=tuple(rest))
    action = step(state, POLICY)
    if isinstance(action, Measure):
        assert not {r.key for r in action.requests} & {f.key for f in rest}


def test_no_culprit_without_confirmation_boots() -> None:
    ended = bisected(emulated(culprit=6))
    fresh = [o for o in ended.state.observations if o.phase == "confirm"]
    assert sorted({o.idx for o in fresh}) == [5, 6]
    assert len(fresh) == 2 * POLICY.confirm_boots
    assert not {o.k for o in fresh} & {
        o.k for o in ended.state.observations if o.phase != "confirm"
    }


def test_the_printed_effect_is_of_confirmation_boots_alone() -> None:
    ended = bisected(emulated(culprit=6, effect=-0.1))
    mean = {
        i: [
            sum(o.values) / len(o.values)
            for o in ended.state.observations
            if o.phase == "confirm" and o.idx == i
        ]
        for i in (5, 6)
    }
    assert ended.conclusion.change_pct == pytest.approx(100 * (sum(mean[6]) / sum(mean[5]) - 1))
    assert ended.conclusion.interval_pct is not None
    assert ended.conclusion.change_pct is not None
    assert (
        ended.conclusion.interval_pct[0]
        < ended.conclusion.change_pct
        < ended.conclusion.interval_pct[1]
    )


def test_confirmation_boots_that_deny_the_step_name_nobody() -> None:
    bench = emulated(culprit=6, effect=-0.1)
    state = a_state(bench, paired=True, noise=EMULATED)
    for _ in range(200):
        action = step(state, POLICY)
        if isinstance(action, Conclude):
            break
        assert isinstance(action, Measure)
        now = emulated(culprit=None) if action.phase == "confirm" else bench
        state = arrived(
            now,
            replace(
                state,
                in_flight=action.requests,
            ),
        )
    assert isinstance(action, Conclude)
    assert action.conclusion.kind != "culprit"


def test_the_order_of_observations_is_irrelevant() -> None:
    state = halfway(emulated(culprit=11, unbuildable=(8,)), 5)
    mixed = list(state.observations)
    random.Random(1).shuffle(mixed)
    shuffled = replace(state, observations=tuple(mixed))
    assert step(shuffled, POLICY) == step(state, POLICY)
    assert belief(shuffled) == belief(state)


def test_the_budget_of_boots_ends_it() -> None:
    bench = SimulatedBench(commits=60, culprit=20, effect=-0.03, boot_noise=0.05, run_noise=0.05)
    ended = bisect_to_the_end(
        bench, a_state(bench, noise=NoisePrior(sd_run=0.05, sd_boot=0.05)), Policy(max_boots=40)
    )
    assert ended.conclusion.kind == "inconclusive"
    assert ended.boots <= 44


def test_two_points_need_no_search() -> None:
    assert bisected(emulated(commits=1, culprit=1)).named == 1


def test_a_metric_with_zeros_is_bisected_by_difference() -> None:
    points = tuple(PointState(idx=i) for i in range(9))
    state = BisectionState(points=points, paired=True, noise=EMULATED)
    for _ in range(50):
        action = step(state, POLICY)
        if isinstance(action, Conclude):
            break
        assert isinstance(action, Measure)
        new = tuple(
            Observation(
                idx=r.idx, k=r.k, values=(0.0 if r.idx < 4 else 5.0 + 0.01 * r.k,), phase=r.phase
            )
            for r in action.requests
        )
        state = replace(state, observations=state.observations + new)
    assert isinstance(action, Conclude)
    assert action.conclusion.members == (4,)
    assert action.conclusion.change_pct is None


def test_a_point_outside_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the range"):
        BisectionState(
            points=(PointState(idx=0), PointState(idx=1)),
            observations=(Observation(idx=2, k=0, values=(1.0,), phase="ends"),),
        )


@pytest.mark.parametrize(("second", "effect"), [(12, -0.1), (12, 0.06), (5, -0.05), (15, -0.04)])
def test_two_culprits_are_both_found_and_confirmed(second: int, effect: float) -> None:
    bench = emulated(culprit=4, effect=-0.1, others={second: effect})
    state = a_state(bench, paired=True, noise=EMULATED, layouts=True)
    ended = bisect_to_the_end(bench, state, POLICY)
    assert ended.conclusion.kind == "several"
    assert ended.conclusion.members == (4, second)
    assert [c.change_pct for c in ended.conclusion.culprits] == [
        pytest.approx(-10.0, abs=1.5),
        pytest.approx(100 * effect, abs=1.5),
    ]


@pytest.mark.parametrize("steps", range(10))
def test_probabilities_sum_to_one_at_every_step(steps: int) -> None:
    bench = emulated(culprit=4, others={12: -0.1}, unbuildable=(8,), identical={10: 9, 9: 9})
    seen = belief(halfway(bench, steps))
    assert sum(c.probability for c in seen.candidates) + seen.p_none == pytest.approx(1.0)


def test_pairs_of_an_earlier_suspect_do_not_keep_a_confirmation_open() -> None:
    """Point 7 was first confirmed against 6, then 8 against 7: at those k point 8 has boots of
    the search."""
    noisy = NoisePrior(sd_run=0.01, sd_boot=0.001, sd_layout=0.0)
    state = a_state(SimulatedBench(commits=10, culprit=8), noise=noisy)
    level = {i: 1000.0 if i < 8 else 900.0 for i in range(11)}
    phases: list[tuple[int, int, Phase]] = [(p, k, "ends") for p in (0, 10) for k in range(4)]
    phases += [(p, k, "confirm") for p in (6, 7) for k in range(4)] + [
        (8, k, "search") for k in range(4)
    ]
    phases += [(p, k, "confirm") for p in (7, 8) for k in range(4, 6)]
    phases += [(p, k, "search") for p in (4, 5, 9) for k in range(2)]  # no odd image beside it
    seen = tuple(
        Observation(idx=p, k=k, values=(level[p] * (1 + 0.002 * ((p + k) % 3 - 1)),), phase=phase)
        for p, k, phase in phases
    )
    action = step(replace(state, observations=seen), Policy())
    assert isinstance(action, Conclude)
    assert action.conclusion.members == (8,)


def test_of_two_changes_only_one_that_is_a_single_commit_is_blamed() -> None:
    bench = SimulatedBench(
        commits=20,
        culprit=5,
        effect=-0.10,
        others={15: -0.10},
        unbootable=(14,),
        pert_noise=0.003,
        boot_noise=0.0005,
        seed=3,
    )
    ended = bisect_to_the_end(bench, a_state(bench, paired=True, noise=EMULATED))
    assert ended.conclusion.kind == "several"
    assert [c.idx for c in ended.conclusion.culprits] == [5]
    assert set(ended.conclusion.members) == {5, 14, 15}
    assert "one of 14, 15" in ended.conclusion.reason


@pytest.mark.parametrize(("commits", "seed"), [(20, 1), (40, 2), (80, 2)])
def test_a_creep_over_all_commits_ends_within_the_budget(commits: int, seed: int) -> None:
    """Many changes are taken for two, and the parts for two again: all parts are of one
    bisection."""
    each = 0.88 ** (1 / commits) - 1
    bench = SimulatedBench(
        commits=commits,
        culprit=None,
        others=dict.fromkeys(range(1, commits + 1), each),
        run_noise=0.02,
        boot_noise=0.02,
        seed=seed,
    )
    state = a_state(bench, noise=known_noise(bench))
    ended = bisect_to_the_end(bench, state, Policy(max_boots=40))
    assert ended.boots <= 40 + 2 * POLICY.confirm_boots
    assert [c.idx for c in ended.conclusion.candidates] == list(range(1, commits + 1))
    assert sum(c.probability for c in ended.conclusion.candidates) <= 1.0 + 1e-9


def test_the_two_sides_of_a_range_share_one_budget() -> None:
    bench = SimulatedBench(
        commits=30,
        culprit=8,
        effect=-0.08,
        others={21: -0.07},
        run_noise=0.02,
        boot_noise=0.01,
        runs=2,
        seed=3,
    )
    ended = bisect_to_the_end(
        bench, a_state(bench, noise=known_noise(bench)), Policy(max_boots=20, odd_images=0.0)
    )
    assert ended.boots <= 20 + 2 * POLICY.confirm_boots
    # Of what lies between the ends of the whole range, not of the side.
    assert ended.named is not None
    assert "of the -14.6 % between the ends" in ended.conclusion.reason


FIVE_STEPS = SimulatedBench(
    commits=48,
    culprit=8,
    effect=-0.06,
    others=dict.fromkeys((16, 24, 32, 40), -0.06),
    run_noise=0.01,
    boot_noise=0.01,
    seed=5,
)


def test_parts_of_a_range_that_overlap_are_looked_at_once_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each suspect splits the range into two overlapping parts.

    Without a cache, the 16 parts of this range took 133 posteriors.
    """
    looks: list[tuple[int, int, float]] = []
    posterior = assessment._posterior

    def counted(state: BisectionState, policy: Policy, ev: Evidence) -> Posterior:
        looks.append((ev.first, ev.last, policy.prior_no_change))
        return posterior(state, policy, ev)

    monkeypatch.setattr(assessment, "_posterior", counted)
    confirmed = [i for step_at in (8, 16, 24, 32, 40) for i in (step_at - 1, step_at)]
    boots = [WantedBoot(i, k, "ends") for i in (0, 48) for k in range(3)]
    boots += [WantedBoot(i, k, "search") for i in range(2, 48, 2) for k in range(3)]
    boots += [WantedBoot(i, k, "confirm") for i in confirmed for k in range(50, 54)]
    state = arrived(FIVE_STEPS, replace(a_state(FIVE_STEPS), in_flight=tuple(boots)))
    # five equal steps, evenly apart, could be a creep or odd images
    step(state, replace(POLICY, prior_creep=0.0, odd_images=0.0))
    assert len(looks) == len(set(looks)) > 10


def test_an_end_is_not_booted_on_and_on_for_what_its_boots_share() -> None:
    """Five steps in a range look at first like odd images, the bad end's own among them. More
    boots of that image say nothing of it."""
    boots = [WantedBoot(0, k, "ends") for k in range(4)]
    boots += [WantedBoot(48, k, "ends") for k in range(12)]
    boots += [WantedBoot(i, 0, "search") for i in (12, 24)]
    state = a_state(FIVE_STEPS)
    for _ in range(12):
        state = arrived(FIVE_STEPS, replace(state, in_flight=tuple(boots)))
        action = step(state, POLICY)
        assert isinstance(action, Measure)
        boots = list(action.requests)
    ends = [o.idx for o in state.observations if o.idx in (0, 48)]
    assert len(ends) < 4 + 12 + 6
