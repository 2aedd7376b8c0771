"""Rules of the comparison of two kernels."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.parse import BadSamples, parse_boots
from swingbot.core.stats.resolve import KnownNoise, plan_family
from tests.amount import examples

HIGHER = Rule(better="higher")
plan_comparison = partial(plan_family, pairs=[(0, 1)])
PAIRED = Rule(better="higher", paired=True)

values = st.floats(min_value=50, max_value=200)
sides = st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=6).map(
    lambda boots: [BootRuns(k=k, values=tuple(runs)) for k, runs in enumerate(boots)]
)
rules = st.builds(
    Rule,
    better=st.sampled_from(["higher", "lower", None]),
    paired=st.booleans(),
    layout=st.sampled_from([0.0, 0.002]),
)


def boots(text: str) -> list[BootRuns]:
    return parse_boots(text)


def scaled(side: list[BootRuns], factor: float) -> list[BootRuns]:
    return [replace(b, values=tuple(v * factor for v in b.values)) for b in side]


@settings(max_examples=examples(40))
@given(base=sides, head=sides, rule=rules, power=st.integers(-20, 20))
def test_scaling_every_sample_changes_no_verdict(
    base: list[BootRuns], head: list[BootRuns], rule: Rule, power: int
) -> None:
    plain, other = (
        compare(base, head, rule),
        compare(scaled(base, 2.0**power), scaled(head, 2.0**power), rule),
    )
    assert (plain.verdict, plain.reason) == (other.verdict, other.reason)
    assert plain.change_pct == pytest.approx(other.change_pct, rel=1e-9, abs=1e-9)


def of_runs(*boots: list[float]) -> list[BootRuns]:
    return [BootRuns(k=k, values=tuple(runs)) for k, runs in enumerate(boots)]


@settings(max_examples=examples(40))
@given(base=sides, head=sides, rule=rules)
@example(
    base=of_runs([50.0, 50.0, 50.0, 51.0], [50.0], [50.0], [50.0], [50.0]),
    head=of_runs([50.0, 50.0, 50.0, 51.0], [50.0], [50.0], [51.0], [57.0]),
    rule=Rule(better="higher", paired=True),
)
def test_swapping_sides_negates_the_effect_and_the_verdict(
    base: list[BootRuns], head: list[BootRuns], rule: Rule
) -> None:
    there, back = compare(base, head, rule), compare(head, base, rule)
    assert there.effect is not None
    assert back.effect == pytest.approx(-there.effect, abs=1e-12)
    opposite = {"worse": "better", "better": "worse"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)


@settings(max_examples=examples(40))
@given(base=sides, head=sides, rule=rules)
def test_the_change_is_the_one_of_the_printed_means_and_lies_in_its_interval(
    base: list[BootRuns], head: list[BootRuns], rule: Rule
) -> None:
    row = compare(base, head, rule)
    assert row.base.mean is not None
    assert row.head.mean is not None
    assert row.change_pct == pytest.approx(100 * (row.head.mean / row.base.mean - 1))
    if row.interval_pct is not None and row.change_pct is not None:
        assert row.interval_pct[0] - 1e-9 <= row.change_pct <= row.interval_pct[1] + 1e-9


@settings(max_examples=examples(40))
@given(base=sides, head=sides)
def test_worse_and_better_need_an_interval_without_zero_and_the_least_effect(
    base: list[BootRuns], head: list[BootRuns]
) -> None:
    row = compare(base, head, HIGHER)
    if row.verdict in ("worse", "better"):
        assert row.interval_pct is not None
        assert row.interval_pct[0] * row.interval_pct[1] > 0
        assert abs(row.effect or 0.0) >= math.log(1.01)


@settings(max_examples=examples(40))
@given(base=sides, head=sides, order=st.randoms())
def test_the_order_of_boots_is_irrelevant(
    base: list[BootRuns], head: list[BootRuns], order: object
) -> None:
    shuffled = list(base)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert compare(shuffled, head, PAIRED) == compare(base, head, PAIRED)


@settings(max_examples=examples(40))
@given(side=sides)
def test_a_kernel_does_not_differ_from_itself(side: list[BootRuns]) -> None:
    assume(len(side) > 2)
    assert compare(side, side, PAIRED).verdict == "same"
    # invalid: the boots drift
    assert compare(side, side, HIGHER).verdict in ("same", "unclear", "invalid")


@settings(max_examples=examples(40))
@given(base=sides, extra=st.floats(1.01, 2.0))
def test_a_wider_layout_spread_never_turns_unclear_into_a_verdict(
    base: list[BootRuns], extra: float
) -> None:
    head = scaled(base, extra)
    rows = [
        compare(base, head, replace(HIGHER, layout=layout)) for layout in (0.0, 0.003, 0.01, 0.03)
    ]
    for narrow, wide in itertools.pairwise(rows):
        if narrow.verdict == "unclear":
            assert wide.verdict == "unclear"


def test_more_runs_in_one_boot_are_no_more_evidence() -> None:
    few, many = (
        compare(boots("100;102;98"), boots("95;97;93"), HIGHER),
        compare(boots("100,100;102,102;98,98"), boots("95,95;97,97;93,93"), HIGHER),
    )
    assert few.interval_pct == pytest.approx(many.interval_pct)
    assert (few.base.runs, many.base.runs) == (3, 6)


def test_identical_values_are_not_infinite_evidence() -> None:
    row = compare(boots("100;100;100"), boots("99.95;99.95;99.95"), PAIRED)
    assert row.verdict == "same"
    assert row.interval_pct is not None
    assert row.interval_pct[1] - row.interval_pct[0] > 0.05


def test_pairs_see_what_the_common_shift_hides() -> None:
    base, head = boots("100;110;90;105;95"), boots("98;107.9;88.1;103;93")
    assert compare(base, head, HIGHER).verdict == "unclear"
    assert compare(base, head, PAIRED).verdict == "worse"


def test_a_boot_without_a_partner_is_left_out_and_said() -> None:
    head = [BootRuns(k=k, values=(90.0,)) for k in (0, 1, 3, 4)]
    row = compare(boots("100;100;100;100"), head, PAIRED)
    assert (row.base.boots, row.head.boots) == (3, 3)
    assert row.verdict == "worse"
    assert "2 boots without a partner" in (row.reason or "")


def test_one_boot_a_side_is_unclear_and_says_how_many_are_missing() -> None:
    row = compare(boots("100,101"), boots("50,51"), HIGHER)
    assert row.verdict == "unclear"
    assert row.interval_pct is None
    assert row.base.stddev is None
    assert row.more_boots == 1


def test_unclear_says_how_many_more_boots_would_settle_it() -> None:
    rng = np.random.default_rng(3)
    base, head = (boots(";".join(f"{v}" for v in rng.normal(mean, 2, 4))) for mean in (100, 97))
    row = compare(base, head, HIGHER)
    assert row.verdict == "unclear"
    assert row.more_boots is not None
    assert 2 <= row.more_boots <= 60
    assert f"{row.more_boots} more boots" in (row.reason or "")


def test_a_metric_without_a_direction_changes() -> None:
    assert compare(boots("100;101;100;101"), boots("80;81;80;81"), Rule()).verdict == "changed"


def test_lower_is_better_when_the_rule_says_so() -> None:
    sides = boots("100;101;100;101"), boots("80;81;80;81")
    assert compare(*sides, Rule(better="lower")).verdict == "better"


@pytest.mark.parametrize(("base", "head"), [([], "1;2"), ("1;2", []), ([], [])])
def test_a_missing_side_is_invalid_and_missing_stays_missing(
    base: list[BootRuns] | str, head: list[BootRuns] | str
) -> None:
    row = compare(
        boots(base) if isinstance(base, str) else base,
        boots(head) if isinstance(head, str) else head,
        HIGHER,
    )
    assert row.verdict == "invalid"
    assert row.change_pct is None
    assert None in (row.base.mean, row.head.mean)
    assert "gave a value" in (row.reason or "")


def test_boots_without_values_are_not_zeros() -> None:
    base = [*boots("100;101;99"), BootRuns(k=3, values=())]
    assert compare(base, boots("100;101;99"), HIGHER).base.boots == 3


@pytest.mark.parametrize(
    ("base", "head", "verdict", "change"),
    [
        ("0;0;0;0", "5;6;5;6", "worse", None),
        ("0;0;0", "0;0;0", "same", None),
        ("-10;-10.1;-10;-10.1", "-12;-12.1;-12;-12.1", "better", -20.0),
        ("5;5;5;5", "0;0;0;0", "better", -100.0),
    ],
)
def test_zero_and_negative_values_are_compared_by_their_difference(
    base: str, head: str, verdict: str, change: float | None
) -> None:
    row = compare(boots(base), boots(head), Rule(better="lower"))
    assert row.verdict == verdict
    assert row.change_pct == (None if change is None else pytest.approx(change, abs=0.5))


@pytest.mark.parametrize(
    ("base", "head", "low", "high", "verdict"),
    [
        ("25;25;25;25;25;25", "37;37;37;37;37;37", 43.1, 53.1, "better"),
        ("10;10;10;10", "11;11;11;11", 0.0, 21.1, "unclear"),
        ("10;10;10;10", "10;10;10;10", -9.6, 10.6, "unclear"),
        ("1.5;1.5;1.5;1.5", "1.6;1.6;1.6;1.6", 0.0, 13.9, "unclear"),
        (
            "0.004;0.008;0.004;0.012;0.008;0.004;0.016;0.004",
            "0.004;0.012;0.008;0.004;0.016;0.008;0.004;0.004",
            None,
            None,
            "unclear",
        ),
        ("10,10;10,11;11,10;10,10", "8,9;9,8;8,8;9,9", None, None, "worse"),
    ],
)
def test_rounding_alone_is_no_change(
    base: str, head: str, low: float | None, high: float | None, verdict: str
) -> None:
    """37 +- 0.5 over 25 +- 0.5 is between 36.5 / 25.5 and 37.5 / 24.5."""
    row = compare(boots(base), boots(head), HIGHER)
    assert row.verdict == verdict
    if low is not None:
        assert row.interval_pct == pytest.approx((low, high), abs=0.1)
        assert "steps of" in (row.reason or "")


def test_counts_are_not_rounded() -> None:
    rule = Rule(klass="count", better="higher", form="root", poisson=True)
    assert "steps of" not in (compare(boots("3;3;3;3"), boots("4;4;4;4"), rule).reason or "")


@pytest.mark.parametrize("sd", [0.1, 0.3, 0.5, 1.0])
def test_intervals_of_rounded_values_hold_the_change(sd: float) -> None:
    rng, held, times = np.random.default_rng(7), 0, 300
    for _ in range(times):
        level = 20.0 + rng.uniform(-0.5, 0.5)
        base, head = (
            [
                BootRuns(k=k, values=tuple(map(float, np.round(rng.normal(mean, sd, 2)))))
                for k in range(5)
            ]
            for mean in (level, 1.05 * level)
        )
        interval = compare(base, head, HIGHER).interval_pct
        held += interval is not None and interval[0] <= 5.0 <= interval[1]
    assert held >= 0.93 * times


def test_a_boot_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        compare([BootRuns(k=0, values=(1.0,)), BootRuns(k=0, values=(2.0,))], boots("1;2"), HIGHER)


def test_equal_kernels_rarely_look_different() -> None:
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(2000):
        base, head = (
            [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(rng.normal(100, 2, 4))]
            for _ in range(2)
        )
        alarms += compare(base, head, HIGHER).verdict in ("worse", "better")
    assert alarms <= 22, "more than alpha = 0.005 and three standard errors of it"


def test_what_n_boots_resolve_agrees_with_simulation() -> None:
    rng = np.random.default_rng(6)
    pct = plan_comparison(KnownNoise(run=0.0, boot=0.02), 1, 6, False).resolves_pct
    seen = 0
    for _ in range(500):
        base, head = (
            [
                BootRuns(k=k, values=(float(v),))
                for k, v in enumerate(np.exp(rng.normal(m, 0.02, 6)))
            ]
            for m in (0.0, -math.log1p(pct / 100))
        )
        seen += compare(base, head, HIGHER).verdict == "worse"
    assert 0.72 <= seen / 500 <= 0.9
    assert plan_comparison(KnownNoise(run=0.0, boot=0.02), 1, 1, False).resolves_pct == math.inf


def test_samples_as_typed_become_boots_and_runs() -> None:
    assert parse_boots(" 1, 2 ;3,4.5; ") == [
        BootRuns(k=0, values=(1.0, 2.0)),
        BootRuns(k=1, values=(3.0, 4.5)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no samples"),
        ("1,,2", "boot 1: a run has no value"),
        ("1;2,x", "boot 2: 'x' is not a number"),
        ("1;nan", "finite"),
        ("1;;2", "boot 2"),
    ],
)
def test_samples_typed_wrong_are_explained(text: str, said: str) -> None:
    with pytest.raises(BadSamples, match=said):
        parse_boots(text)


extremes = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(
        [0.0, -0.0, 5e-324, -5e-324, 1e-308, 2.3e-308, 1e-160, 1e160, 9.9e299, -9.9e299, 1.7e308]
    ),
)
extreme_sides = st.lists(
    st.lists(extremes, min_size=0, max_size=4).map(tuple), min_size=0, max_size=7
).map(lambda boots: [BootRuns(k=k, values=runs) for k, runs in enumerate(boots)])
extreme_rules = st.builds(
    Rule,
    better=st.sampled_from(["higher", None]),
    paired=st.booleans(),
    form=st.sampled_from(["ratio", "root", "difference"]),
    points=st.booleans(),
    poisson=st.booleans(),
    unimodal=st.booleans(),
    min_effect_pct=st.sampled_from([0.0, 1e-300, 1.0, 1e6]),
    layout=st.sampled_from([0.0, 0.002]),
)


@settings(max_examples=examples(400))
@given(base=extreme_sides, head=extreme_sides, rule=extreme_rules)
def test_any_floats_give_a_row_of_finite_numbers(
    base: list[BootRuns], head: list[BootRuns], rule: Rule
) -> None:
    row = compare(base, head, rule)
    json.dumps(row.verdict_json(), allow_nan=False)
    if row.verdict in ("unclear", "invalid", "same"):
        assert row.reason


def test_numbers_of_numpy_are_compared() -> None:
    base, head = (
        [BootRuns(k=k, values=tuple(level * np.array([1.0, 1.001]))) for k in range(5)]
        for level in (100.0, 90.0)
    )
    assert compare(base, head, HIGHER).verdict == "worse"
