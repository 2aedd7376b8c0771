"""Rules of tables: their rows hold together, one row is an ordinary comparison, and what is
known of one row costs the others nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from swingbot.core.stats.compare import compare
from swingbot.core.stats.family import compare_family, recoveries
from swingbot.core.stats.modes import fewest_apart
from swingbot.core.stats.pool import VarianceEstimate, pool
from swingbot.core.stats.resolve import KnownNoise, plan_family
from swingbot.core.stats.rows import BootRuns, Form, Rule
from swingbot.core.stats.simultaneous import (
    Edge,
    exceeded,
    forest_of,
    independent_rows,
    sidak,
    together,
)
from tests.amount import examples

Arm = list[BootRuns]
HIGHER = Rule(better="higher")

values = st.floats(min_value=0, max_value=200)
an_arm = st.lists(st.lists(values, min_size=1, max_size=3), min_size=0, max_size=7).map(
    lambda boots: [BootRuns(k=k, values=tuple(runs)) for k, runs in enumerate(boots)]
)
rules = st.builds(
    Rule,
    better=st.sampled_from(["higher", "lower", None]),
    paired=st.booleans(),
    unimodal=st.booleans(),
    form=st.sampled_from(["ratio", "root", "difference"]),
    points=st.booleans(),
    layout=st.sampled_from([0.0, 0.002]),
    prior_df=st.sampled_from([0.0, 5.0]),
    prior_sd=st.just(0.02),
)


def chain(arms: int) -> list[Edge]:
    return [(i, i + 1) for i in range(arms - 1)]


def star(arms: int) -> list[Edge]:
    return [(0, i) for i in range(1, arms)]


def an_experiment(levels: list[float], boots: int, *, seed: int = 0, sd: float = 0.01) -> list[Arm]:
    """Arms with these log levels."""
    rng = np.random.default_rng(seed)
    return [
        [
            BootRuns(k=k, values=(float(100 * np.exp(level + sd * rng.normal())),))
            for k in range(boots)
        ]
        for level in levels
    ]


@settings(max_examples=examples(60))
@given(base=an_arm, head=an_arm, rule=rules)
def test_a_table_of_two_kernels_is_a_comparison(base: Arm, head: Arm, rule: Rule) -> None:
    assert compare_family([base, head], [(0, 1)], rule) == [compare(base, head, rule)]


@settings(max_examples=examples(60))
@given(arms=st.lists(an_arm, min_size=2, max_size=6), rule=rules)
def test_rows_that_hold_together_claim_no_more_than_each_by_itself(
    arms: list[Arm], rule: Rule
) -> None:
    pairs = chain(len(arms))
    for row, (a, b) in zip(compare_family(arms, pairs, rule), pairs, strict=True):
        alone = compare(arms[a], arms[b], rule)
        assert (row.base, row.head, row.effect) == (alone.base, alone.head, alone.effect)
        if row.changed:
            assert row.verdict == alone.verdict
        if row.interval_pct and alone.interval_pct:
            assert row.interval_pct[0] <= alone.interval_pct[0]
            assert row.interval_pct[1] >= alone.interval_pct[1]


@pytest.mark.parametrize("pairs", [chain(4), star(4), [(0, 1), (2, 3), (4, 5)]])
@pytest.mark.parametrize("df", [6, 24])
def test_the_bound_of_a_forest_is_the_multivariate_t(pairs: list[Edge], df: int) -> None:
    """Against scipy's integral of the same distribution from the matrix of correlations."""
    contrasts = np.zeros((len(pairs), 6))
    for i, (a, b) in enumerate(pairs):
        contrasts[i, a], contrasts[i, b] = -1.0, 1.0
    correlation = contrasts @ contrasts.T / 2.0
    inside = multivariate_t(shape=correlation, df=df, seed=1).cdf(
        np.full(3, 3.0), lower_limit=np.full(3, -3.0)
    )
    forest = forest_of(pairs)
    assert forest is not None
    assert exceeded(3.0, forest, df) == pytest.approx(1.0 - float(inside), rel=0.02)


