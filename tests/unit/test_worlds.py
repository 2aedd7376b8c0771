"""Rules that simulated worlds keep: what is measured with them must be what they say."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import METHODS, Probe, bound
from swingbot.core.bisect.state import BisectionState, Measure
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.noise import NoisePrior
from tests.calibration.families import FAMILIES
from tests.calibration.ingredients import INGREDIENTS
from tests.calibration.known import KNOWN, Figures, got_worse, known, mended, worse, write
from tests.calibration.score import Verdict, too_sure, wilson
from tests.simulate import Laboratory, a_state, known_noise, with_history
from tests.worlds import DAY, SHAPES, Costs, SimulatedBench


def boots(
    bench: SimulatedBench, idx: int, count: int = 400, at: float = 0.0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.log([bench.boot(idx, k, at=at)[0][0] for k in range(count)])


def test_a_boot_is_the_same_whenever_it_is_asked_for() -> None:
    bench = SimulatedBench(
        run_noise=0.02, boot_noise=0.01, heavy_runs=0.1, layout_noise=0.01, seed=5
    )
    assert bench.boot(3, 2, layout=1, testbox=1, at=9.0) == replace(bench).boot(
        3, 2, layout=1, testbox=1, at=7777.0
    )
    assert bench.boot(3, 2) != bench.boot(3, 3)


def test_only_drift_day_and_creep_look_at_the_clock() -> None:
    for trouble in ({"drift": 0.02}, {"day_noise": 0.02}, {"creep": 0.1}):
        bench = SimulatedBench(run_noise=0.001, **trouble)  # type: ignore[arg-type]
        assert bench.boot(3, 2, at=0.0) != bench.boot(3, 2, at=3 * DAY)
        assert bench.boot(3, 2, at=5.0) == bench.boot(3, 2, at=5.0)


def test_drift_has_its_spread_and_its_length() -> None:
    level = np.array(
        [SimulatedBench(drift=0.02, seed=s).at(t) for s in range(300) for t in (0.0, 3600.0)]
    ).reshape(-1, 2)
    assert float(level.std()) == pytest.approx(0.02, rel=0.1)
    assert float(np.corrcoef(level.T)[0, 1]) == pytest.approx(math.exp(-1), abs=0.12)


def test_layout_is_frozen_in_a_kernel_and_differs_between_layouts_of_it() -> None:
    bench = SimulatedBench(culprit=None, layout_noise=0.01, commits=400)
    offsets = [bench.offset(i, layout) for i in range(401) for layout in (0, 1)]
    assert float(np.std(offsets)) == pytest.approx(0.01, rel=0.1)
    assert bench.boot(3, 0)[0][0] == pytest.approx(1000.0 * math.exp(bench.offset(3)))


def test_odd_boots_are_as_frequent_and_as_odd_as_the_world_says() -> None:
    wild = boots(
        SimulatedBench(culprit=None, run_noise=0.01, heavy_runs=0.1, runs=1), 0, 2000
    ) - math.log(1000.0)
    assert float(wild.mean()) == pytest.approx(-0.1 * 0.06, rel=0.3)
    low = boots(
        SimulatedBench(culprit=None, run_noise=0.01, bimodal=0.3, runs=1), 0, 2000
    ) - math.log(1000.0)
    assert float((low < -0.02).mean()) == pytest.approx(0.3, abs=0.04)


def test_steps_add_up_in_order_of_the_commits() -> None:
    bench = SimulatedBench(culprit=4, effect=-0.1, others={9: 0.2})
    assert [round(float(np.exp(bench.truth[i])), 6) for i in (3, 4, 8, 9)] == [1.0, 0.9, 0.9, 1.08]


def test_images_of_a_second_mode_are_as_frequent_as_said_and_new_in_each_layout() -> None:
    bench = SimulatedBench(culprit=None, commits=1000, image_modes=0.3, image_apart=0.04)
    low = np.array([[bench.offset(i, layout) < -0.02 for i in range(1001)] for layout in (0, 1)])
    assert low.mean(axis=1) == pytest.approx([0.3, 0.3], abs=0.05)
    assert float((low[0] & low[1]).mean()) == pytest.approx(0.09, abs=0.03)
    assert len({bench.boot(7, k)[0][0] for k in range(9)}) == 1


def test_days_of_a_second_mode_are_alike_for_all_kernels() -> None:
    bench = SimulatedBench(culprit=None, day_modes=0.3, day_apart=0.04)
    levels = [bench.at(day * DAY + 9.0) for day in range(1000)]
    assert set(levels) == {0.0, -0.04}
    assert float(np.mean(np.array(levels) < 0)) == pytest.approx(0.3, abs=0.05)
    assert bench.boot(3, 0, at=5.0) == bench.boot(3, 1, at=DAY - 1)


def test_a_wandering_testbox_is_an_autoregression_over_its_boots_in_order() -> None:
    bench = SimulatedBench(culprit=None, wander=0.02, wander_rho=0.9)
    path = np.log([bench.boot(3, 0, order=i)[0][0] for i in range(4000)]) - math.log(1000.0)
    assert float(path.std()) == pytest.approx(0.02, rel=0.15)
    assert float(np.corrcoef(path[:-1], path[1:])[0, 1]) == pytest.approx(0.9, abs=0.03)
    assert float(np.corrcoef(path[:-10], path[10:])[0, 1]) == pytest.approx(0.9**10, abs=0.1)
    assert bench.boot(3, 0, order=7, testbox=1) != bench.boot(3, 0, order=7)


def test_the_laboratory_counts_the_boots_of_each_testbox() -> None:
    bench = SimulatedBench(runs=1, culprit=None, wander=0.02)
    lab = placed(bench, *(WantedBoot(0, k, "search", 0, k % 2) for k in range(6)), testboxes=2)
    while lab.state.in_flight:
        lab.wait()
    for o in lab.state.observations:
        assert (o.values, o.skip) == bench.boot(0, o.k, 0, o.testbox, order=o.k // 2)


def test_a_commit_that_changes_the_noise_changes_no_level() -> None:
    bench = SimulatedBench(
        culprit=5, effect=0.0, boot_noise=0.02, runs=1, spread_steps={5: 3.0}, seed=2
    )
    before, after = boots(bench, 4, 1500), boots(bench, 5, 1500)
    assert float(after.std() / before.std()) == pytest.approx(3.0, rel=0.08)
    assert float(after.mean() - before.mean()) == pytest.approx(0.0, abs=0.006)
    assert bench.changes(0.01) == [5]


def test_creep_over_commits_adds_up_evenly_and_names_nobody_below_what_counts() -> None:
    bench = SimulatedBench(culprit=None, commits=40, commit_creep=-0.12)
    assert float(np.exp(bench.truth[-1])) == pytest.approx(0.88)
    assert np.diff(bench.truth) == pytest.approx(math.log(0.88) / 40)
    assert bench.changes(0.005) == []
    assert len(bench.changes(0.003)) == 40


def test_an_effect_in_a_share_of_boots_is_whole_or_absent_in_each() -> None:
    bench = SimulatedBench(culprit=5, effect=-0.1, effect_share=0.6)
    values = boots(bench, 6, 2000) - math.log(1000.0)
    assert {round(float(v), 9) for v in values} == {0.0, round(math.log(0.9), 9)}
    assert float(values.mean()) == pytest.approx(float(bench.truth[6]), abs=0.005)
    assert float(bench.truth[6]) == pytest.approx(0.6 * math.log(0.9))
    assert set(boots(bench, 4, 50)) == {math.log(1000.0)}


def test_a_scale_with_steps_and_a_cap_shows_nothing_between_and_above() -> None:
    bench = SimulatedBench(
        culprit=5, effect=0.1, run_noise=0.02, quantum=5.0, cap=1050.0, runs=1, seed=3
    )
    seen = np.exp(boots(bench, 6, 300))
    assert float(seen.max()) == pytest.approx(1050.0)
    assert np.allclose(seen / 5.0, np.round(seen / 5.0))
    # ten per cent more is five where the scale ends
    assert bench.measured(6) - bench.measured(4) == pytest.approx(math.log(1.05), abs=0.005)


def test_images_fail_by_their_build_and_never_the_ends() -> None:
    bench = SimulatedBench(commits=1000, failing_images=0.2, failing=0.5)
    failing = [i for i in range(1001) if bench.fails(i)]
    assert len(failing) == pytest.approx(200, abs=50)
    assert not {0, 1000} & set(failing)
    assert [bench.fails(i, 1) for i in range(1001)] != [bench.fails(i) for i in range(1001)]
    lost = [bench.boot(failing[0], k)[1] is not None for k in range(400)]
    assert float(np.mean(lost)) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_of_each_shape_has_its_spread_and_no_bias(shape: str) -> None:
    bench = SimulatedBench(culprit=None, boot_noise=0.02, runs=1, shape=shape)
    values = boots(bench, 3, 4000) - math.log(1000.0)
    if shape == "cauchy":  # has neither mean nor deviation: median and quartiles
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        assert middle == pytest.approx(0.0, abs=0.0015)
        assert (high - low) / 2.0 == pytest.approx(0.6745 * 0.02, rel=0.07)
        return
    assert float(values.mean()) == pytest.approx(0.0, abs=0.0015)
    assert float(values.std()) == pytest.approx(0.02, rel=0.25 if shape == "student" else 0.07)


def test_worlds_of_recorded_results_are_still_the_same() -> None:
    """Seeds stand in journals, tables and reports of defects: a new ingredient must not draw
    from what others draw from."""
    bench = SimulatedBench(
        run_noise=0.02, boot_noise=0.01, heavy=0.2, heavy_runs=0.1, bimodal=0.2,
        layout_noise=0.01, pert_noise=0.01, testbox_noise=0.01, drift=0.01, day_noise=0.01,
        boot_failure_rate=0.1, seed=11, runs=2,
    )  # fmt: skip
    seen = [bench.boot(9, k, k % 2, k % 3, 5000.0 * k)[0] for k in range(3)]
    assert [[round(v, 4) for v in runs] for runs in seen] == [
        [898.7915, 886.6913],
        [],
        [488.5277, 582.7407],
    ]


def placed(bench: SimulatedBench, *requests: WantedBoot, testboxes: int = 1) -> Laboratory:
    lab = Laboratory(bench, a_state(bench, testboxes=testboxes), Costs(build=300, boot=60, run=60))
    lab.place(Measure(requests=requests, why=""))
    return lab


def test_a_testbox_does_one_boot_at_a_time_and_outcomes_come_one_by_one() -> None:
    bench = SimulatedBench(runs=1)
    lab = placed(
        bench, WantedBoot(0, 0, "search"), WantedBoot(0, 1, "search"), WantedBoot(5, 0, "search")
    )
    seen: list[tuple[float, int]] = []
    while lab.state.in_flight:
        lab.wait()
        seen.append((lab.now, len(lab.state.in_flight)))
    # both kernels are built at once, while nothing can boot
    assert seen == [(420.0, 2), (540.0, 1), (660.0, 0)]
    assert lab.builds == 2
    assert [o.at for o in lab.state.observations] == [300.0, 420.0, 540.0]


def test_testboxes_of_a_group_work_side_by_side() -> None:
    lab = placed(
        SimulatedBench(runs=1), *(WantedBoot(0, k, "search", 0, k) for k in range(4)), testboxes=4
    )
    while lab.state.in_flight:
        lab.wait()
    assert lab.now == 420.0
    assert lab.builds == 1


def test_a_boot_that_waits_for_its_kernel_lets_another_go_first() -> None:
    bench = SimulatedBench(runs=1)
    lab = Laboratory(
        bench,
        replace(
            a_state(bench),
            points=tuple(replace(p, built=p.idx == 0) for p in a_state(bench).points),
        ),
        Costs(build=300, boot=60, run=60),
    )
    lab.place(Measure(requests=(WantedBoot(5, 0, "search"), WantedBoot(0, 0, "search")), why=""))
    lab.wait()
    assert (lab.now, lab.state.observations[-1].idx) == (120.0, 0)
    lab.wait()
    assert (lab.now, lab.state.observations[-1].idx) == (420.0, 5)


def test_a_kernel_that_does_not_build_occupies_no_testbox() -> None:
    lab = placed(SimulatedBench(runs=1, unbuildable=(5,)), WantedBoot(5, 0, "search"))
    lab.wait()
    assert lab.now == 300.0
    assert lab.state.points[5].skipped
    assert not lab.free


def test_another_layout_is_another_link_of_the_same_objects() -> None:
    lab = placed(
        SimulatedBench(runs=1, layout_noise=0.01),
        WantedBoot(5, 0, "search"),
        WantedBoot(5, 1, "search", 1),
    )
    lab.wait()
    lab.wait()
    assert [o.at for o in lab.state.observations] == [300.0, 420.0]
    assert lab.builds == 1
    assert lab.state.observations[0].values != lab.state.observations[1].values


def test_history_is_of_the_ends_and_older_than_the_bisection() -> None:
    bench = SimulatedBench(drift=0.02)
    state: BisectionState = with_history(bench, a_state(bench), 50)
    assert {(o.idx, o.phase) for o in state.observations} == {(0, "history"), (16, "history")}
    assert len(state.observations) == 100
    assert all(o.at is not None and o.at < -DAY for o in state.observations)


def test_the_stated_noise_errs_as_the_certainty_says() -> None:
    estimates = [known_noise(SimulatedBench(run_noise=0.02, seed=s), 12.0) for s in range(400)]
    assert float(np.std([math.log(n.sd_run / 0.02) for n in estimates])) == pytest.approx(
        0.15, rel=0.12
    )
    assert isinstance(estimates[0], NoisePrior)


def test_a_testbox_that_moves_is_asked_to_move() -> None:
    for trouble in ({"drift": 0.02}, {"wander": 0.02}, {"day_modes": 0.5, "day_apart": 0.04}):
        noise = known_noise(SimulatedBench(**trouble), 1e9)  # type: ignore[arg-type]
        assert noise.sd_day == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize(
    ("d", "noise", "expected"),
    [
        (0.05, {"run_noise": 0.02}, 11.9),
        (0.05, {"run_noise": 0.02, "boot_noise": 0.02}, 19.2),
        (0.02, {"run_noise": 0.02}, 50.5),
        (0.18, {"run_noise": 0.02, "boot_noise": 0.02}, 6.9),
        (0.05, {"run_noise": 0.02, "heavy_runs": 0.1}, 14.0),
        (0.05, {"run_noise": 0.02, "bimodal": 0.3}, 18.7),
    ],
)
def test_the_bound_is_the_published_one(d: float, noise: dict[str, float], expected: float) -> None:
    bench = SimulatedBench(commits=100, culprit=3, effect=math.expm1(-d), **noise)  # type: ignore[arg-type]
    assert bound(bench) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("method", METHODS)
def test_every_peer_finds_a_change_that_cannot_be_missed(method: str) -> None:
    probe = Probe(
        SimulatedBench(
            commits=30, culprit=11, effect=-0.3, run_noise=0.01, unbuildable=(15,), seed=2
        )
    )
    assert METHODS[method](probe).claims == ((11,),)


def test_a_fixed_number_of_runs_in_one_boot_is_as_bad_as_published() -> None:
    """Run 2 % + boot 2 %, -5 %, N = 5: 30 of 100 are right; the reason why this project exists."""
    make = SimulatedBench(commits=100, effect=math.expm1(-0.05), run_noise=0.02, boot_noise=0.02)
    right = 0
    for seed in range(1, 101):
        bench = replace(make, culprit=1 + seed * 37 % 100, seed=seed)
        right += METHODS["git N=5, one boot"](Probe(bench)).claims == ((bench.culprit,),)
    assert 15 <= right <= 45


def test_too_many_wrong_claims_are_noticed_and_a_few_are_not() -> None:
    assert too_sure([(0.99, True)] * 99 + [(0.99, False)]) > 0.5
    assert too_sure([(0.99, True)] * 90 + [(0.99, False)] * 10) < 1e-6
    assert wilson(95, 100) == pytest.approx((0.8882, 0.9785), abs=1e-3)


def claimed(right: int, wrong: int, stated: float = 0.99) -> list[Verdict]:
    return [
        Verdict(seed=i, kind="culprit", stated=stated, right=i < right, boots=9, intervals=())
        for i in range(right + wrong)
    ]


def test_what_is_on_the_list_of_wrong_worlds_exists_and_was_measured() -> None:
    listed = known()
    assert set(listed["families"]) <= {f.name for f in FAMILIES}
    assert set(listed["ingredients"]) <= set(INGREDIENTS)
    assert all(f.worlds for of_kind in listed.values() for f in of_kind.values())


def test_the_list_of_wrong_worlds_is_written_as_it_is_read(tmp_path: Path) -> None:
    write(known(), tmp_path / "known.json")
    assert (tmp_path / "known.json").read_text() == KNOWN.read_text()


def test_a_family_known_to_be_wrong_may_stay_as_it_is_and_not_get_worse() -> None:
    before = Figures(worlds=40, claims=40, wrong=12, stated_wrong=0.3)
    assert got_worse(claimed(7, 3), before) > 0.3
    assert got_worse(claimed(0, 10), before) < 1e-3
    assert got_worse(claimed(200, 0), before) == 1.0
    # few trials behind the figure: little can be said against it
    assert worse(10, 10, 1, 4) > worse(10, 10, 10, 40)


def test_a_family_that_became_honest_is_hinted_at() -> None:
    assert mended(claimed(40, 0))
    assert not mended(claimed(30, 10))
    assert not mended(claimed(4, 0))  # too few to say
