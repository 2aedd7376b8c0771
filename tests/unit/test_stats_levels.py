"""Rules of levels: wild runs and boots, drift, nested spreads, classes of metrics, lost runs,
blocks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.parse import parse_boots
from swingbot.core.stats.robust import median, middle, wild
from swingbot.core.stats.rules import CLASSES, rule_for
from swingbot.core.stats.trend import concordance, drift, together_p, trend_p
from tests.amount import examples

HIGHER = Rule(better="higher")
STEADY = "100;101;99;100.5;99.5;100.2;99.8;100.1"


def judged(base: str, head: str, rule: Rule = HIGHER) -> ComparisonRow:
    return compare(parse_boots(base), parse_boots(head), rule)


def normal_boots(
    rng: np.random.Generator, level: float, boots: int, runs: int = 1, sd: float = 1.0
) -> list[BootRuns]:
    return [
        BootRuns(k=k, values=tuple(float(v) for v in rng.normal(level, sd, runs)))
        for k in range(boots)
    ]


# Wild runs and boots


def test_one_wild_boot_does_not_hide_a_change() -> None:
    base, head = STEADY, "90;91;89;90.5;89.5;90.2;89.8;9.0"
    row = judged(base, head)
    assert row.verdict == "worse"
    assert row.level == "mean of the middle 6 of 8 boot means"
    assert "boot 7 of head" in (row.reason or "")
    assert (
        compare(parse_boots(base), parse_boots(head), replace(HIGHER, robust=False)).verdict
        == "unclear"
    )


def test_the_robust_level_is_the_one_that_is_printed_and_gives_the_percentage() -> None:
    row = judged(STEADY, "90;91;89;90.5;89.5;90.2;89.8;9.0")
    assert row.head.mean == pytest.approx(np.mean([89, 89.5, 89.8, 90, 90.2, 90.5]))
    assert row.base.mean is not None
    assert row.head.mean is not None
    assert row.change_pct == pytest.approx(100 * (row.head.mean / row.base.mean - 1))
    assert row.head.boots == 8, "wild boots stay in n and in the spread"
    assert row.head.stddev == pytest.approx(
        np.std([90, 91, 89, 90.5, 89.5, 90.2, 89.8, 9.0], ddof=1)
    )


@pytest.mark.parametrize("wild_boot", [9.0, 0.0, -95.0])
def test_wild_boots_that_outweigh_the_others_leave_no_direction(wild_boot: float) -> None:
    row = judged(STEADY, f"110;111;109;110.5;109.5;110.2;109.8;110.1;{wild_boot};{wild_boot}")
    assert row.verdict == "unclear"
    assert row.interval_pct is not None
    assert row.interval_pct[0] < 0.0 < row.interval_pct[1]
    assert "only one side has outliers, and with them the change is -" in (row.reason or "")


@pytest.mark.parametrize("wild_boots", ["9", "95", "95;95"])
def test_one_wild_boot_or_some_that_outweigh_nothing_leave_the_direction(wild_boots: str) -> None:
    row = judged(STEADY, f"110;111;109;110.5;109.5;110.2;109.8;110.1;109.9;110;{wild_boots}")
    assert row.verdict == "better"
    assert row.level is not None
    assert row.interval_pct is not None
    assert row.interval_pct[0] > 0.0


def test_no_change_above_counts_the_outliers_of_one_side() -> None:
    head = slow_runs(2, 0.0)
    head[3] = replace(head[3], values=(*head[3].values[:9], 60.0))
    row = compare(slow_runs(1, 0.0), head, replace(HIGHER, min_effect_pct=2.0))
    assert row.verdict == "same"
    assert row.level == "mean of boot medians"
    assert row.margin_pct is not None
    without = compare(slow_runs(1, 0.0), slow_runs(2, 0.0), HIGHER).margin_pct
    assert without is not None
    assert row.margin_pct > without + 0.3, "1 run in 100 takes 40 % off"


def test_wild_runs_make_boots_count_by_their_medians() -> None:
    base = "100,101,99,100;100,99,101,100;101,100,99,100"
    row = judged(base, "97,98,96,97;97,97,98,20;96,97,98,97")
    assert row.level == "mean of boot medians"
    assert row.head.mean == pytest.approx(97.0)
    assert "run 4 in boot 1 of head" in (row.reason or "")
    assert judged(base, "97,98,96,97;97,97,98,96;96,97,98,97").level is None


def test_a_wild_pair_is_left_out_on_both_sides() -> None:
    base = "100;110;90;105;95;102"
    row = judged(base, "95;104.5;85.5;99.75;90.25;20", replace(HIGHER, paired=True))
    assert row.verdict == "worse"
    assert row.level == "mean of boot means in the middle 4 of 6 pairs"
    assert row.change_pct == pytest.approx(-5.0, abs=0.01)


def test_what_all_boots_do_at_the_same_run_is_habit_and_not_wild() -> None:
    base, head = (
        ";".join(
            ",".join(f"{level + k / 10 + (20 if run == 0 else run / 100)}" for run in range(8))
            for k in range(6)
        )
        for level in (100, 100)
    )
    assert judged(base, head, replace(HIGHER, paired=True)).level is None


def test_clean_data_are_called_wild_as_rarely_as_stated() -> None:
    rng = np.random.default_rng(11)
    called = sum(
        bool(wild([list(rng.normal(0, 1, 8)), list(rng.normal(3, 1, 6))], 0.01, 0.0))
        for _ in range(3000)
    )
    assert called <= 30 + 3 * math.sqrt(30)


def test_several_wild_values_do_not_hide_each_other() -> None:
    rng = np.random.default_rng(12)
    values = list(rng.normal(0, 1, 20))
    values[3], values[7], values[15] = 40.0, 41.0, -35.0
    assert wild([values], 0.01, 0.0) == [(0, 3), (0, 7), (0, 15)]


def test_a_far_value_that_does_not_matter_is_not_wild() -> None:
    values = [0.0, 1e-6, -1e-6, 2e-6, -2e-6, 1e-6, 0.0, 1e-3]
    assert wild([values], 0.01, 0.0)
    assert not wild([values], 0.01, 0.01)


def test_two_modes_are_no_outliers() -> None:
    assert (
        judged("100;100.1;99.9;100;96;96.1;95.9;96", "100;100.1;96;99.9;96;96.1;95.9;100").level
        is None
    )


def test_the_trimmed_mean_is_yuens() -> None:
    values = [3.0, 1.0, 4.0, 1.5, 100.0, 9.0, 2.0, 6.0, 5.0, 3.5]
    winsorised = [3.0, 2.0, 4.0, 2.0, 6.0, 6.0, 2.0, 6.0, 5.0, 3.5]
    found = middle(values)
    assert [values[i] for i in found.kept] == [3.0, 4.0, 2.0, 6.0, 5.0, 3.5]
    assert found.variance == pytest.approx(9 * np.var(winsorised, ddof=1) / 5)


@settings(max_examples=examples(50))
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_the_median_is_numpys(values: list[float]) -> None:
    assert median(values) == pytest.approx(float(np.median(values)))


# Drift


def test_boots_that_drift_make_a_comparison_invalid() -> None:
    row = judged("100;101;102;103;104;105;106", "100.5;101.5;102.5;103.5;104.5;105.5;106.5")
    assert row.verdict == "invalid"
    assert "drift by +6 % in the order they ran" in (row.reason or "")
    assert row.change_pct is not None, "what was measured is still shown"


def test_a_drift_too_small_to_explain_the_change_is_a_note() -> None:
    row = judged("100;100.3;100.6;100.9;101.2;101.5", "80;80.3;80.6;80.9;81.2;81.5")
    assert row.verdict == "worse"
    assert "drift" in (row.reason or "")


def test_a_drift_common_to_pairs_cancels() -> None:
    base, head = "100;101;102;103;104;105;106", "95.1;95.9;97;97.9;98.7;99.8;100.6"
    assert judged(base, head, replace(HIGHER, paired=True)).verdict == "worse"


CALM = "100,100.2,99.9;99.8,100.1,100;100.1,99.9,100.2;100,99.8,100.1;99.9,100,99.8"
WARMING = "90,95,100;91,95,99;90,94,100;91,96,101;90,95,100"


def test_runs_that_drift_in_the_boots_of_one_side_make_a_comparison_invalid() -> None:
    for row in (judged(CALM, WARMING), judged(WARMING, CALM)):
        assert row.verdict == "invalid"
        assert "the runs drift within their boots" in (row.reason or "")
        assert "+11 % in" in (row.reason or "")


def test_runs_that_drift_alike_on_both_sides_cancel_and_are_reported() -> None:
    row = judged(
        WARMING, "81,85,90;82,85,89;81,85,90;82,86,91;81,86,90", replace(HIGHER, paired=True)
    )
    assert row.verdict == "worse"
    assert "do not differ detectably, so they cancel (warmup: 1 drops the first run)" in (
        row.reason or ""
    )


def test_a_few_boots_whose_runs_rise_are_chance() -> None:
    assert "drift" not in (
        judged("100,100.1,100.2;100,99.9,100", "90,95,100;91,95,99").reason or ""
    )
    assert together_p([[1.0, 2.0, 3.0]] * 4) == pytest.approx(2 / 6**4)
    assert together_p([[1.0, 2.0]] * 40) == together_p([]) == 1.0


def test_few_boots_are_never_called_drifting() -> None:
    assert trend_p([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]) > 0.05
    assert trend_p([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]) > 0.002
    assert trend_p([]) == 1.0


@pytest.mark.parametrize("sizes", [(4, 4), (5, 5), (8,), (6, 9), (40, 40)])
def test_steady_boots_of_any_noise_are_called_drifting_as_rarely_as_stated(
    sizes: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(list(sizes))
    for alpha in (0.02, 0.1):
        called = sum(
            trend_p([list(rng.standard_cauchy(n)) for n in sizes]) < alpha for _ in range(600)
        )
        assert called <= 600 * alpha + 3 * math.sqrt(600 * alpha)


@settings(max_examples=examples(60))
@given(st.lists(st.integers(-50, 50), min_size=3, max_size=12, unique=True))
def test_the_drift_test_of_one_series_is_kendalls(values: list[int]) -> None:
    assert trend_p([values]) == pytest.approx(
        float(kendalltau(range(len(values)), values, method="exact").pvalue), abs=1e-12
    )


@settings(max_examples=examples(60))
@given(st.lists(st.integers(-5, 5), max_size=15))
def test_concordance_counts_rises_less_falls(values: list[int]) -> None:
    later = [(a, b) for i, a in enumerate(values) for b in values[i + 1 :]]
    assert concordance(values) == sum((b > a) - (b < a) for a, b in later)


def test_a_long_series_uses_the_normal_form_and_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    values = list(rng.normal(0, 1, 31) + np.arange(31) / 30)
    assert trend_p([values]) == pytest.approx(
        float(kendalltau(range(31), values, method="exact").pvalue), rel=0.05
    )


def test_drift_is_the_fall_of_a_straight_line() -> None:
    assert drift([5.0, 4.0, 3.0, 2.0]) == pytest.approx(-3.0)


# Nested boots


def test_both_spreads_travel_along() -> None:
    row = judged("99,101;109,111;89,91", "100;100;100")
    assert row.base.stddev == pytest.approx(10.0)
    assert row.base.stddev_within == pytest.approx(math.sqrt(2.0))
    assert row.head.stddev_within is None


def test_boots_that_agree_by_accident_are_no_more_alike_than_their_runs_allow() -> None:
    known = replace(HIGHER, unimodal=True)
    assert judged("90,110;95,105", "85,105;90,100", known).verdict == "unclear"
    assert judged("100,100.01;99.99,100", "95,95.01;94.99,95", known).verdict == "worse"


def test_more_of_the_same_narrows_the_interval() -> None:
    rng = np.random.default_rng(2)
    base, head = normal_boots(rng, 100, 4), normal_boots(rng, 99, 4)
    widths = []
    for copies in (1, 2, 4, 8):
        sides = [
            [replace(b, k=b.k + 10 * c) for c in range(copies) for b in side]
            for side in (base, head)
        ]
        row = compare(sides[0], sides[1], HIGHER)
        assert row.interval_pct is not None
        widths.append(row.interval_pct[1] - row.interval_pct[0])
    assert widths == sorted(widths, reverse=True)


def test_few_boots_against_many_are_not_believed_for_looking_alike() -> None:
    many = normal_boots(np.random.default_rng(3), 100, 30, sd=2.0)
    assert compare(parse_boots("103.00;103.01"), many, HIGHER).verdict == "unclear"


def test_boots_of_one_block_count_as_one_pair() -> None:
    base = [
        BootRuns(k=k, values=(100.0 + 10 * (k // 2) + v,), block=k // 2)
        for k, v in enumerate((1, -1, 2, -2, 1, -1, 0, 0))
    ]
    head = [BootRuns(k=k, values=((100.0 + 10 * k) * 0.95,), block=k) for k in range(4)]
    row = compare(base, head, replace(HIGHER, paired=True))
    assert (row.verdict, row.base.boots, row.head.boots) == ("worse", 8, 4)
    assert row.change_pct == pytest.approx(-5.0)


def test_thousands_of_boots_are_exact() -> None:
    base = [BootRuns(k=k, values=(1e9 + k % 2,)) for k in range(5000)]
    row = compare(base, [replace(b, values=(b.values[0] + 4e7,)) for b in base], HIGHER)
    assert row.verdict == "better"
    assert row.base.mean == 1e9 + 0.5
    assert row.base.stddev == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("size", [1e-290, 1e50, 9e99])
def test_numbers_of_any_size_are_compared(size: float) -> None:
    base, head = (
        [BootRuns(k=k, values=(v * size, v * size)) for k, v in enumerate(side)]
        for side in ((1.0, 1.01, 0.99, 1.0), (0.8, 0.81, 0.79, 0.8))
    )
    row = compare(base, head, HIGHER)
    assert row.verdict == "worse"
    assert row.change_pct == pytest.approx(-20.0)


def test_a_number_beyond_the_doubles_is_invalid() -> None:
    assert "too large" in (
        compare([BootRuns(k=0, values=(1e301,))], parse_boots("1;2"), HIGHER).reason or ""
    )


# Lost runs and what is known from elsewhere


def test_a_side_that_lost_many_runs_is_invalid_and_says_how_many() -> None:
    head = [BootRuns(k=k, values=(90.0, 91.0), lost=2) for k in range(4)]
    row = compare(parse_boots("100,101;101,100;99,100;100,100"), head, HIGHER)
    assert row.verdict == "invalid"
    assert "8 of 16 runs of head gave no result" in (row.reason or "")
    assert row.head.boots == 4


def test_a_boot_that_gave_nothing_counts_as_lost_and_not_as_zero() -> None:
    head = [*parse_boots("90;91;90;89;90;91"), BootRuns(k=6, values=(), lost=1)]
    row = compare(parse_boots("100;101;100;99;100;101"), head, HIGHER)
    assert row.verdict == "worse"
    assert "1 of 7 runs of head" in (row.reason or "")
    assert row.head.boots == 6


def test_what_is_known_against_a_comparison_makes_it_invalid_with_its_numbers() -> None:
    row = compare(
        parse_boots("100;101;100"),
        parse_boots("80;81;80"),
        HIGHER,
        invalid="microcode differs: 1 in base, 2 in head",
    )
    assert (row.verdict, row.reason) == ("invalid", "microcode differs: 1 in base, 2 in head")
    assert row.change_pct == pytest.approx(-19.9, abs=0.1)


# Verdicts and their words


def test_same_says_the_margin_that_was_shown() -> None:
    row = judged("100;100.01;99.99;100", "100;100.02;99.98;100")
    assert row.verdict == "same"
    assert row.margin_pct is not None
    assert 0.01 < row.margin_pct < 0.1
    said = float((row.reason or "").split("above ")[1].split(" %")[0])
    assert row.margin_pct <= said <= 1.1 * row.margin_pct


@settings(max_examples=examples(60))
@given(
    st.lists(st.floats(99, 101), min_size=2, max_size=6),
    st.lists(st.floats(99, 101), min_size=2, max_size=6),
    st.floats(0.1, 20),
)
def test_same_never_claims_more_than_was_shown_nor_less_than_was_asked(
    base: list[float], head: list[float], minimum: float
) -> None:
    sides = [[BootRuns(k=k, values=(v,)) for k, v in enumerate(side)] for side in (base, head)]
    row = compare(sides[0], sides[1], replace(HIGHER, min_effect_pct=minimum))
    if row.verdict == "same":
        assert row.margin_pct is not None
        said = float((row.reason or "").split("above ")[1].split(" %")[0])
        assert row.margin_pct * (1 - 1e-9) <= said <= minimum * (1 + 1e-5)


def test_two_equal_boots_of_a_repeatable_testbox_prove_a_large_change_and_no_small_one() -> None:
    paired = replace(HIGHER, paired=True)
    assert judged("100;100", "95;95", paired).verdict == "worse"
    assert judged("100;100", "99;99", paired).verdict == "unclear"
    assert judged("100;103", "95;98", HIGHER).verdict == "unclear"


# Classes of metrics


def test_small_counts_spread_at_least_like_poisson_counts() -> None:
    base, head = "9;9;9;9", "12;12;12;12"
    assert judged(base, head, rule_for("kpi", "lower", 1.0)).verdict == "worse"
    assert judged(base, head, rule_for("count", "lower", 1.0)).verdict == "unclear"
    assert (
        judged(
            "9000;9000;9000;9000", "12000;12000;12000;12000", rule_for("count", "lower", 1.0)
        ).verdict
        == "worse"
    )


def test_counts_of_zero_can_be_compared() -> None:
    rule = rule_for("count", "lower", 5.0)
    row = judged("0;0;0;0", "40;38;43;41", rule)
    assert (row.verdict, row.change_pct, row.interval_pct) == ("worse", None, None)
    assert judged("0;0;0", "0;0;1", rule).verdict == "unclear"
    zero = judged("0;0;0", "0;0;0", rule)
    assert (zero.verdict, zero.reason) == ("same", "every value of both sides is 0")


def test_the_interval_of_a_count_covers_the_true_ratio() -> None:
    rng = np.random.default_rng(9)
    rule, covered = rule_for("count", "lower", 5.0), 0
    for _ in range(400):
        base, head = (
            [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(rng.poisson(rate, 5))]
            for rate in (30, 45)
        )
        interval = compare(base, head, rule).interval_pct
        assert interval is not None
        covered += interval[0] <= 50 <= interval[1]
    assert covered >= 368, "95 % of 400 less three standard errors"


def test_medians_of_whole_numbers_hide_a_change() -> None:
    def side(rng: np.random.Generator, level: float) -> list[BootRuns]:
        runs = np.round(rng.normal(level, 0.2, (8, 9)))
        runs[::4, 0] = 40.0  # wild
        return [BootRuns(k=k, values=tuple(map(float, boot))) for k, boot in enumerate(runs)]

    for seed in range(30):
        rng = np.random.default_rng(seed)
        row = compare(side(rng, 20.0), side(rng, 20.45), HIGHER)
        assert "boot medians" in (row.level or "")
        assert row.verdict != "same"
        assert row.interval_pct is not None
        assert row.interval_pct[0] < 2.25 < row.interval_pct[1]


def test_what_rounding_may_change_has_no_exponent() -> None:
    reason = judged("1;1;1;1", "2;2;2;2").reason or ""
    assert "their rounding alone may change the result by 110 %" in reason


def test_shares_are_compared_in_points() -> None:
    rule = rule_for("share", "lower", 1.0)
    row = judged("0.5;0.52;0.48", "0.9;0.91;0.89", rule)
    assert row.verdict == "same", "0.4 points, though 80 % of the level"
    assert "points" in (row.reason or "")
    row = judged("40.5;40.2;40.8;40.5", "44.1;44.4;43.9;44.1", rule)
    assert row.verdict == "worse"
    assert row.points is not None
    assert row.points.change is not None
    assert row.points.change == pytest.approx(3.625, abs=0.01)
    assert row.points.interval is not None
    assert row.points.interval[0] < row.points.change < row.points.interval[1]
    assert row.change_pct == pytest.approx(100 * row.points.change / 40.5)


@pytest.mark.parametrize(
    ("klass", "bad"), [("time", "0"), ("time", "-1"), ("count", "-1"), ("share", "-0.1")]
)
def test_values_that_a_class_cannot_have_are_invalid(klass: str, bad: str) -> None:
    row = judged(f"1;2;{bad}", "1;2;3", rule_for(klass, "lower", 1.0))
    assert row.verdict == "invalid"
    assert f"a {klass} of {bad} is not possible" in (row.reason or "")


@settings(max_examples=examples(60))
@given(
    base=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=3), min_size=1, max_size=7),
    head=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=3), min_size=1, max_size=7),
    klass=st.sampled_from([c for c in CLASSES if c != "time"]),
    paired=st.booleans(),
)
def test_swapping_negates_in_every_class(
    base: list[list[int]], head: list[list[int]], klass: str, paired: bool
) -> None:
    sides = [
        [BootRuns(k=k, values=tuple(map(float, runs))) for k, runs in enumerate(side)]
        for side in (base, head)
    ]
    rule = rule_for(klass, "higher", 2.0, paired=paired)
    there, back = compare(sides[0], sides[1], rule), compare(sides[1], sides[0], rule)
    assert back.verdict == {"worse": "better", "better": "worse"}.get(there.verdict, there.verdict)
    assert there.effect is not None
    assert back.effect == pytest.approx(-there.effect, abs=1e-9)
    assert back.p == pytest.approx(there.p) if there.p is not None else back.p is None


@settings(max_examples=examples(60))
@given(
    boots=st.lists(
        # what no benchmark measures, 1e-308, is refused with a reason of its own
        st.lists(
            st.one_of(st.just(0.0), st.floats(1e-100, 1e3), st.floats(-1e3, -1e-100)),
            min_size=1,
            max_size=4,
        ),
        min_size=2,
        max_size=12,
    ),
    klass=st.sampled_from(CLASSES),
    paired=st.booleans(),
    order=st.randoms(),
)
def test_any_numbers_give_a_stated_verdict_and_the_order_of_listing_is_irrelevant(
    boots: list[list[float]], klass: str, paired: bool, order: object
) -> None:
    half = len(boots) // 2
    sides = [
        [BootRuns(k=k, values=tuple(runs)) for k, runs in enumerate(side)]
        for side in (boots[:half], boots[half:])
    ]
    rule = rule_for(klass, None, 1.0, paired=paired)
    row = compare(sides[0], sides[1], rule)
    assert "orders of magnitude" not in (row.reason or "")
    for side in sides:
        order.shuffle(side)  # type: ignore[attr-defined]
    assert compare(sides[0], sides[1], rule) == row
    if row.verdict not in ("changed",):
        assert row.reason
    if row.base.mean and row.head.mean is not None and row.change_pct is not None:
        assert row.change_pct == pytest.approx(
            100 * (row.head.mean - row.base.mean) / abs(row.base.mean)
        )


def slow_runs(seed: int, share: float, boots: int = 10, runs: int = 10) -> list[BootRuns]:
    """Boots of which `share` of the runs take a path of half the speed."""
    rng = np.random.default_rng(seed)
    return [
        BootRuns(
            k=k,
            values=tuple(
                float(100.0 * rng.normal(1.0, 0.006) * (0.5 if rng.random() < share else 1.0))
                for _ in range(runs)
            ),
        )
        for k in range(boots)
    ]


@pytest.mark.parametrize(("share", "nulls"), [(0.15, 2), (0.05, 5), (0.02, 25)])
def test_a_slow_path_of_one_kernel_is_no_outlier(share: float, nulls: int) -> None:
    rows = [compare(slow_runs(n, 0.0), slow_runs(n + 1000, share), HIGHER) for n in range(60)]
    assert sum(row.verdict == "same" for row in rows) <= nulls
    held = [row for row in rows if row.interval_pct and row.interval_pct[0] <= -50.0 * share]
    assert len(held) >= 0.8 * len(rows)
    if share == 0.15:
        said = [row for row in rows if "a path that 1 run in" in (row.reason or "")]
        assert len(said) >= 0.8 * len(rows)
        assert sum(row.verdict == "worse" for row in rows) >= len(rows) / 3


def test_a_slow_path_of_both_kernels_is_left_out() -> None:
    rows = [compare(slow_runs(n, 0.05), slow_runs(n + 1000, 0.05), HIGHER) for n in range(60)]
    assert sum(row.verdict == "same" for row in rows) >= 55


def test_a_path_may_give_zero() -> None:
    head = [replace(boot, values=(*boot.values[:9], 0.0)) for boot in slow_runs(2, 0.0)]
    row = compare(slow_runs(1, 0.0), head, HIGHER)
    assert row.verdict == "worse"
    assert "10 of 100 runs of head are about -100 % off the others" in (row.reason or "")
    assert "; p1 of the runs 9" in (row.reason or "") and (row.reason or "").endswith("-> 0")
    tail = row.tail
    assert tail is not None and (tail.side, tail.far, tail.other_far) == ("head", 10, 0)
    assert (tail.percentile, tail.head) == (1, 0.0)
    turned = compare(head, slow_runs(1, 0.0), HIGHER).tail
    assert turned is not None and (turned.side, turned.base) == ("base", 0.0)
    assert compare(slow_runs(1, 0.0), slow_runs(2, 0.0), HIGHER).tail is None
    assert ComparisonRow.from_json(row.to_json()).tail == tail


def test_slow_runs_of_one_boot_are_no_path_of_its_kernel() -> None:
    base, head = slow_runs(1, 0.0), slow_runs(2, 0.0)
    head[3] = replace(head[3], values=(*(v / 2 for v in head[3].values[:8]), 100.0, 100.2))
    row = compare(base, head, HIGHER)
    assert "a path that" not in (row.reason or "")
    assert row.verdict != "worse"
