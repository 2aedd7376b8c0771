"""What the plots of a table show: the runs of each kernel, and what is claimed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from swingbot.core.model.comparison_row import key_of
from swingbot.core.model.documents import Table
from swingbot.core.report.table.sheet import Block, Sheet
from swingbot.core.text.plain import clean

from ..plots.drawing import Drawing, PlotSubject
from ..plots.table_plot import MOST_MARKS, BootValues, PlotRow, table_plot
from ..ports import Connection, ReadModels, Row
from .metric_names import like

_LEAST: Final = 8  # marks and labels of a kernel in a plot that is part of a page
_Boots = Mapping[int, Sequence[BootValues]]  # by arm


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """One metric of one unit job on one testbox, as named by an address."""

    testbox: str
    unit_job: str
    metric: str

    @classmethod
    def of(cls, block: Block) -> SeriesKey:
        return cls(testbox=block.testbox, unit_job=block.unit_job, metric=block.metric)

    def plot(self, id: str, **more: str) -> str:
        """Return the address of its plot in table `id`."""
        names = {"metric": self.metric, "unit_job": self.unit_job, "testbox": self.testbox}
        return f"/plot/{id}/values.svg?{urlencode(names | more)}"


@dataclass(frozen=True, kw_only=True)
class TablePlots:
    """The plots of a table; `boots` has those of each series that can be drawn."""

    document: Table
    sheet: Sheet
    boots: Mapping[SeriesKey, _Boots]

    @classmethod
    def read(
        cls,
        read: ReadModels,
        conn: Connection,
        document: Table,
        sheet: Sheet,
        wanted: Sequence[SeriesKey],
    ) -> TablePlots:
        """With as many of the `wanted` series as a page has room for, one at least."""
        most = max(1, MOST_MARKS // (_LEAST * len(sheet.kernels) * len(sheet.against)))
        series = list(dict.fromkeys(wanted))[:most]
        metrics = sorted({like(one.metric) for one in series})
        samples = read.samples_of_table(conn, document["id"], metrics) if series else []
        return cls(
            document=document,
            sheet=sheet,
            boots={one: _values(samples, one) for one in series},
        )

    def subject(self, series: SeriesKey) -> PlotSubject:
        parts = self.document["parts"]
        labels = [part["label"] for part in parts if part["testbox"] == series.testbox]
        block = self.block(series)
        return PlotSubject(
            testbox=series.testbox,
            unit_job=series.unit_job,
            metric=series.metric,
            unit=block.unit if block else "",
            better=block.better if block else None,
            label=labels[0] if labels else None,
        )

    def block(self, series: SeriesKey) -> Block | None:
        return next((one for one in self.sheet.blocks if SeriesKey.of(one) == series), None)

    def drawing(self, series: SeriesKey, rule: str) -> Drawing | None:
        """The plot with the changes against a reference; None without room for it on the page."""
        if series not in self.boots:
            return None
        block, boots = self.block(series), self.boots[series]
        rows = [
            PlotRow(
                name=clean(kernel.name),
                href=f"/variant/{arm['variant']['id']}",
                boots=boots.get(at, ()),
                change=block.cells[at].rows.get(rule) if block else None,
                note=f"not built: {clean(kernel.trouble)}" if kernel.trouble else "",
            )
            for at, (arm, kernel) in enumerate(
                zip(self.document["arms"], self.sheet.kernels, strict=True)
            )
        ]
        most = MOST_MARKS // (len(self.boots) * len(self.sheet.against))
        return table_plot(self.subject(series), rows, most)


def _values(samples: Sequence[Row], series: SeriesKey) -> dict[int, list[BootValues]]:
    """Map each arm to its boots on that testbox; a run's value is the mean of its samples."""
    runs: dict[int, dict[str, dict[int, list[float]]]] = {}
    for sample in samples:
        if key_of(sample) == (series.testbox, series.unit_job, series.metric):
            boot = runs.setdefault(sample["arm"], {}).setdefault(sample["boot"], {})
            boot.setdefault(sample["run"], []).append(sample["value"])
    return {
        arm: [
            BootValues(boot=boot, values=[sum(run) / len(run) for run in of_boot.values()])
            for boot, of_boot in boots.items()
        ]
        for arm, boots in runs.items()
    }
