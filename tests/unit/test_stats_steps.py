"""A whole history: steps where there are some, none where there are none, and what else it
shows; the files that people have."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from scipy.special import stdtr

from swingbot.app.commands.stats import stats
from swingbot.core.stats.findings import Findings, look, without_small
from swingbot.core.stats.findings_text import tell
from swingbot.core.stats.history_file import draw_history, parse_history
from swingbot.core.stats.parse import BadSamples, parse_file
from swingbot.core.stats.steps import StepNoise, _p_of_difference
from swingbot.web.plots.findings_plot import findings_plot
from swingbot_jobs import codec

SD = 0.007
Points = npt.NDArray[np.float64]


def history(
    seed: int, n: int = 80, steps: dict[int, float] | None = None, sd: float = SD
) -> list[float]:
    levels = np.zeros(n)
    for at, effect in (steps or {}).items():
        levels[at:] += effect
    return [
        float(v) for v in 100.0 * np.exp(levels + np.random.default_rng(seed).normal(0.0, sd, n))
    ]


def places(found: Findings) -> list[int]:
    return [change.at for change in found.changes]


def test_a_step_is_found_where_it_is_with_an_interval_that_holds_it() -> None:
    (change,) = look(history(1, steps={30: -0.05})).changes
    assert change.first <= 30 <= change.last
    assert change.low_pct is not None and change.high_pct is not None
    assert change.low_pct <= -4.88 <= change.high_pct
    assert change.p < 1e-6


def test_steps_that_cancel_are_both_found() -> None:
    assert places(look(history(2, steps={30: -0.05, 55: 0.05}))) == [30, 55]


def test_flat_histories_have_few_steps_also_where_neighbours_are_alike() -> None:
    rng, false = np.random.default_rng(3), 0
    for n in range(28):
        noise = rng.normal(0.0, SD, 80)
        for at in range(1, 80):
            noise[at] += 0.5 * noise[at - 1] * (n % 2)
        false += len(look([float(v) for v in 100.0 * np.exp(noise)]).changes)
    assert false <= 7  # 3 in 1000 points


def heavy(rng: np.random.Generator, n: int) -> Points:
    return SD * rng.standard_t(2, n)


def spiky(rng: np.random.Generator, n: int) -> Points:
    spikes = rng.choice([-1.0, 1.0], n) * rng.uniform(4.0, 10.0, n) * (rng.random(n) < 0.1)
    return SD * (rng.normal(0.0, 1.0, n) + spikes)


def growing(rng: np.random.Generator, n: int) -> Points:
    return SD * rng.normal(0.0, 1.0, n) * np.linspace(1.0, 5.0, n)


def excursion(rng: np.random.Generator, n: int) -> Points:
    at = int(rng.integers(3, n - 6))
    away = rng.uniform(4.0, 10.0) * ((np.arange(n) >= at) & (np.arange(n) < at + 3))
    return SD * (rng.normal(0.0, 1.0, n) - away)


def walking(rng: np.random.Generator, n: int) -> Points:
    return np.asarray(np.cumsum(rng.normal(0.0, SD, n)))


def at_a_bound(rng: np.random.Generator, n: int) -> Points:
    return np.log(np.where(rng.random(n) < 0.3, 100.0, 100.0 - rng.exponential(3.0, n)))


@pytest.mark.parametrize("noise", [heavy, spiky, growing, excursion, walking, at_a_bound])
def test_noise_of_any_shape_has_few_steps(
    noise: Callable[[np.random.Generator, int], Points],
) -> None:
    rng = np.random.default_rng(23)
    found = [look(np.exp(noise(rng, 150)).tolist()) for _ in range(15)]
    assert sum(bool(one.changes) for one in found) <= 2


def test_many_steps_do_not_hide_each_other() -> None:
    steps = {4: 0.16, 22: 0.13, 37: -0.055, 86: 0.36, 103: -0.05, 138: -0.5, 175: -0.05, 214: 0.29}
    found = places(look(history(24, 228, steps=steps, sd=0.0065)))
    assert all(any(abs(at - place) <= 1 for place in found) for at in steps)
    assert len(found) == len(steps)


def test_wild_points_are_no_steps() -> None:
    values = history(4)
    values[20], values[50] = 70.0, 140.0
    assert places(look(values)) == []


def test_scaling_and_reversing_a_history_finds_the_same_steps() -> None:
    values = history(5, steps={25: -0.04})
    found = look(values)
    assert places(look([1000.0 * v for v in values])) == places(found)
    assert places(look(values[::-1])) == [80 - at for at in places(found)]


def test_a_creep_is_one_creep_and_not_a_staircase() -> None:
    values = [v * 0.999**n for n, v in enumerate(history(6))]
    found = look(values)
    assert found.creep is not None
    assert found.creep.pct == pytest.approx(-7.6, abs=1.0)
    assert found.changes == ()


def test_a_creep_through_0_has_no_percentage() -> None:
    values = np.linspace(-4.0, 6.0, 60) + np.random.default_rng(22).normal(0.0, 0.2, 60)
    found = look(values.tolist())
    assert found.creep is not None
    assert found.creep.pct is None
    assert [found.creep.before, found.creep.after] == pytest.approx([-4.0, 6.0], abs=0.2)
    assert any("creep: from -" in line for line in tell(found, [str(n) for n in range(60)]))


@pytest.mark.parametrize(
    ("n", "begin", "size"), [(80, 64, -0.05), (80, 49, -0.05), (200, 159, 0.1)]
)
def test_a_ramp_at_the_end_is_a_ramp(n: int, begin: int, size: float) -> None:
    held = 0
    for seed in range(10):
        line = size * np.maximum(np.arange(n) - begin, 0) / (n - 1 - begin)
        found = look((np.array(history(seed, n)) * np.exp(line)).tolist())
        if found.ramp is None:  # a step near the end explains as much
            continue
        assert (found.changes, found.creep, found.candidate) == ((), None, None)
        assert found.ramp.pct == pytest.approx(100 * math.expm1(size), abs=2.0)
        held += found.ramp.first <= begin <= found.ramp.last
    assert held >= 7
    assert found.ramp is not None
    (line_of_text,) = [text for text in tell(found, [f"v{k}" for k in range(n)]) if "ramp" in text]
    assert line_of_text.startswith("ramp from v") and "by the last point" in line_of_text
    assert codec.typed(Findings, json.loads(json.dumps(codec.plain(found)))) == found


def with_path(seed: int, share: float, far: float, begin: int = 40) -> list[list[float]]:
    """80 points of 10 runs, of which `share` are `far` times the others from `begin` on."""
    rng = np.random.default_rng(seed)
    return [
        (
            100.0
            * np.exp(rng.normal(0.0, 0.01, 10))
            * np.where(rng.random(10) < share * (n >= begin), far, 1.0)
        ).tolist()
        for n in range(80)
    ]


def looked(runs: list[list[float]]) -> Findings:
    return look([sum(of) / len(of) for of in runs], runs=runs)


@pytest.mark.parametrize(("far", "words"), [(0.5, "50 % lower"), (1.4, "39 % higher")])
def test_a_share_of_runs_that_takes_a_path_from_a_point_on_is_said(far: float, words: str) -> None:
    found = looked(with_path(31, 0.15, far))
    assert found.path is not None
    assert found.path.first <= 40 <= found.path.last
    assert found.path.after == pytest.approx(0.15, abs=0.05) and found.path.before == 0.0
    lines = tell(found, [f"v{n}" for n in range(80)])
    (line,) = [line for line in lines if "path" in line]
    assert line.startswith("from v") and "1 run in" in line and words in line
    assert codec.typed(Findings, json.loads(json.dumps(codec.plain(found)))) == found


def test_a_share_of_runs_that_stays_is_no_change() -> None:
    for seed in range(10):
        assert looked(with_path(seed, 0.15, 0.5, begin=0)).path is None
        assert looked(with_path(seed, 0.0, 1.0)).path is None


def test_runs_that_one_boot_takes_together_are_no_path_that_appears() -> None:
    runs = with_path(33, 0.0, 1.0)
    runs[60] = [value / 2.0 for value in runs[60][:4]] + runs[60][4:]
    assert looked(runs).path is None


def test_the_runs_of_a_file_show_a_path() -> None:
    rows = [
        f"v{n},{value},{k}"
        for n, of in enumerate(with_path(31, 0.15, 0.5))
        for k, value in enumerate(of)
    ]
    given = "\n".join(["x,value,run", *rows])
    result = CliRunner().invoke(stats, ["history", "--no-picture", "-"], input=given)
    assert result.exit_code == 0, result.output
    assert "takes a path about 50 % lower than the other runs" in result.output
    found = looked(with_path(31, 0.4, 0.5))
    assert "% of runs take a path about 50 % lower" in "".join(tell(found, [""] * found.points))


def test_points_of_a_rare_mode_that_appears_are_a_path() -> None:
    rng = np.random.default_rng(3)
    path = (rng.random(300) < 0.15) & (np.arange(300) >= 150)
    values = 100.0 * np.exp(rng.normal(0.0, 0.01, 300)) * np.where(path, 0.5, 1.0)
    (line,) = [line for line in tell(look(values.tolist()), [""] * 300) if "modes at" in line]
    assert "takes a path about 50 % lower, before it none" in line


@pytest.mark.parametrize("size", [-0.03, -0.05, 0.2])
def test_a_change_reverted_after_three_tips_is_told_as_an_excursion(size: float) -> None:
    told = 0
    for seed in range(10):
        found = look(history(seed, steps={40: size, 43: -size}))
        assert found.changes == ()
        for off in found.excursions:
            assert (off.first, off.last) == (40, 42)
            assert off.pct == pytest.approx(100.0 * math.expm1(size), abs=1.5)
            told += 1
    assert told >= 8
    assert look(history(1, steps={40: 0.05, 60: -0.05})).excursions == ()


def test_points_that_go_astray_are_no_excursions() -> None:
    rng = np.random.default_rng(29)
    found = [
        look(np.exp(noise(rng, 120)).tolist())
        for noise in (heavy, spiky, walking, at_a_bound)
        for _ in range(5)
    ]
    assert sum(bool(one.excursions) for one in found) <= 1


def test_a_small_ramp_creep_or_excursion_is_left_out() -> None:
    line = 0.05 * np.maximum(np.arange(80) - 49, 0) / 30
    ramp = look((np.array(history(1)) * np.exp(line)).tolist())
    creep = look([v * 0.999**n for n, v in enumerate(history(6))])
    reverted = look(history(3, steps={40: -0.05, 43: 0.05}))
    assert ramp.ramp is not None and creep.creep is not None and reverted.excursions
    assert without_small(ramp, 3.0) == ramp and without_small(ramp, 8.0).ramp is None
    assert without_small(creep, 3.0) == creep and without_small(creep, 9.0).creep is None
    assert without_small(reverted, 3.0) == reverted
    assert without_small(reverted, 8.0).excursions == ()


def test_ramps_and_creep_are_drawn_as_lines() -> None:
    line = 0.5 * np.maximum(np.arange(80) - 49, 0) / 30
    values = (np.array(history(2)) * np.exp(line)).tolist()
    found = look(values)
    assert found.ramp is not None
    flat, rising = found.levels
    assert flat.rise == 0.0
    assert rising.ends == pytest.approx((100.0, 100.0 * math.exp(0.5)), rel=0.06)
    rows = [n for n, row in enumerate(draw_history(values, found).splitlines()) if "-" in row[13:]]
    assert len(rows) >= 4
    height = re.findall(
        r'<line [^>]*class="base level"[^>]*>', findings_plot("x", [""] * 80, values, found)
    )
    ends = [dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in height]
    assert [end["y1"] == end["y2"] for end in ends] == [True, False]
    creep = look([v * 0.999**n for n, v in enumerate(history(6))])
    assert creep.levels[0].rise == pytest.approx(-7.6, abs=1.0)
    assert creep.alike < 0.2


def test_one_point_has_no_noise() -> None:
    found = look([5.0])
    assert found.alike == 0.0
    assert tell(found, ["a"]) == ["1 point: nothing to compare it with"]


def test_a_p_below_the_smallest_number_is_not_said_to_be_0() -> None:
    line = 0.5 * np.maximum(np.arange(110) - 60, 0) / 49
    found = look((np.array(history(3, 110)) * np.exp(line)).tolist())
    assert found.ramp is not None and found.ramp.p == 0.0
    assert tell(found, ["x"] * 110)[1].endswith("p < 1e-300")


def test_a_ramp_behind_a_step_is_no_part_of_its_size() -> None:
    line = 0.1 * np.maximum(np.arange(110) - 70, 0) / 39
    found = look((np.array(history(3, 110, {30: 0.5})) * np.exp(line)).tolist())
    assert found.ramp is not None and found.ramp.first <= 70 <= found.ramp.last
    (step,) = found.changes
    assert step.at == 30 and step.p < 1e-20
    assert step.pct == pytest.approx(100 * math.expm1(0.5), abs=3.0)


@pytest.mark.parametrize(
    ("step", "at", "ramp", "begin"),
    [(-0.3, 30, 0.3, 70), (0.1, 60, -0.1, 80), (0.05, 30, 0.3, 70), (-0.1, 60, 0.3, 80)],
)
def test_a_step_and_a_ramp_do_not_hide_each_other(
    step: float, at: int, ramp: float, begin: int
) -> None:
    line = ramp * np.maximum(np.arange(120) - begin, 0) / (119 - begin)
    for seed in (1, 2):
        found = look((np.array(history(seed, 120, {at: step})) * np.exp(line)).tolist())
        assert found.ramp is not None and found.ramp.first <= begin <= found.ramp.last + 1
        assert found.ramp.pct == pytest.approx(100 * math.expm1(ramp), abs=2.0)
        assert places(found) == [at]
        assert found.changes[0].pct == pytest.approx(100 * math.expm1(step), abs=1.5)


def test_steps_alone_and_levels_that_wander_have_no_ramp_beside_them() -> None:
    rng = np.random.default_rng(79)
    for _ in range(6):
        steps = {int(rng.integers(10, 140)): float(rng.normal(0.0, 0.05)) for _ in range(3)}
        assert look(history(int(rng.integers(1000)), 150, steps)).ramp is None


@pytest.mark.parametrize("after", [2, 4, 8, 20])
def test_a_step_and_a_random_walk_are_no_ramps(after: int) -> None:
    for seed in range(5):
        assert look(history(seed, steps={80 - after: -0.05})).ramp is None
        walk = look(np.exp(walking(np.random.default_rng(seed), 100 + after)).tolist())
        assert walk.ramp is None


def test_a_random_walk_is_said_to_wander() -> None:
    walks = [look(np.exp(walking(np.random.default_rng(n), 120)).tolist()) for n in range(10)]
    words = [tell(walk, [str(n) for n in range(120)])[-1] for walk in walks]
    assert sum(text.startswith("the level wanders") for text in words) >= 7
    assert not any(look(history(n)).wanders for n in range(10))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_a_bound_that_most_points_reach_is_no_creep(share: float) -> None:
    rng, reach = np.random.default_rng(25), {0.5: 100.0, 0.8: 100.84, 0.9: 101.28}[share]
    found = [look(np.minimum(rng.normal(reach, 1.0, 120), 100.0).tolist()) for _ in range(12)]
    assert sum(bool(one.creep or one.changes or one.ramp) for one in found) <= 1
    assert sum(one.spread is not None for one in found) <= 2


def test_large_steps_that_end_higher_than_they_began_are_no_creep() -> None:
    """About a line through such steps neighbours look alike; that makes the line no better."""
    steps = {15: -0.12, 61: 0.035, 71: 0.15, 95: -0.036, 131: 0.037, 192: 0.025}
    rng = np.random.default_rng(8)
    noise = rng.normal(0.0, 0.0095, 365)
    for at in range(1, 365):
        noise[at] += 0.3 * noise[at - 1]
    levels = sum(effect * (np.arange(365) >= at) for at, effect in steps.items())
    found = look([float(v) for v in 100.0 * np.exp(levels + noise)])
    assert found.creep is None
    assert all(min(abs(at - place) for place in places(found)) <= 3 for at in steps)


def test_a_creep_of_a_testbox_that_wanders_is_no_staircase() -> None:
    rng, creeps = np.random.default_rng(9), 0
    for _ in range(10):
        noise = rng.normal(0.0, SD, 200)
        for at in range(1, 200):
            noise[at] += 0.5 * noise[at - 1]
        found = look([float(v) for v in 100.0 * np.exp(noise - 0.0005 * np.arange(200))])
        creeps += found.creep is not None and not found.changes
    assert creeps >= 9


def test_a_change_of_spread_without_a_change_of_level_is_found() -> None:
    values = history(7, 50) + history(8, 50, sd=5 * SD)
    found = look(values)
    assert found.spread is not None
    assert found.spread.at == pytest.approx(50, abs=8)
    assert found.spread.times == pytest.approx(5.0, rel=0.5)
    assert found.changes == ()
    assert look(history(9, 100)).spread is None


@pytest.mark.parametrize("shift", [0.0, -0.3])
def test_noise_that_becomes_many_times_larger_is_one_finding_beside_a_step(shift: float) -> None:
    quiet, loud = history(20, 30, sd=0.001), history(21, 40, steps={0: shift}, sd=0.05)
    found = look(quiet + loud)
    assert found.spread is not None
    assert found.spread.at == pytest.approx(30, abs=2)
    assert found.spread.times > 20
    assert places(found) == ([30] if shift else [])
    for change in found.changes:
        assert change.first <= 30 <= change.last
        assert change.pct == pytest.approx(100 * math.expm1(shift), abs=2.5)
    back = look(loud[::-1] + quiet)
    assert back.spread is not None and back.spread.times < 0.05
    assert len(back.changes) == (1 if shift else 0)


def test_two_modes_are_found_and_gaussian_points_have_one() -> None:
    rng = np.random.default_rng(10)
    values = [v * (0.9 if rng.random() < 0.3 else 1.0) for v in history(11)]
    found = look(values)
    assert found.modes is not None
    low, high = found.modes
    assert high.value / low.value == pytest.approx(1.0 / 0.9, rel=0.01)
    assert low.share == pytest.approx(0.3, abs=0.1)
    assert found.mode_changes == ()
    assert all(look(history(n)).modes is None for n in range(20, 30))


def test_a_step_that_the_anchor_makes_too_is_the_machines() -> None:
    moved = look(history(12, steps={40: -0.05}), history(13, steps={40: -0.05}))
    assert [change.machine for change in moved.changes] == [True]
    stood = look(history(12, steps={40: -0.05}), history(13))
    assert [change.machine for change in stood.changes] == [False]


def test_a_share_of_modes_that_changes_is_one_finding() -> None:
    rng = np.random.default_rng(11)
    values = [
        v * (1.1 if rng.random() < (0.2 if n < 40 else 0.8) else 1.0)
        for n, v in enumerate(history(15, sd=0.002))
    ]
    found = look(values)
    (change,) = found.mode_changes
    assert (found.changes, found.candidate, found.spread) == ((), None, None)
    assert change.first <= 40 <= change.last
    assert change.last - change.first <= 12
    assert [len(change.before), len(change.after)] == [2, 2]
    (line,) = [line for line in tell(found, [str(n) for n in range(80)]) if "mode" in line]
    assert "the share of the upper mode rose from" in line


def test_a_share_that_changes_and_changes_back_is_two_findings() -> None:
    rng = np.random.default_rng(13)
    shares = np.repeat([0.2, 0.8, 0.2], 50)
    values = np.where(rng.random(150) < shares, 110.0, 100.0) * np.exp(rng.normal(0, 0.002, 150))
    found = look(values.tolist())
    assert found.changes == ()
    assert len(found.mode_changes) == 2
    for change, place in zip(found.mode_changes, (50, 100), strict=True):
        assert change.first <= place <= change.last


def test_modes_that_move_are_not_called_a_change_of_their_shares() -> None:
    rng = np.random.default_rng(14)
    values = np.where(rng.random(80) < 0.5, 110.0, 100.0) * np.exp(rng.normal(0, 0.002, 80))
    values[40:] *= 0.9
    found = look(values.tolist())
    (line,) = [line for line in tell(found, [str(n) for n in range(80)]) if "mode" in line]
    assert "the two modes changed" in line


@pytest.mark.filterwarnings("error")
def test_places_of_any_history_are_in_it_and_in_order() -> None:
    rng = np.random.default_rng(15)
    for _ in range(60):
        n = int(rng.integers(1, 70))
        levels = np.zeros(n)
        for _ in range(int(rng.integers(0, 9))):
            levels[int(rng.integers(0, n)) :] += rng.normal(0.0, 0.1)
        levels += rng.normal(0.0, 10.0 ** rng.uniform(-5.0, -1.5), n)
        levels += 0.2 * (rng.random(n) < rng.choice([0.0, 0.0, 0.5]))
        found = look([float(v) for v in 100.0 * np.exp(levels)])
        candidate = [found.candidate] if found.candidate else []
        for change in (*found.changes, *candidate):
            assert 0 <= change.first <= change.at <= change.last < n
        assert places(found) == sorted(set(places(found)))
        assert tell(found, [str(at) for at in range(n)])


@pytest.mark.parametrize("late", [(1.0, 1.4), (0.64, 0.7, 1.48), (0.6, 0.7, 0.8, 1.5)])
def test_one_mode_that_becomes_several_is_one_finding(late: tuple[float, ...]) -> None:
    rng = np.random.default_rng(12)
    values = [
        v * (1.0 if n < 30 else float(rng.choice(late)))
        for n, v in enumerate(history(16, 70, sd=0.001))
    ]
    found = look(values)
    (change,) = found.mode_changes
    assert (found.changes, found.spread) == ((), None)
    assert change.first <= 30 <= change.last
    assert (len(change.before), len(change.after)) == (1, len(late))
    assert any("one mode became" in line for line in tell(found, [str(n) for n in range(70)]))
    assert codec.typed(Findings, json.loads(json.dumps(codec.plain(found)))) == found


def test_levels_one_after_another_are_steps_and_not_modes() -> None:
    found = look(history(17, 90, steps={20: 0.1, 45: -0.1, 70: 0.1}))
    assert found.mode_changes == ()
    assert found.modes is None
    assert places(found) == [20, 45, 70]


def test_two_culprits_two_tips_apart_are_two_steps_or_one_range() -> None:
    both = look(history(18, steps={40: -0.1, 42: -0.1}, sd=0.004))
    assert places(both) == [40, 42]
    there_and_back = look(history(18, steps={40: -0.2, 42: 0.1}, sd=0.004))
    (change,) = there_and_back.changes
    assert (change.first, change.last, change.parts) == (40, 42, True)
    assert change.pct == pytest.approx(100 * math.expm1(-0.1), abs=0.4)
    (next_to_it,) = look(history(18, steps={40: -0.1, 41: -0.1}, sd=0.004)).changes
    assert (next_to_it.first, next_to_it.last, next_to_it.parts) == (40, 41, True)
    assert any("in all" in line for line in tell(there_and_back, [str(n) for n in range(80)]))


def test_one_low_point_at_the_end_is_a_candidate_and_not_a_step() -> None:
    found = look(history(19, 40, steps={39: -0.1}, sd=0.004))
    assert found.changes == ()
    assert found.candidate is not None
    assert (found.candidate.first, found.candidate.last) == (39, 39)
    assert found.candidate.pct == pytest.approx(100 * math.expm1(-0.1), abs=1.5)
    two = look(history(19, 40, steps={38: -0.1}, sd=0.004))
    assert (places(two), two.candidate) == ([38], None)


def low_before_the_end(seed: int) -> list[float]:
    return history(seed, 34, steps={30: -0.1, 32: 0.1}, sd=0.003)


def high_now_and_then_at_the_end(seed: int) -> list[float]:
    values = history(seed, 55, sd=0.002)
    return [v * (1.3 if n in (51, 53) else 1.0) for n, v in enumerate(values)]


def with_a_new_mode(share: float, n: int, late: int) -> Callable[[int], list[float]]:
    def series(seed: int) -> list[float]:
        high = np.random.default_rng(seed + 100).random(late) < share
        values = history(seed, n + late, sd=0.002)
        return values[:n] + [
            v * (1.3 if up else 1.0) for v, up in zip(values[n:], high, strict=True)
        ]

    return series


@pytest.mark.parametrize(
    ("series", "most"),
    [
        (low_before_the_end, 0),
        (with_a_new_mode(0.05, 60, 40), 1),
        (high_now_and_then_at_the_end, 0),
    ],
    ids=["a dip", "a rare mode", "a mode at the end"],
)
def test_points_that_come_and_go_are_no_new_level(
    series: Callable[[int], list[float]], most: int
) -> None:
    found = [look(series(seed)) for seed in range(12)]
    assert sum(len(one.changes) > 0 for one in found) <= most


def test_modes_that_move_are_one_finding() -> None:
    for seed in range(10):
        high = np.random.default_rng(seed + 100).random(80) < 0.5
        values = history(seed, steps={40: -0.105}, sd=0.002)
        found = look([v * (1.1 if up else 1.0) for v, up in zip(values, high, strict=True)])
        assert len(found.changes) + len(found.mode_changes) == 1


def test_an_anchor_that_was_off_or_drifts_is_not_said_to_show_no_change() -> None:
    noise = [0.2 * math.sin(7.0 * n * n) for n in range(100)]
    off = [100.0 + e - 10.0 * (50 <= n < 53) for n, e in enumerate(noise)]
    drifts = [100.0 + e - 0.4 * max(n - 60, 0) for n, e in enumerate(noise)]
    for values, what in ((off, "excursion"), (drifts, "ramp")):
        words = tell(look(values, [v / 2.0 for v in values]), [str(n) for n in range(100)])
        assert "machine: its anchor moved:" in words
        assert any(line.startswith(f"  {what}") for line in words)


def test_a_level_that_wanders_is_said() -> None:
    values = [100.0 * math.exp(-0.001 * (n % 40) - 0.1 * (n >= 40)) for n in range(80)]
    found = look(values)
    assert tell(found, [str(n) for n in range(80)])[-1].startswith("the level wanders")
    assert found.wanders, "in JSON as in the text"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(0.0, 5.0, "from 0 to 5"), (5.0, 0.0, "-100.00 %"), (-4.0, 4.0, "from -4 to 4")],
)
def test_a_level_of_0_has_no_percentage(before: float, after: float, words: str) -> None:
    found = look([before] * 30 + [after] * 20)
    (change,) = found.changes
    assert (change.at, change.first, change.last) == (30, 30, 30)
    assert [change.before, change.after] == pytest.approx([before, after])
    assert f"step at 30: {words}" in " ".join(tell(found, [str(n) for n in range(50)]))
    if "from" in words:
        assert (change.pct, change.low_pct, change.high_pct) == (None, None, None)
    assert without_small(found, 50.0).changes == found.changes


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [5.0] * 50, [0.0] * 30, [-1.0, 1.0] * 20])
def test_short_flat_and_negative_histories_are_no_trouble(values: list[float]) -> None:
    found = look(values)
    json.dumps(codec.plain(found), allow_nan=False)
    assert draw_history(values, found)
    assert found.changes == ()


def test_runs_of_a_point_are_averaged_and_points_are_sorted_by_time() -> None:
    text = "x,value,time,run\nb,3,2,1\na,1,1,1\nb,5,2,2\na,,1,2\n"
    assert [(p.x, p.value) for p in parse_history(text, "csv")] == [("a", 1.0), ("b", 4.0)]
    listed = json.dumps([{"x": 7, "value": 1.5}, {"x": 8, "value": None}])
    assert [(p.x, p.value) for p in parse_history(listed, "json")] == [("7", 1.5)]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("x;value\nv6,1;1,5\nb;-2\nc;1,25e3\n", "csv"),
        ("x\tvalue\nv6,1\t1,5\nb\t-2\nc\t1,25e3\n", "tsv"),
        ('x,value\n"v6,1","1,5"\nb,-2\nc,"1,25e3"\n', "csv"),
        ("x;value\nv6,1;1.5\nb;-2\nc;1.25e3\n", "csv"),
    ],
)
def test_semicolons_and_decimal_commas_are_read(text: str, form: str) -> None:
    points = [(point.x, point.value) for point in parse_history(text, form)]
    assert points == [("v6,1", 1.5), ("b", -2.0), ("c", 1250.0)]


def test_boots_with_decimal_commas_are_read() -> None:
    base, head = parse_file("side;boot;value\nbase;1;10,5\nbase;1;10\nhead;1;11,25\n", "csv")
    assert [boot.values for boot in base + head] == [(10.5, 10.0), (11.25,)]
    base, head = parse_file("base;head\n1,5 2,5;3,5\n", "csv")
    assert [boot.values for boot in base + head] == [(1.5, 2.5), (3.5,)]


@pytest.mark.parametrize(
    ("text", "form", "why"),
    [
        ("a,b\n1,2\n", "csv", "no column 'value'"),
        ("", "csv", "no column 'value'"),
        ("value\nmany\n", "csv", "not a number"),
        ("value\nnan\n", "csv", "not a number"),
        ("value\n1,2\n", "csv", "2 cells"),
        ("{}", "json", "not a list"),
        ("[1", "json", "not valid JSON"),
        ('[{"x": 1}]', "json", "no key 'value'"),
        ('[{"value": [1]}]', "json", "not a number"),
        ("value,time\n1,1\n2,\n", "csv", "others do not"),
        ("x,value,anchor\na,1,1\nb,2,\n", "csv", "has no anchor"),
        ("x;value\na;1,5\nb;1.25\n", "csv", r"a comma \(1,5\) and numbers with a point"),
        ("x;value\na;999\nb;1,001\n", "csv", "or with one between thousands"),
        ("x\tvalue\na\t1,001\nb\t1,002\n", "tsv", "or with one between thousands"),
        ("x;value\na;1.234,5\n", "csv", "nothing between thousands"),
    ],
)
def test_a_file_that_is_no_history_is_refused_with_a_reason(text: str, form: str, why: str) -> None:
    with pytest.raises(BadSamples, match=why):
        parse_history(text, form)


def test_the_command_draws_and_tells_and_gives_json() -> None:
    lines = [f"v{n},{value}" for n, value in enumerate(history(14, steps={30: -0.05}))]
    given = "\n".join(["x,value", *lines])
    result = CliRunner().invoke(stats, ["history", "-"], input=given)
    assert result.exit_code == 0, result.output
    assert "step at v30" in result.output
    assert "^" in result.output
    machine = CliRunner().invoke(stats, ["history", "--json", "-"], input=given)
    facts = json.loads(machine.output)
    assert [facts["x"][change["at"]] for change in facts["changes"]] == ["v30"]


def test_the_error_of_the_autocorrelation_makes_a_step_less_certain() -> None:
    """Of short histories most: in a long one the autocorrelation is known."""
    noise = StepNoise(sd=1.0, alike=0.3, df=30.0)
    variance = sum(
        (1.3 / 0.7) / n - 2.0 * 0.3 * (1.0 - 0.3**n) / (n * 0.7) ** 2 for n in (20.0, 30.0)
    )
    known = 2.0 * float(stdtr(30.0, -1.5 / math.sqrt(variance)))
    p = {points: _p_of_difference(1.5, 20.0, 30.0, noise, points) for points in (50, 500, 10**8)}
    assert p[10**8] == pytest.approx(known, rel=1e-3)
    assert p[50] > 1.5 * known
    assert p[50] > p[500] > p[10**8]
    assert p[50] == _p_of_difference(-1.5, 30.0, 20.0, noise, 50)
