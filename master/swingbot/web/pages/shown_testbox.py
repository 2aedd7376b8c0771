"""The page of a testbox: how boots of one kernel scatter over time, and what it resolves."""

from __future__ import annotations

from typing import Any, Final

from ..plots.drawing import Drawing, PlotSubject
from ..plots.metric_plot import History, HistorySeries, NoiseBand, metric_plot

Row = dict[str, Any]
_MARKS: Final = 200  # boots of each plot
_NOISE: Final = 2.0  # standard deviations, as around a level of a history


def scatter_plots(testbox: Row) -> list[tuple[Row, Drawing]]:
    """Each metric with the plot of its boots, in per cent of the mean of their kernel."""
    records = {(row["unit_job"], row["metric"]): row for row in testbox["noise"]}
    return [
        (one, metric_plot(_history(testbox, one, records[one["unit_job"], one["metric"]])))
        for one in testbox["scatter"]
    ]


def _history(testbox: Row, one: Row, record: Row) -> History:
    kernels = one["kernels"]
    sd = record["boot_mean"]["sd"]
    half = None if sd is None else 100.0 * _NOISE * sd
    return History(
        subject=PlotSubject(
            testbox=testbox["name"],
            unit_job=one["unit_job"],
            metric=one["metric"],
            unit="% of mean",
            better=None,
            label=testbox["label"],
        ),
        columns=[{**kernel, "release": None} for kernel in kernels],
        series=[
            HistorySeries(name="", boots=[[_boot(boot) for boot in of["boots"]] for of in kernels])
        ],
        bands=()
        if half is None
        else [
            NoiseBand(
                first=0, last=len(kernels) - 1, level=100.0, low=100.0 - half, high=100.0 + half
            )
        ],
        by_time=True,
        most=_MARKS,
    )


def _boot(boot: Row) -> Row:
    return {key: boot[key] for key in ("boot", "runs", "booted_at")} | {"mean": boot["pct"]}