def test_dependent_rows_need_less_than_independent_ones() -> None:
    for pairs in (chain(40), star(40)):
        forest = forest_of(pairs)
        for df in (4, 30, 160):
            assert 1 < independent_rows(0.005, forest, 39, df) < 39
    assert independent_rows(0.005, None, 39, 30) == 39


def test_a_graph_with_a_cycle_is_not_a_forest() -> None:
    assert forest_of([(0, 1), (1, 2), (2, 0)]) is None
    assert forest_of([(0, 1), (0, 1)]) is None
    assert forest_of([(0, 1), (2, 3)]) is not None


@given(p=st.floats(1e-12, 0.5), rows=st.floats(1, 100))
def test_together_undoes_sidak(p: float, rows: float) -> None:
    assert together(sidak(p, rows), rows) == pytest.approx(p, rel=1e-9)


def test_the_printed_probability_decides() -> None:
    """p is that of the table: below alpha exactly where the deciding interval excludes 0."""
    rule = Rule(better="higher", min_effect_pct=0.0, unimodal=True)
    arms = an_experiment([0, 0.02, 0.0, 0.03, 0.035, 0.01, 0.06, 0.0], 5, seed=3)
    for pairs in (chain(8), star(8)):
        rows = compare_family(arms, pairs, rule)
        assert {row.changed for row in rows} == {True, False}
        assert all(row.changed == ((row.p or 0.0) < rule.alpha) for row in rows)


def test_arms_that_agree_give_each_row_the_degrees_of_freedom_of_all() -> None:
    rows = compare_family(an_experiment([0.0] * 8, 5), chain(8), HIGHER)
    assert [row.df for row in rows] == [32.0] * 7


def test_an_arm_that_spreads_unlike_the_others_stands_alone() -> None:
    arms = an_experiment([0.0] * 8, 6)
    arms[3] = an_experiment([0.0], 6, sd=0.3, seed=5)[0]
    rows = compare_family(arms, chain(8), HIGHER)
    assert [row.df == 35.0 for row in rows] == [True, True, False, False, True, True, True]


def test_spreads_that_differ_altogether_are_not_pooled() -> None:
    quiet, loud = VarianceEstimate(1.0, 4.0), VarianceEstimate(100.0, 4.0)
    assert pool(dict(enumerate([quiet, loud] * 4))) is None
    found = pool(dict(enumerate([quiet] * 7 + [loud])))
    assert found is not None
    assert found.members == frozenset(range(7))
    assert found.variance == 1.0


def test_paired_rows_share_what_they_know_of_a_pair() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(0, 0.05, 4)
    arms = [
        [
            BootRuns(k=k, values=(float(100 * np.exp(shared[k] + 0.001 * rng.normal())),))
            for k in range(4)
        ]
        for _ in range(6)
    ]
    rows = compare_family(arms, chain(6), replace(HIGHER, paired=True))
    # 5 rows of 3 degrees; 8 of the 20 ordered pairs of rows share an arm
    assert [row.df for row in rows] == pytest.approx([15 * 5 / (5 + 8 / 4)] * 5)


def test_a_row_known_to_be_absent_before_any_boot_costs_the_others_nothing() -> None:
    arms = [*an_experiment([0, 0.02, 0.05, 0.0], 5), []]
    pairs = [*star(4), (0, 4)]
    rows = compare_family(arms, pairs, HIGHER, absent={3: "v7 does not build"})
    assert rows[:3] == compare_family(arms[:4], star(4), HIGHER)
    assert rows[3].verdict == "invalid"
    assert "v7 does not build" in (rows[3].reason or "")


def test_a_row_that_failed_while_it_was_measured_still_counts() -> None:
    arms = [*an_experiment([0, 0.02, 0.05], 5), []]
    rows = compare_family(arms, star(4), HIGHER)
    for row, other in zip(rows, compare_family(arms[:3], star(3), HIGHER), strict=False):
        assert row.interval_pct and other.interval_pct
        assert row.interval_pct[0] < other.interval_pct[0]
    assert rows[2].verdict == "invalid"


