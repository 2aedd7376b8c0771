"""The plot of a table has every run and every interval, whatever the names and numbers."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.model.comparison_row import Bounds, ComparisonRow, Points, Side, Verdict
from swingbot.web.plots.drawing import PlotSubject
from swingbot.web.plots.table_plot import MOST_MARKS, BootValues, PlotRow
from swingbot.web.plots.table_plot import table_plot as drawn

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


def table_plot(subject: PlotSubject, rows: list[PlotRow]) -> str:
    return drawn(subject, rows).picture(subject)


def discs(text: str) -> list[ElementTree.Element]:
    return [*ElementTree.fromstring(text).iter(f"{TAG}circle")]


def at(element: ElementTree.Element, name: str) -> float:
    """A place as a share of the width."""
    return float(element.attrib[name].removesuffix("%"))


def elements(text: str, class_: str) -> list[ElementTree.Element]:
    return [found for found in ElementTree.fromstring(text).iter() if found.get("class") == class_]


def words(text: str) -> str:
    return " ".join("".join(e.itertext()) for e in ElementTree.fromstring(text).iter(f"{TAG}text"))


def a_kernel(name: str, *boots: list[float], change: ComparisonRow | None = None) -> PlotRow:
    found = [BootValues(boot=f"x{k}", values=v) for k, v in enumerate(boots)]
    return PlotRow(name=name, boots=found, change=change)


def test_every_run_is_a_disc_on_one_axis_and_every_kernel_has_a_mean() -> None:
    text = table_plot(
        SHOWN, [a_kernel("v6.1", [1.0, 2.0], [3.0]), a_kernel("fix", [10.0]), PlotRow(name="late")]
    )
    assert len(discs(text)) == 4 and len(elements(text, "head mean")) == 2
    xs = [at(disc, "cx") for disc in discs(text)]
    assert xs == sorted(xs), "one axis for all kernels"
    assert "no value yet" in words(text)


def test_many_runs_are_drawn_as_boots_and_of_many_boots_the_spike_is_kept() -> None:
    text = table_plot(SHOWN, [a_kernel("v6.1", *[[1.0, 2.0, 3.0]] * 200)])
    assert len(discs(text)) == 200 and "A disc is a boot (there" in words(text)
    boots = [[1.0, 2.0, 3.0]] * 1999 + [[70.0]]
    text = table_plot(SHOWN, [a_kernel("v6.1", *boots)])
    assert len(discs(text)) == MOST_MARKS and "boot x1999: mean 70 of 1 run" in text
    assert "at most 500 with the lowest and the highest" in words(text)


def test_a_change_has_the_words_of_the_table_and_the_colour_of_its_verdict() -> None:
    rows = [
        a_kernel("v6.1", [1.0]),
        a_kernel("a", [0.94], change=a_row(-6.0, (-6.5, -5.5), "worse")),
        a_kernel("b", [1.05], change=a_row(5.0, (4.0, 6.0), "better")),
        a_kernel("c", [1.0], change=a_row(0.1, (-0.4, 0.6), "same")),
        a_kernel("d", [1.01], change=a_row(1.0, (-4.0, 6.0), "unclear")),
        a_kernel("e", [1.0], change=a_row(None, None, "invalid")),
    ]
    text = table_plot(SHOWN, rows)
    for verdict in ("worse", "better", "same", "unclear", "invalid"):
        assert len(elements(text, verdict)) == 1
    said = words(text)
    for part in (
        "\u22126.0\u00a0%",
        "+5.0\u00a0%",
        "< 0.8\u00a0%",
        "(+1.0\u00a0%)",
        "not comparable",
        "no change of N % or more",
    ):
        assert part in said, part
    assert "emulated" in said


def test_an_interval_is_laid_from_the_level_of_its_reference() -> None:
    row = a_row(10.0, (5.0, 15.0), "better")
    text = table_plot(SHOWN, [a_kernel("base", [1.0]), a_kernel("head", [1.05, 1.15], change=row)])
    line, *_ = elements(text, "bar")
    xs = sorted(at(disc, "cx") for disc in discs(text))
    assert [at(line, "x1"), at(line, "x2")] == xs[1:]


def test_an_interval_that_dwarfs_all_else_is_cut_at_the_axis() -> None:
    rows = [
        a_kernel("a", [0.94], change=a_row(-6.0, (-6.5, -5.5))),
        a_kernel("b", [1.01], change=a_row(1.0, (-99.0, 90_000.0), "unclear")),
    ]
    bars = elements(table_plot(SHOWN, rows), "bar")
    xs = [at(bar, end) for bar in bars for end in ("x1", "x2")]
    assert all(0 <= x <= 100 for x in xs)
    assert len(bars) == 3 + 1, "an end beyond the axis has no cap"


def test_the_interval_of_a_share_is_in_points() -> None:
    row = a_row(300.0, (100.0, 900.0), "changed", Points(change=1.5, interval=(1.0, 2.0)))
    text = table_plot(SHOWN, [a_kernel("a", [2.0, 3.0], change=row)])
    line, *_ = elements(text, "bar")
    xs = sorted(at(disc, "cx") for disc in discs(text))
    assert [at(line, "x1"), at(line, "x2")] == xs


def test_nothing_to_plot_is_a_sentence() -> None:
    assert "No run" in words(table_plot(SHOWN, [PlotRow(name="a")]))


HOSTILE = '</text><script>alert("1")</script>&'


def test_names_from_outside_are_text() -> None:
    shown = PlotSubject(
        testbox=HOSTILE, unit_job=HOSTILE, metric=HOSTILE, unit=HOSTILE, better=None, label=HOSTILE
    )
    text = table_plot(shown, [a_kernel(HOSTILE, [5.0])])
    assert not list(ElementTree.fromstring(text).iter(f"{TAG}script"))
    assert HOSTILE[:9] in words(text)


numbers = st.floats(-1e12, 1e12)


@given(st.text(max_size=60), st.lists(numbers, min_size=1, max_size=5), numbers, numbers)
def test_any_name_and_any_number_make_a_picture(
    name: str, values: list[float], change: float, end: float
) -> None:
    low, high = sorted((change, end))
    row = a_kernel(name, values, change=a_row(change, (low, high)))
    ElementTree.fromstring(table_plot(SHOWN, [row, PlotRow(name=name)]))
