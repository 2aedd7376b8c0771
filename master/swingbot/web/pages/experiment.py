"""`/experiment/e3`: the table and plots of an experiment, live while it runs.

With `?metric=`, the page of one metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model.comparison_row import ComparisonRow, Verdict, key_of
from swingbot.core.model.lookup import NotFound
from swingbot.core.model.statuses import Reference
from swingbot.core.report.experiment.experiment_sheet import (
    Block,
    Cell,
    ExperimentSheet,
    sheet_of_experiment,
)
from swingbot.core.table.references import in_words
from swingbot.core.text.numbers import readings, rounded_up
from swingbot.core.text.plain import clean

from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader
from ..plots.experiment_plot import BootValues, PlotRow, effects_plot, values_plot
from ..plots.plot import PlotSubject
from ..plots.plot_rows import like, program_of
from ..ports import Connection, OpenArtifact, Row
from .experiment_sheet import sheet_with_beside
from .kinds import picture

_OPEN: Final = ("waiting", "running")
_TABLE_CELLS: Final = 600  # kernels x metrics x testboxes shown as tables on one page
_OPEN_TABLES: Final = 2  # tables that are unfolded
_BOOTS: Final = 2000  # boots listed one by one
_LIVE: Final = 6  # metrics plotted before anything is judged
_OTHERS: Final = 400  # further metrics listed
_LONGEST: Final = 300  # characters of a metric's or unit job's name in an address


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeriesKey:
    """One metric of one unit job on one testbox, as named by an address."""

    testbox: str
    unit_job: str
    metric: str

    def query(self, **more: str) -> str:
        names = {"metric": self.metric, "unit_job": self.unit_job, "testbox": self.testbox}
        return urlencode(names | more)


class ExperimentPages:
    """`artifact` opens files that builds produced, for the columns next to the numbers.

    `kits`: reproduction kits are available.
    """

    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        artifact: OpenArtifact,
        *,
        kits: bool = False,
    ) -> None:
        self._source, self._renderer, self._artifact = source, renderer, artifact
        self._kits = kits

    def routes(self) -> list[Route]:
        return [
            Route("/experiment/{id}", self.show),
            Route("/plot/{id}/values.svg", self.values),
            Route("/plot/{id}/effects.svg", self.effects),
        ]

    def show(self, request: Request) -> Response:
        id = request.path_params["id"].removesuffix(".json")
        read = self._source.read
        with self._source.reading() as conn:
            if is_json(request):
                return JSONResponse(read.experiment(conn, id))
            metrics = read.metrics_of_experiment(conn, id)
            one = _one_metric(request, metrics)
            headlines = [one] if one else [row for row in metrics if row["headline"]]
            document = read.experiment(conn, id, sorted({row["metric"] for row in headlines}))
            sheet = sheet_with_beside(read, self._artifact, conn, document)
            live = [] if metrics or one else _live(document, read.measured_by_experiment(conn, id))
        context = {
            "this": document,
            "kits": self._kits,
            "one": one,
            "rules": [{"name": rule, "words": in_words(rule)} for rule in sheet.against],
            "live": live,
            "others": [] if one else _others(document["id"], metrics),
            **_tables(document, sheet, _shown_blocks(sheet, one)),
            "below": [] if one else sheet.below,
            "boots": None if one else _boots(document),
        }
        refresh = request if document["status"] in _OPEN else None
        return self._renderer.page("experiment.html", refresh=refresh, **context)

    def values(self, request: Request) -> Response:
        place = _place_of(request)
        with self._source.reading() as conn:
            document, sheet = self._read(conn, request, place)
            samples = self._source.read.samples_of_experiment(
                conn, document["id"], [like(place.metric)]
            )
        boots = _values(samples, place)
        if not boots and _block(sheet, place) is None and not _has_part(document, place):
            raise _no_plot(document, place)
        rows = [
            PlotRow(
                name=clean(kernel.name),
                boots=boots.get(arm, ()),
                note=f"no kernel: {clean(kernel.trouble)}" if kernel.trouble else "",
            )
            for arm, kernel in enumerate(sheet.kernels)
        ]
        return picture(values_plot(_heading(document, sheet, place), rows))

    def effects(self, request: Request) -> Response:
        place = _place_of(request)
        with self._source.reading() as conn:
            document, sheet = self._read(conn, request, place)
        rule = _rule_of(request, sheet)
        block = _block(sheet, place)
        if block is None:
            raise _no_plot(document, place)
        rows = [
            PlotRow(
                name=clean(kernel.name),
                change=cell.rows.get(rule),
                note=f"no kernel: {clean(kernel.trouble)}" if kernel.trouble else _unmeasured(cell),
            )
            for kernel, cell in zip(sheet.kernels, block.cells, strict=True)
        ]
        return picture(effects_plot(_heading(document, sheet, place), rows, rule))

    def _read(
        self, conn: Connection, request: Request, place: _SeriesKey
    ) -> tuple[Row, ExperimentSheet]:
        document = self._source.read.experiment(conn, request.path_params["id"], [place.metric])
        return document, sheet_of_experiment(document)


def _one_metric(request: Request, metrics: Sequence[Row]) -> Row | None:
    """Return the metric that the address requests. Raises HTTPException, NotFound."""
    if "metric" not in request.query_params:
        return None
    metric, unit_job = (_text(request, name) for name in ("metric", "unit_job"))
    for row in metrics:
        if row["metric"] == metric and unit_job in ("", row["unit_job"]):
            return row
    raise NotFound(
        f"this experiment has no metric {metric!r}; its page lists the available metrics"
    )


def _place_of(request: Request) -> _SeriesKey:
    return _SeriesKey(
        testbox=_text(request, "testbox"),
        unit_job=_text(request, "unit_job"),
        metric=_text(request, "metric"),
    )


def _text(request: Request, name: str) -> str:
    text = request.query_params.get(name, "")
    if len(text) > _LONGEST or "\0" in text:
        raise HTTPException(400, f"{name} must have at most {_LONGEST} characters.")
    return text


def _rule_of(request: Request, sheet: ExperimentSheet) -> Reference:
    reference = request.query_params.get("against", sheet.against[0])
    for rule in sheet.against:
        if rule == reference:
            return rule
    raise NotFound(f"{sheet.id} has these references: {', '.join(sheet.against)}")


def _no_plot(document: Row, place: _SeriesKey) -> NotFound:
    return NotFound(
        f"experiment {document['id']} has no plot of metric {place.metric!r}"
        f" of {place.unit_job!r} on {place.testbox!r}"
    )


def _block(sheet: ExperimentSheet, place: _SeriesKey) -> Block | None:
    key = (place.testbox, place.unit_job, place.metric)
    return next((b for b in sheet.blocks if (*b.place, b.metric) == key), None)


def _has_part(document: Row, place: _SeriesKey) -> bool:
    return any(
        part["testbox"] == place.testbox and job["name"] == place.unit_job
        for part in document["parts"]
        for job in part["unit_jobs"]
    )


def _heading(document: Row, sheet: ExperimentSheet, place: _SeriesKey) -> PlotSubject:
    block = _block(sheet, place)
    labels = [part["label"] for part in document["parts"] if part["testbox"] == place.testbox]
    return PlotSubject(
        testbox=place.testbox,
        unit_job=place.unit_job,
        metric=place.metric,
        unit=block.unit if block else "",
        better=block.better if block else None,
        label=labels[0] if labels else None,
    )


def _values(samples: Sequence[Row], place: _SeriesKey) -> dict[int, list[BootValues]]:
    """Map each arm to its boots on that testbox; a run's value is the mean of its samples."""
    runs: dict[int, dict[str, dict[int, list[float]]]] = {}
    for sample in samples:
        if key_of(sample) == (place.testbox, place.unit_job, place.metric):
            boot = runs.setdefault(sample["arm"], {}).setdefault(sample["boot"], {})
            boot.setdefault(sample["run"], []).append(sample["value"])
    return {
        arm: [
            BootValues(boot=boot, values=[sum(one) / len(one) for one in of_boot.values()])
            for boot, of_boot in boots.items()
        ]
        for arm, boots in runs.items()
    }


