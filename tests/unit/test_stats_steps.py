"""A whole history: steps where there are some, none where there are none, and what else it
shows; the files that people have."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import stdtr

from swingbot.app.commands.stats import stats
from swingbot.core.stats.findings import Findings, look
from swingbot.core.stats.history_file import draw_history, parse_history
from swingbot.core.stats.parse import BadSamples
from swingbot.core.stats.steps import StepNoise, _p_of_difference
from swingbot_jobs import codec

SD = 0.007


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
    assert change.low_pct <= -4.88 <= change.high_pct
    assert change.p < 1e-6


def test_steps_that_cancel_are_both_found() -> None:
    assert places(look(history(2, steps={30: -0.05, 55: 0.05}))) == [30, 55]


def test_flat_histories_have_few_steps_also_where_neighbours_are_alike() -> None:
    rng, false = np.random.default_rng(3), 0
    for n in range(40):
        noise = rng.normal(0.0, SD, 80)
        for at in range(1, 80):
            noise[at] += 0.5 * noise[at - 1] * (n % 2)
        false += len(look([float(v) for v in 100.0 * np.exp(noise)]).changes)
    assert false <= 10  # 3 in 1000 points


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


def test_two_modes_are_found_and_gaussian_points_have_one() -> None:
    rng = np.random.default_rng(10)
    values = [v * (0.9 if rng.random() < 0.3 else 1.0) for v in history(11)]
    found = look(values)
    assert found.modes is not None
    assert found.modes.apart_pct == pytest.approx(11.0, abs=2.0)
    assert all(look(history(n)).modes is None for n in range(20, 40))


def test_a_step_that_the_anchor_makes_too_is_the_machines() -> None:
    moved = look(history(12, steps={40: -0.05}), history(13, steps={40: -0.05}))
    assert [change.machine for change in moved.changes] == [True]
    stood = look(history(12, steps={40: -0.05}), history(13))
    assert [change.machine for change in stood.changes] == [False]


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
