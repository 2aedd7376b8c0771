"""Plots of experiments hold every run and every interval, whatever the names and numbers."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.model.comparison_row import Bounds, ComparisonRow, Points, Side, Verdict
from swingbot.web.plots.experiment_plot import BootValues, PlotRow, effects_plot, values_plot
from swingbot.web.plots.plot import PlotSubject

SHOWN = PlotSubject(
    testbox="vm-icount",
    unit_job="page-fault",
    metric="page-fault.ops",
    unit="ops/s",
    better="higher",
    label="emulated",
)
SIDE = Side(boots=3, runs=9, mean=1.0, stddev=0.1)
TAG = "{http://www.w3.org/2000/svg}"


def a_row(
    change: float | None,
    interval: Bounds | None,
    verdict: Verdict = "worse",
    points: Points | None = None,
) -> ComparisonRow:
    return ComparisonRow(
        better="higher",
        base=SIDE,
        head=SIDE,
        change_pct=change,
        interval_pct=interval,
        verdict=verdict,
        reason="because",
        min_effect_pct=2.0,
        margin_pct=0.8,
        points=points,
    )


def elements(text: str, class_: str) -> list[ElementTree.Element]:
    return [found for found in ElementTree.fromstring(text).iter() if found.get("class") == class_]


def words(text: str) -> str:
    return " ".join("".join(e.itertext()) for e in ElementTree.fromstring(text).iter(f"{TAG}text"))


def a_kernel(name: str, *boots: list[float]) -> PlotRow:
    return PlotRow(
        name=name, boots=[BootValues(boot=f"x{k}", values=v) for k, v in enumerate(boots)]
    )


def test_every_run_is_a_disc_on_one_axis_and_every_kernel_has_a_mean() -> None:
    text = values_plot(
        SHOWN, [a_kernel("v6.1", [1.0, 2.0], [3.0]), a_kernel("fix", [10.0]), PlotRow(name="late")]
    )
    discs = elements(text, "base run")
    assert len(discs) == 4 and len(elements(text, "head mean")) == 2
    xs = [float(disc.attrib["cx"]) for disc in discs]
    assert xs == sorted(xs), "one axis for all kernels"
    assert "no value yet" in words(text)


def test_thousands_of_runs_are_drawn_as_boots() -> None:
    text = values_plot(SHOWN, [a_kernel("v6.1", *[[1.0, 2.0, 3.0]] * 2000)])
    assert len(elements(text, "base run")) == 2000 and "mean of a boot" in words(text)


def test_a_change_is_coloured_by_its_verdict_and_a_reference_stands_on_zero() -> None:
    rows = [
        PlotRow(name="v6.1"),
        PlotRow(name="a", change=a_row(-6.0, (-6.5, -5.5), "worse")),
        PlotRow(name="b", change=a_row(5.0, (4.0, 6.0), "better")),
        PlotRow(name="c", change=a_row(0.1, (-0.4, 0.6), "same")),
        PlotRow(name="d", change=a_row(1.0, (-4.0, 6.0), "unclear")),
        PlotRow(name="e", change=a_row(None, None, "invalid")),
    ]
    text = effects_plot(SHOWN, rows, "above")
    for verdict in ("worse", "better", "same", "unclear"):
        assert len(elements(text, verdict)) == 1
    assert elements(text, "invalid") == []
    said = words(text)
    for part in ("reference", "\u22126.0 %", "+5.0 %", "= 0.8 %", "(+1.0 %)", "invalid: because"):
        assert part in said
    (band,) = elements(text, "mark")
    (zero,) = [e for e in elements(text, "axis") if e.attrib["x1"] == e.attrib["x2"]]
    middle = float(band.attrib["x"]) + float(band.attrib["width"]) / 2
    assert math.isclose(float(zero.attrib["x1"]), middle, abs_tol=0.2)


def test_an_interval_that_dwarfs_all_else_is_cut_at_the_axis() -> None:
    rows = [
        PlotRow(name="a", change=a_row(-6.0, (-6.5, -5.5))),
        PlotRow(name="b", change=a_row(1.0, (-99.0, 90_000.0), "unclear")),
    ]
    bars = elements(effects_plot(SHOWN, rows, "first"), "bar")
    xs = [float(bar.attrib[end]) for bar in bars for end in ("x1", "x2")]
    assert all(0 <= x <= 556 for x in xs)
    assert len(bars) == 3 + 1, "an end beyond the axis has no cap"


def test_shares_are_plotted_in_points() -> None:
    row = a_row(300.0, (100.0, 900.0), "changed", Points(change=1.5, interval=(1.0, 2.0)))
    said = words(effects_plot(SHOWN, [PlotRow(name="a", change=row)], "first"))
    assert "points" in said and "+1.5" in said


def test_nothing_to_plot_is_a_sentence() -> None:
    assert "No run" in words(values_plot(SHOWN, [PlotRow(name="a")]))
    rows = [PlotRow(name="a", change=a_row(None, None, "invalid"))]
    assert "No change" in words(effects_plot(SHOWN, rows, "first"))


numbers = st.floats(-1e12, 1e12)


@given(st.text(max_size=60), st.lists(numbers, min_size=1, max_size=5), numbers, numbers)
def test_any_name_and_any_number_make_a_picture(
    name: str, values: list[float], change: float, end: float
) -> None:
    ElementTree.fromstring(values_plot(SHOWN, [a_kernel(name, values)]))
    low, high = sorted((change, end))
    row = PlotRow(name=name, change=a_row(change, (low, high)))
    ElementTree.fromstring(effects_plot(SHOWN, [row, PlotRow(name=name)], "above"))