def _unmeasured(cell: Cell) -> str:
    return "" if cell.side is not None or cell.rows else "nothing was measured"


def _live(document: Row, measured: Sequence[Row]) -> list[Row]:
    """Plots before anything is judged, of metrics reported by the benchmarks themselves."""
    programs = {
        job["name"]: job["program"] for part in document["parts"] for job in part["unit_jobs"]
    }
    own = [row for row in measured if program_of(row["metric"]) == programs.get(row["unit_job"])]
    places = [
        _SeriesKey(testbox=testbox, unit_job=row["unit_job"], metric=row["metric"])
        for row in own[:_LIVE]
        for testbox in row["testboxes"]
    ]
    return [
        {
            "title": f"{place.metric} of {place.unit_job} on {place.testbox}",
            "href": f"/plot/{document['id']}/values.svg?{place.query()}",
        }
        for place in places
    ]


def _others(id: str, metrics: Sequence[Row]) -> Row:
    """Metrics with a page of their own: benchmark metrics, then counters by size of change."""
    others = [row for row in metrics if not row["headline"] and not row["alias_of"]]
    others.sort(
        key=lambda row: (
            row["counter"],
            -(row["largest_pct"] or 0.0),
            row["metric"],
            row["unit_job"],
        )
    )
    return {
        "count": len(others),
        "rows": [row | {"href": _metric_page(id, row)} for row in others[:_OTHERS]],
    }


