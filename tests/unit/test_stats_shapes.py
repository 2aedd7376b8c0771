"""Comparisons where boots do not spread alike: modes, unequal spreads, blocks, slow drifts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import fisher_exact

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.interleaving import blocks_of, few_runs_p
from swingbot.core.stats.modes import (
    mixture_p,
    more_together,
    most_in_smaller_mode,
    separation_p,
)
from swingbot.core.stats.parse import parse_boots
from swingbot.core.stats.spread import most_df
from swingbot.core.stats.spread_change import spread_change
from swingbot.core.stats.trend import drifts_differ_p

HIGHER = Rule(better="higher")


def judged(base: str, head: str, rule: Rule = HIGHER) -> ComparisonRow:
    return compare(parse_boots(base), parse_boots(head), rule)


def timed(values: list[float], at: list[float]) -> list[BootRuns]:
    return [
        BootRuns(k=k, values=(v,), at=t) for k, (v, t) in enumerate(zip(values, at, strict=True))
    ]


# Modes


def test_three_boots_a_side_have_no_direction_unless_modes_are_ruled_out() -> None:
    sides = "100;101;100", "80;81;80"
    row = judged(*sides)
    assert (row.verdict, row.more_boots) == ("unclear", 1)
    assert "fall into two modes" in (row.reason or "")
    assert "3.1 %" in (row.reason or "")
    assert judged(*sides, replace(HIGHER, unimodal=True)).verdict == "worse"
    assert judged("100;101;100;101", "80;81;80;81").verdict == "worse"
    assert judged(*sides, replace(HIGHER, paired=True)).verdict == "worse"


def test_a_record_says_how_much_modes_can_explain() -> None:
    sides = "100;101;100", "80;81;80"
    one_mode, two_modes = (replace(HIGHER, sd_at_most=sd) for sd in (0.01, 0.12))
    assert judged(*sides, one_mode).verdict == "worse"
    row = judged(*sides, two_modes)
    assert (row.verdict, row.more_boots) == ("unclear", 2)
    assert "into two modes, as the noise record allows, so few boots do that in 3.1 %" in (
        row.reason or ""
    )
    four = "100;101;100;101", "80;81;80;81"
    assert judged(*four, two_modes).more_boots == 1
    assert judged("100;101;100;101;100", "80;81;80;81;80", two_modes).verdict == "worse"


def test_the_spread_of_boots_limits_the_share_of_a_second_mode() -> None:
    assert most_in_smaller_mode(0.1, 0.05) == 0.5
    assert most_in_smaller_mode(0.1, 0.1 * math.sqrt(0.2 * 0.8)) == pytest.approx(0.2)
    assert most_in_smaller_mode(0.0, 0.01) == 0.5
    assert separation_p(3, 3, 0.2) == pytest.approx(2 * (0.2 * 0.8) ** 3)
    assert more_together(3, 3, 0.5, 0.005) == 2
    assert more_together(3, 3, 0.1, 0.005) == 0


def test_rows_of_a_table_share_what_modes_may_explain() -> None:
    """Eight rows of quite unlike spreads, so that nothing is pooled."""
    texts = ["100;101;100;101", "80;80.1;80;80.1", *(f"{80 + n};{80 - n};80;80" for n in range(7))]
    arms, pairs = [parse_boots(text) for text in texts], [(i, i + 1) for i in range(8)]
    row = compare_family(arms, pairs, replace(HIGHER, sd_at_most=0.09))[0]
    assert row.verdict == "unclear" and "of tables of 8 rows" in (row.reason or "")
    assert judged(texts[0], texts[1], replace(HIGHER, sd_at_most=0.09)).verdict == "worse"


def test_a_boot_among_those_of_the_other_side_is_no_outlier() -> None:
    row = judged("100;100.1;99.9;100.2;99.8;90", "90.1;89.9;90;90.2;89.8;90.1")
    assert row.verdict == "unclear"
    assert row.level is None
    assert "boot 5 of base is close to the boots of head" in (row.reason or "")


def test_a_pair_without_the_change_of_the_others_is_no_outlier() -> None:
    sides = "100;100.1;99.9;100.2;99.8", "90;90.1;89.9;90.2;99.9"
    row = judged(*sides, replace(HIGHER, paired=True))
    assert row.verdict == "unclear"
    assert "pair 4 shows no such change" in (row.reason or "")


def test_unevenly_filled_modes_are_no_direction() -> None:
    low, high = "90;90.1;89.9;90.2;89.8;90", "100;100.1;99.9;100.2;99.8;100.1"
    row = judged(f"{high};90;90.1", f"{low};89.9;90.1")
    assert row.verdict == "unclear"
    assert "as unevenly in 0.7 % of comparisons" in (row.reason or "")
    assert judged(f"{high};100;99.9", f"{low};89.9;90.1").verdict == "worse"


def test_the_filling_of_modes_is_judged_by_fishers_test() -> None:
    base, head = [1.0, 1.1, 9.0, 9.1, 9.2, 9.0], [1.0, 1.1, 1.05, 1.0, 1.1]
    assert mixture_p(base, head) == pytest.approx(fisher_exact(np.array([[4, 0], [2, 5]])).pvalue)
    assert mixture_p([1.0, 1.1, 1.2], [9.0, 9.1, 9.2]) is None, "no side has both"
    assert mixture_p([1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.5, 4.5]) is None
    assert mixture_p([1.0, 1.0], [1.0, 1.0]) is None


def test_how_often_modes_separate_the_sides() -> None:
    assert separation_p(3, 3) == pytest.approx(2 / 4**3)
    assert separation_p(4, 4) == pytest.approx(2 / 4**4)
    assert separation_p(2, 20) < separation_p(2, 2)


# Unequal spreads


def test_a_small_side_bounds_the_degrees_of_freedom() -> None:
    assert most_df([5, 5]) == 10
    assert most_df([3, 19]) == pytest.approx(4.5)
    assert most_df([19, 3]) == most_df([3, 19])
    assert most_df([7]) == 7


def test_a_change_of_spread_without_one_of_level_is_named() -> None:
    rng = np.random.default_rng(4)
    base = [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(rng.normal(100, 0.5, 20))]
    head = [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(rng.normal(100, 2.5, 20))]
    row, back = compare(base, head, HIGHER), compare(head, base, HIGHER)
    assert not row.changed
    assert row.spread_ratio is not None
    assert row.spread_ratio == pytest.approx(1 / (back.spread_ratio or 1))
    assert f"same mean, {row.spread_ratio:.2g} times the spread between boots" in (row.reason or "")
    assert f"is {row.spread_ratio:.2g} times smaller" in (back.reason or "")
    assert ComparisonRow.from_json(row.to_json()).spread_ratio == row.spread_ratio
    assert compare(base, base, HIGHER).spread_ratio is None
    assert "spread_ratio" not in compare(base, base, HIGHER).verdict_json()
    assert compare(base, head, replace(HIGHER, headlines=0)).spread_ratio is None


def test_seven_boots_a_side_say_nothing_of_a_change_of_spread() -> None:
    quiet, loud = [0.0, 0.01, -0.01, 0.02, -0.02, 0.0, 0.01], [0.0, 5.0, -5.0, 4.0, -4.0, 6.0, -6.0]
    assert spread_change(quiet, loud, 0.01) is None
    assert spread_change([*quiet, 0.0], [*loud, 5.5], 0.01) is not None
    assert spread_change([1.0] * 9, [1.0] * 9, 0.01) is None


# Drift


def test_six_boots_that_rise_steadily_get_a_note() -> None:
    steady = "100;100.3;99.9;100.2;99.8;100.1"
    row = judged(steady, "100;100.1;100.2;100.3;100.4;100.5")
    assert "the boots drift by +0.5 % in the order they ran: 1 in 120 by chance" in (
        row.reason or ""
    )
    assert row.verdict != "invalid"
    two = replace(HIGHER, headlines=2)
    assert "drift" not in (judged(steady, "100;100.1;100.2;100.3;100.4;100.5", two).reason or "")


def test_runs_that_warm_up_alike_are_compared_whatever_the_minimum_effect() -> None:
    rng = np.random.default_rng(9)
    sides = [
        [
            BootRuns(
                k=k,
                values=tuple(100 * math.exp(-0.015 * i + rng.normal(0, 0.005)) for i in range(3)),
            )
            for k in range(8)
        ]
        for _ in range(2)
    ]
    row = compare(sides[0], sides[1], replace(HIGHER, min_effect_pct=0.0))
    assert row.verdict == "unclear"
    assert "the drifts do not differ detectably" in (row.reason or "")


def test_drifts_of_runs_differ_where_one_side_stands_still() -> None:
    rng = np.random.default_rng(3)
    rising = [[0.0 + rng.normal(0, 0.1), 1.0, 2.0 + rng.normal(0, 0.1)] for _ in range(6)]
    still = [list(rng.normal(0, 0.1, 3)) for _ in range(6)]
    assert drifts_differ_p(rising, still) < 1e-6
    assert drifts_differ_p(rising, rising) == pytest.approx(1.0)
    assert drifts_differ_p(rising, []) == 1.0
    assert drifts_differ_p([[0.0, 1.0, 2.0]], [[0.0, 0.0, 0.0]]) == 0.0


# Blocks


def test_kernels_that_ran_one_after_the_other_have_no_direction() -> None:
    base = timed([100, 100.1, 99.9, 100, 100.2, 99.8], [0, 1, 2, 3, 4, 5])
    head = timed([95, 95.1, 94.9, 95, 95.2, 94.8], [6, 7, 8, 9, 10, 11])
    row = compare(base, head, HIGHER)
    assert (row.verdict, row.interval_pct) == ("unclear", None)
    assert "all boots of one side ran before" in (row.reason or "")
    assert (row.base.boots, row.head.boots) == (6, 6)
    assert row.change_pct == pytest.approx(-5.0)
    turns = timed([95, 95.1, 94.9, 95, 95.2, 94.8], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    assert compare(base, turns, HIGHER).verdict == "worse"


def test_blocks_are_the_replicates() -> None:
    at = [float(10 * block + i) for block in range(0, 10, 2) for i in range(4)]
    base = timed([100 + 0.1 * (i % 3) for i in range(20)], at)
    head = timed([95 + 0.1 * (i % 3) for i in range(20)], [t + 10 for t in at])
    found = blocks_of(base, head)
    assert found is not None
    assert (len(found.base), len(found.head)) == (5, 5)
    row = compare(base, head, HIGHER)
    assert row.verdict == "worse"
    assert "the sides ran in blocks (5 of base, 5 of head)" in (row.reason or "")
    assert row.base.boots == 20


def test_boots_in_turn_are_no_blocks() -> None:
    turns = [0.0, 3.0, 4.0, 7.0], [1.0, 2.0, 5.0, 6.0]
    assert blocks_of(timed([1.0] * 4, turns[0]), timed([1.0] * 4, turns[1])) is None
    assert blocks_of(parse_boots("1;2;3"), parse_boots("1;2;3")) is None, "not known"


def test_few_runs_are_counted_exactly() -> None:
    assert few_runs_p(3, 3, 2) == pytest.approx(2 / 20)
    assert few_runs_p(6, 6, 4) == pytest.approx(62 / 924)
    assert few_runs_p(5, 7, 12) == pytest.approx(1.0)


def test_a_drift_is_looked_for_in_the_true_order() -> None:
    rising = [100.0, 100.6, 101.2, 101.8, 102.4, 103.0, 103.6, 104.2]
    shuffled = [5.0, 1.0, 6.0, 0.0, 7.0, 3.0, 2.0, 4.0]
    steady = timed([101, 102.5, 101.4, 102, 103, 101.9, 102.6, 101.7], [t + 0.5 for t in range(8)])
    base = timed([rising[int(t)] for t in shuffled], shuffled)
    assert "drift" in (compare(base, steady, HIGHER).reason or "")
    untimed = [replace(b, at=None) for b in base]
    assert "drift" not in (compare(untimed, steady, HIGHER).reason or "")
