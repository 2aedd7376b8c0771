"""Rules that simulated worlds keep: what is measured with them must be what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.peers import METHODS, Probe, bound
from swingbot.core.bisect.state import BisectionState, Measure
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.noise import NoisePrior
from tests.calibration.score import too_sure, wilson
from tests.simulate import Laboratory, a_state, known_noise, with_history
from tests.worlds import DAY, Costs, SimulatedBench


def boots(
    bench: SimulatedBench, idx: int, count: int = 400, at: float = 0.0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.log([bench.boot(idx, k, at=at)[0][0] for k in range(count)])


def test_a_boot_is_the_same_whenever_it_is_asked_for() -> None:
    bench = SimulatedBench(
        run_noise=0.02, boot_noise=0.01, heavy_runs=0.1, layout_noise=0.01, seed=5
    )
    assert bench.boot(3, 2, layout=1, box=1, at=9.0) == replace(bench).boot(
        3, 2, layout=1, box=1, at=7777.0
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


def placed(bench: SimulatedBench, *requests: WantedBoot, boxes: int = 1) -> Laboratory:
    lab = Laboratory(bench, a_state(bench, boxes=boxes), Costs(build=300, boot=60, run=60))
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
        SimulatedBench(runs=1), *(WantedBoot(0, k, "search", 0, k) for k in range(4)), boxes=4
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


def test_what_is_told_of_the_noise_errs_as_the_certainty_says() -> None:
    told = [known_noise(SimulatedBench(run_noise=0.02, seed=s), 12.0) for s in range(400)]
    assert float(np.std([math.log(n.sd_run / 0.02) for n in told])) == pytest.approx(0.15, rel=0.12)
    assert isinstance(told[0], NoisePrior)


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