def _metric_page(id: str, row: Mapping[str, Any]) -> str:
    query = urlencode({"metric": row["metric"], "unit_job": row["unit_job"]})
    return f"/experiment/{id}?{query}"


def _shown_blocks(sheet: ExperimentSheet, one: Row | None) -> list[Block]:
    """Blocks of the headline metrics or of one metric, metric by metric."""
    if one is None:
        blocks = sheet.shown()
        order = list(dict.fromkeys((block.unit_job, block.metric) for block in blocks))
        return sorted(blocks, key=lambda block: order.index((block.unit_job, block.metric)))
    key = (one["unit_job"], one["metric"])
    return [block for block in sheet.blocks if (block.unit_job, block.metric) == key]


def _tables(document: Row, sheet: ExperimentSheet, blocks: Sequence[Block]) -> Row:
    """`overview`: kernel x metric if there are several; `tables`: each metric with plots."""
    parts = {part["testbox"]: place for place, part in reversed([*enumerate(document["parts"])])}
    many = len(sheet.kernels) * len(blocks) > _TABLE_CELLS and len(blocks) > 1
    tables = [
        _table(document["id"], sheet, block, parts.get(block.testbox))
        | {"open": number < _OPEN_TABLES, "whole": not many}
        for number, block in enumerate(blocks)
    ]
    return {"overview": _overview(sheet, tables) if len(tables) > 1 else None, "tables": tables}


def _overview(sheet: ExperimentSheet, tables: Sequence[Row]) -> Row:
    """A row per kernel, a column per metric and testbox; changes against the first reference."""
    return {
        "heads": tables,
        "rows": [
            {"kernel": kernel, "cells": [table["rows"][arm] for table in tables]}
            for arm, kernel in enumerate(sheet.kernels)
        ],
    }


def _table(id: str, sheet: ExperimentSheet, block: Block, part: int | None) -> Row:
    """One block: for each kernel its level, each change, and the supplementary columns."""
    place = _SeriesKey(testbox=block.testbox, unit_job=block.unit_job, metric=block.metric)
    columns = [name for name in sheet.columns if any(name in cell.beside for cell in block.cells)]
    beside = [readings(*(cell.beside.get(name) for cell in block.cells)) for name in columns]
    return {
        "block": block,
        "verdicts": _counted(block, sheet.against[0]),
        "page": _metric_page(id, {"metric": block.metric, "unit_job": block.unit_job}),
        "runs_plot": f"/plot/{id}/values.svg?{place.query()}",
        "effects": [
            {"words": in_words(rule), "href": f"/plot/{id}/effects.svg?{place.query(against=rule)}"}
            for rule in sheet.against
        ],
        "columns": columns,
        "rows": [
            {
                "arm": arm,
                "kernel": kernel,
                "side": cell.side,
                "anchor": f"b{arm}-{part}",
                "changes": [_change(cell.rows.get(rule)) for rule in sheet.against],
                "is_reference": not cell.rows and cell.side is not None,
                "beside": [texts[arm] for texts in beside],
            }
            for arm, (kernel, cell) in enumerate(zip(sheet.kernels, block.cells, strict=True))
        ],
    }


def _counted(block: Block, rule: Reference) -> list[tuple[str, int]]:
    """Verdicts against the first reference, the most interesting first."""
    counts = Counter(cell.rows[rule].verdict for cell in block.cells if rule in cell.rows)
    order: tuple[Verdict, ...] = ("worse", "better", "changed", "invalid", "unclear", "same")
    return [(verdict, counts[verdict]) for verdict in order if counts[verdict]]


def _change(row: ComparisonRow | None) -> Row | None:
    """A change as shown in a cell; `kind` selects the format."""
    if row is None:
        return None
    kind: str = "change" if row.changed else row.verdict
    if row.change_pct is None and kind != "invalid":
        kind = "word"
    margin = None if row.margin_pct is None else f"{rounded_up(row.margin_pct):g}"
    return {
        "kind": kind,
        "row": row,
        "against": in_words(row.against),
        "interval": row.interval_pct,
        "margin": margin,
    }


def _boots(document: Row) -> Row:
    """Boots by kernel and part; `each`: there are few enough to list them one by one."""
    listed: dict[tuple[int, str, str], list[Row]] = {}
    for boot in document["boot_list"]:
        listed.setdefault((boot["arm"], boot["testbox"], boot["spec"]), []).append(boot)
    return {
        "each": len(document["boot_list"]) <= _BOOTS,
        "any": bool(listed),
        "rows": [
            {
                "arm": arm,
                "cells": [
                    listed.get((arm["arm"], part["testbox"], part["spec"]), [])
                    for part in document["parts"]
                ],
            }
            for arm in document["arms"]
        ],
    }