def test_what_is_known_against_a_row_is_said_beside_its_numbers() -> None:
    rows = compare_family(
        an_experiment([0, 0, 0.1], 5), chain(3), HIGHER, invalid={1: "microcode differs"}
    )
    assert rows[1].verdict == "invalid"
    assert rows[1].change_pct == pytest.approx(10, abs=3)
    assert rows[1].reason == "microcode differs"


@pytest.mark.parametrize(
    "values",
    [(1e299, 1e-299, 5.0), (0.0, 1e200, 3.0), (math.inf, 1.0, 2.0), (math.nan, 1.0, 2.0), (-1.0,)],
)
@pytest.mark.parametrize("form", ["ratio", "root", "difference"])
def test_an_arm_that_measured_nonsense_costs_the_others_nothing(
    values: tuple[float, ...], form: Form
) -> None:
    rule = replace(HIGHER, form=form)
    arms = an_experiment([0, 0.1, 0, 0.1, 0, 0], 6)
    whole = compare_family(arms, chain(6), rule)
    arms.append([BootRuns(k=k, values=(v,)) for k, v in enumerate(values)])
    rows = compare_family(arms, [*chain(6), (0, 6)], rule)
    assert [row.verdict for row in rows[:5]] == [row.verdict for row in whole]
    assert rows[5].verdict in ("invalid", "unclear")


def test_arms_that_repeat_themselves_to_the_last_digit_are_pooled_at_the_floor() -> None:
    arms = [[BootRuns(k=k, values=(9.001 + 0.09 * (i > 2),)) for k in range(4)] for i in range(7)]
    rows = compare_family(arms, chain(7), replace(HIGHER, min_effect_pct=0.5))
    assert [row.verdict for row in rows] == ["same", "same", "better", "same", "same", "same"]


def test_a_reason_for_a_row_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 does not exist; the 1 rows are numbered from 0"):
        compare_family(an_experiment([0, 0], 3), [(0, 1)], HIGHER, absent={1: "does not build"})


@pytest.mark.parametrize("pairs", [[(0, 0)], [(0, 2)], [(-1, 0)]])
def test_a_pair_that_does_not_name_two_arms_is_refused(pairs: list[Edge]) -> None:
    with pytest.raises(ValueError, match="two different arms out of 2, numbered from 0"):
        compare_family(an_experiment([0, 0], 3), pairs, HIGHER)


def test_modes_do_not_separate_one_of_many_rows() -> None:
    """Boots of four kernels in one mode each look like changes; with seven rows, four boots do
    that too often."""
    assert [fewest_apart(rows) for rows in (1, 2, 4, 7, 39)] == [4, 5, 5, 6, 7]
    apart = [0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0]
    arms = an_experiment(apart, 5, sd=1e-4)
    for i in (0, 1, 5, 6, 7):  # so that spreads do not agree: boots that fall into both modes
        arms[i] = [replace(b, values=(b.values[0] * (1.35 if b.k % 2 else 1.0),)) for b in arms[i]]
    row = compare_family(arms, chain(8), HIGHER)[2]
    assert compare(arms[2], arms[3], HIGHER).changed
    assert row.verdict == "unclear"
    assert "of tables of 7 rows of equal kernels; 1 more boot a side would settle it" in (
        row.reason or ""
    )


def test_a_patch_that_costs_and_one_that_recovers_it_are_marked() -> None:
    arms = an_experiment([0, 0, -0.2, -0.2, -0.2, 0.001, 0.001], 10, sd=0.002)
    rows = compare_family(arms, chain(7), HIGHER)
    marks = recoveries(arms, chain(7), rows, HIGHER)
    assert [(m.change, m.back, m.shown) for m in marks] == [(1, 4, True)]
    assert (marks[0].row.margin_pct or math.inf) < 1


