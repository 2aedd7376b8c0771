"""The result of a comparison by test: folding, order, and positions on the common axis."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swingbot.web.plots.comparison_plot import measured_tests, result_of

Row = dict[str, Any]


def row(metric: str = "m.ops", **more: Any) -> Row:
    side = {"mean": 100.0, "stddev": 1.0, "boots": 3, "runs": 9}
    return {
        "testbox": "box",
        "unit_job": "job",
        "metric": metric,
        "alias_of": None,
        "counter": False,
        "verdict": "worse",
        "change_pct": -10.0,
        "interval_pct": [-12.0, -8.0],
        "min_effect_pct": 1.0,
        "base": side,
        "head": side,
        "label": None,
        **more,
    }


def sample(value: float, side: str = "head", boot: str = "x1", **more: Any) -> Row:
    key = {"testbox": "box", "unit_job": "job", "metric": "m.ops"}
    return key | {"side": side, "boot": boot, "value": value, **more}


def places(strip: str, class_: str, name: str = "cx") -> list[float]:
    """Positions of elements of a class, in percent of the width."""
    elements = [one for one in re.findall(r"<[^>]*>", strip) if f'class="{class_}"' in one]
    found = [re.search(rf'\b{name}="([\d.]+)%"', one) for one in elements]
    return [float(one[1]) for one in found if one]


def test_an_alias_is_folded_into_its_original_and_counters_stand_apart() -> None:
    rows = [
        row(),
        row("m.total", alias_of="m.ops"),
        row("m.total", alias_of="m.ops", testbox="other"),
        row("perf-stat.cycles", counter=True, verdict="changed", change_pct=30.0),
        row("perf-stat.faults", counter=True, verdict="same"),
    ]
    test, elsewhere = measured_tests(rows)
    assert [(line.row["metric"], line.aliases) for line in test.table.lines] == [
        ("m.ops", ("m.total",))
    ]
    # its original was not measured there, so it repeats nothing
    assert [(line.row["metric"], line.aliases) for line in elsewhere.table.lines] == [
        ("m.total", ())
    ]
    assert elsewhere.testbox == "other" and not elsewhere.counters.lines
    assert len(test.counters.lines) == 2
    assert test.counter_words == "2 counters, 1 changed: perf-stat.cycles +30.0\u00a0%"


def test_tests_keep_the_order_of_the_rows_and_share_one_axis() -> None:
    rows = [row(change_pct=-10.0), row(testbox="other", change_pct=-2.0, interval_pct=[-3.0, -1.0])]
    first, second = measured_tests(rows)
    assert (first.testbox, second.testbox) == ("box", "other")
    assert first.table.axis == second.table.axis
    (worst,) = places(first.table.lines[0].strip, "dot")
    (other,) = places(second.table.lines[0].strip, "dot")
    assert worst < other


def test_each_boot_is_one_dot_at_the_mean_of_its_runs() -> None:
    samples = [sample(90.0), sample(92.0), sample(89.0, boot="x2"), sample(100.0, "base", "x3")]
    ((line,),) = [test.table.lines for test in measured_tests([row()], samples)]
    assert len(places(line.strip, "head-dot")) == 2
    assert "head, boot x1: \u22129.0\u00a0% of base" in line.strip
    (base,) = places(line.strip, "base-dot")
    assert [base] == places(line.strip, "zero", "x1"), "base's mean is zero of the axis"


def test_an_interval_far_beyond_the_changes_ends_at_the_axis_without_a_cap() -> None:
    ((line,),) = [test.table.lines for test in measured_tests([row(interval_pct=[-1000.0, -8.0])])]
    assert len(places(line.strip, "bar", "x1")) == 2, "the line and one cap"
    assert min(places(line.strip, "bar", "x1")) == 0.0


def test_what_the_page_says_first_leaves_out_counters_aliases_and_what_did_not_change() -> None:
    rows = [
        row(),
        row("m.other", verdict="unclear"),
        row("m.total", alias_of="m.ops"),
        row("perf-stat.cycles", counter=True, verdict="changed"),
    ]
    result = result_of(rows, ())
    assert [one["metric"] for one in result["headlines"]] == ["m.ops"]
    assert result["unclear"] == 1


numbers = st.none() | st.floats(-1e9, 1e9)


@given(
    st.lists(
        st.builds(
            row,
            change_pct=numbers,
            interval_pct=st.none()
            | st.lists(numbers, min_size=2, max_size=2).map(
                lambda ends: ends if None in ends else sorted(ends)  # type: ignore[type-var]
            ),
            min_effect_pct=st.none() | st.floats(0, 1e6),
        ),
        max_size=4,
    ),
    st.lists(st.floats(-1e12, 1e12), max_size=4),
)
def test_whatever_the_numbers_nothing_is_drawn_outside_of_the_cell(
    rows: list[Row], values: list[float]
) -> None:
    samples = [sample(value, boot=f"x{n}") for n, value in enumerate(values)]
    for test in measured_tests(rows, samples):
        for line in test.table.lines:
            drawn = [float(text) for text in re.findall(r'="([-\d.e+]+)%"', line.strip)]
            assert all(0.0 <= one <= 100.0 for one in drawn), line.strip