def test_a_small_rest_of_a_change_is_said() -> None:
    """The rest is below the minimum effect, so the row is the same; its boots never meet."""
    arms = an_experiment([0, 0, -0.09, -0.09, -0.0073, -0.0073], 10, sd=0.002)
    (mark,) = recoveries(arms, chain(6), compare_family(arms, chain(6), HIGHER), HIGHER)
    assert mark.shown
    assert mark.part == pytest.approx(0.92, abs=0.04)
    arms = an_experiment([0, 0, -0.09, -0.09, 0, 0], 10, sd=0.002)
    (mark,) = recoveries(arms, chain(6), compare_family(arms, chain(6), HIGHER), HIGHER)
    assert (mark.shown, mark.part) == (True, None)


def test_nested_recoveries_find_their_own_partner() -> None:
    arms = an_experiment([0, -0.2, -0.3, -0.2, 0], 10, sd=0.002)
    rows = compare_family(arms, chain(5), HIGHER)
    assert [(m.change, m.back) for m in recoveries(arms, chain(5), rows, HIGHER)] == [
        (0, 3),
        (1, 2),
    ]


def test_noise_that_hides_what_is_left_is_said() -> None:
    arms = an_experiment([0, 0, -0.2, -0.2, 0, 0], 8, sd=0.02)
    rows = compare_family(arms, chain(6), HIGHER)
    marks = recoveries(arms, chain(6), rows, HIGHER)
    assert [(m.change, m.back, m.shown) for m in marks] == [(1, 3, False)]
    assert marks[0].row.verdict == "unclear"


def test_half_a_repair_is_no_recovery() -> None:
    arms = an_experiment([0, 0, -0.2, -0.2, -0.1, -0.1], 8, sd=0.002)
    rows = compare_family(arms, chain(6), HIGHER)
    assert [row.verdict for row in rows] == ["same", "worse", "same", "better", "same"]
    assert recoveries(arms, chain(6), rows, HIGHER) == []


def test_recoveries_want_the_rows_of_their_table() -> None:
    with pytest.raises(ValueError, match="0 rows do not belong to 1 pairs"):
        recoveries(an_experiment([0, 0], 3), [(0, 1)], [], HIGHER)


def test_a_table_without_rows_has_no_plan() -> None:
    noise = KnownNoise(run=0.01, boot=0.02, df=12)
    with pytest.raises(ValueError, match="at least one row"):
        plan_family(noise, 2, 6, False, [])


def test_a_table_resolves_less_than_a_comparison_and_says_so() -> None:
    noise = KnownNoise(run=0.0, boot=0.02)
    plans = [plan_family(noise, 1, 6, False, chain(arms)) for arms in (2, 3, 8, 40)]
    resolved = [plan.resolves_pct for plan in plans]
    assert resolved == sorted(resolved)
    assert resolved[-1] < 1.4 * resolved[0]
    assert plans[2].words(2.0).startswith("6 boots a kernel resolve ")
    assert " % in a table of 7 rows; 2 % needs " in plans[2].words(2.0)


@pytest.mark.parametrize(("paired", "boots"), [(False, 5), (True, 4)])
def test_a_planned_change_is_seen_with_the_stated_probability(paired: bool, boots: int) -> None:
    rng = np.random.default_rng(9)
    plan = plan_family(KnownNoise(run=0.0, boot=0.02), 1, boots, paired, chain(6))
    effect, seen = math.log1p(plan.resolves_pct / 100), 0
    rule = Rule(better="lower", paired=paired, robust=False, unimodal=True)
    for _ in range(250):
        logs = rng.normal(0, 0.02, (6, boots)) + rng.normal(0, 0.05 * paired, (1, boots))
        logs[3:] += effect
        arms = [
            [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(row)] for row in np.exp(logs)
        ]
        seen += compare_family(arms, chain(6), rule)[2].verdict == "worse"
    assert abs(seen / 250 - 0.8) < 4 * math.sqrt(0.16 / 250)
