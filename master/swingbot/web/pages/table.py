"""`/comparison/c5`, `/experiment/e3`: a table of kernels with its plots, live while it runs.

With `?metric=`, the page of one metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.limits import RESULT_KERNELS
from swingbot.core.model import documents, ids
from swingbot.core.model.comparison_row import ComparisonRow, Verdict, key_of
from swingbot.core.model.documents import Table
from swingbot.core.model.lookup import NotFound
from swingbot.core.report.parts.swings import swings_of
from swingbot.core.report.table.sheet import Block, Sheet, sheet_of_table
from swingbot.core.table.references import in_words
from swingbot.core.text.numbers import readings
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.report.results_query import checked
from swingbot.service.report.table_sheet import explain, sheet_of
from swingbot.service.visible import changes_only

from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader
from ..plots.picture import picture
from ..ports import Connection, Row
from . import free_memory
from .metric_names import program_of
from .shown_table import SeriesKey, TablePlots
from .table_acts import acts_of, searches

_OPEN: Final = ("waiting", "running")
_TABLE_CELLS: Final = 600  # kernels x metrics x testboxes shown as tables on one page
_OPEN_TABLES: Final = 2  # tables that are unfolded
_BOOTS: Final = 2000  # boots listed one by one
_LIVE: Final = 6  # metrics plotted before anything is judged


class TablePages:
    """`kernels` compares builds, for columns and changes of the kernel.

    `kits`: reproduction kits are available.
    """

    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        kernels: KernelRecords,
        *,
        kits: bool = False,
    ) -> None:
        self._source, self._renderer, self._kernels = source, renderer, kernels
        self._kits = kits

    def routes(self) -> list[Route]:
        return [
            Route("/comparison/{id}", self.show),
            Route("/experiment/{id}", self.show),
            Route("/plot/{id}/values.svg", self.values),
        ]

    def show(self, request: Request) -> Response:
        id = request.path_params["id"].removesuffix(".json")
        word = request.url.path.split("/")[1]
        ids.read(id, word)
        if changes_only():
            return self._changes(request, id)
        read = self._source.read
        with self._source.reading() as conn:
            if is_json(request):
                after = request.query_params.get("after", "")
                return JSONResponse(self._document(conn, id, after=after))
            one = self._one_metric(conn, id, request)
            headlines = [one] if one else read.headline_metrics_of_table(conn, id)
            names = sorted({row["metric"] for row in headlines})
            document = self._document(conn, id, read.with_aliases(conn, id, names))
            sheet = sheet_of(read, self._kernels, conn, document)
            rows = read.judged_in_table(conn, id)
            live = [] if rows["judged"] else _live(document, read.measured_in_table(conn, id))
            after = request.query_params.get("after", "")
            others = None if one else read.other_metrics_of_table(conn, id, after)
            memory = [] if one else self._memory(conn, document)
            shown = _shown_blocks(sheet, one)
            wanted = live or ([] if _many(sheet, shown) else [SeriesKey.of(b) for b in shown])
            plots = TablePlots.read(read, conn, document, sheet, wanted)
        rows_shown = [row for block in shown for row in block.rows]
        context = {
            "this": document,
            "word": word,
            "kits": self._kits,
            "one": one,
            "rules": [{"name": rule, "words": in_words(rule)} for rule in sheet.against],
            "result": _result(shown),
            "swings": swings_of(document["rows"]),
            "acts": [] if one else acts_of(document, rows_shown),
            "search": searches(document, rows_shown),
            "same_image": _same_image(document),
            "few": len({arm["variant"]["id"] for arm in document["arms"]})
            in range(2, RESULT_KERNELS + 1),
            "live": [{"subject": one, **_plot(plots, one, sheet.against[0])} for one in live],
            "perf": rows["perf"],
            "others": _with_pages(word, document["id"], others, after) if others else [],
            **_tables(word, plots, shown),
            "texts": [] if one else sheet.texts,
            "free_memory": memory,
            "boots": None if one else _boots(document),
        }
        refresh = request if document["status"] in _OPEN else None
        return self._renderer.page("table.html", refresh=refresh, **context)

    def _changes(self, request: Request, id: str) -> Response:
        with self._source.reading() as conn:
            document = self._source.read.table_of_changes(conn, id)
        if is_json(request):
            return JSONResponse(document)
        return self._renderer.page("changes.html", this=document)

    def _one_metric(self, conn: Connection, id: str, request: Request) -> Row | None:
        """Return the metric that the address requests. Raises HTTPException, NotFound."""
        if "metric" not in request.query_params:
            return None
        metric, unit_job = (_text(request, name) for name in ("metric", "unit_job"))
        found = self._source.read.metric_of_table(conn, id, metric, unit_job)
        if found is None:
            raise NotFound(
                f"this table has no metric {metric!r}; its page lists the available metrics"
            )
        return found

    def _document(
        self,
        conn: Connection,
        id: str,
        metrics: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> Table:
        document = self._source.read.table(conn, id, metrics, after=after)
        explain(self._source.read, self._kernels, conn, document)
        return document

    def _memory(self, conn: Connection, document: Table) -> list[Row]:
        if len(document["arms"]) > RESULT_KERNELS:
            return []
        patterns = [f"{prefix}%" for prefix in free_memory.PREFIXES]
        samples = self._source.read.samples_of_table(conn, document["id"], patterns)
        return free_memory.of_table(samples, [arm["name"] for arm in document["arms"]])

    def values(self, request: Request) -> Response:
        series = _series_of(request)
        read, id = self._source.read, request.path_params["id"]
        with self._source.reading() as conn:
            document = read.table(conn, id, [series.metric])
            sheet = sheet_of_table(document)
            plots = TablePlots.read(read, conn, document, sheet, [series])
        rule = _rule_of(request, sheet)
        drawing = plots.drawing(series, rule)
        if drawing is None or (
            not plots.boots[series]
            and plots.block(series) is None
            and not _has_part(document, series)
        ):
            raise NotFound(
                f"{sheet.id} has no plot of metric {series.metric!r} of {series.unit_job!r} on"
                f" {series.testbox!r}"
            )
        return picture(drawing.picture(plots.subject(series)))


def _series_of(request: Request) -> SeriesKey:
    return SeriesKey(
        testbox=_text(request, "testbox"),
        unit_job=_text(request, "unit_job"),
        metric=_text(request, "metric"),
    )


def _text(request: Request, name: str) -> str:
    return checked(name, request.query_params.get(name, ""))


def _rule_of(request: Request, sheet: Sheet) -> str:
    rule = request.query_params.get("against", sheet.against[0])
    if rule not in sheet.against:
        raise NotFound(f"{sheet.id} has these references: {', '.join(sheet.against)}")
    return rule


def _has_part(document: Table, series: SeriesKey) -> bool:
    return any(
        part["testbox"] == series.testbox and job["name"] == series.unit_job
        for part in document["parts"]
        for job in part["unit_jobs"]
    )


def _live(document: Table, measured: Sequence[Row]) -> list[SeriesKey]:
    """What to plot before anything is judged: metrics reported by the benchmarks themselves."""
    programs = {
        job["name"]: job["program"] for part in document["parts"] for job in part["unit_jobs"]
    }
    own = [row for row in measured if program_of(row["metric"]) == programs.get(row["unit_job"])]
    return [
        SeriesKey(testbox=testbox, unit_job=row["unit_job"], metric=row["metric"])
        for row in own[:_LIVE]
        for testbox in row["testboxes"]
    ]


def _plot(plots: TablePlots, series: SeriesKey, rule: str) -> Row:
    """A plot and its address as a picture; without room on the page there is only that."""
    href = series.plot(plots.document["id"], against=rule)
    return {"words": in_words(rule), "href": href, "drawing": plots.drawing(series, rule)}


def _result(blocks: Sequence[Block]) -> Row:
    """`changed`: rows of the shown metrics that changed, the largest first; `unclear`: a count;
    `open`: those of them with a size that would matter.
    """
    rows = [row for block in blocks for row in block.rows]
    changed = [row for row in rows if row.changed]
    unclear = [row for row in rows if row.verdict in ("unclear", "invalid")]
    large = [
        row
        for row in unclear
        if row.verdict == "unclear"
        and abs(row.change_pct or 0.0) >= (row.min_effect_pct or 0.0)
        and row.points is None
    ]
    return {
        "any": bool(rows),
        "changed": sorted(changed, key=lambda row: -abs(row.change_pct or 0.0)),
        "unclear": len(unclear),
        "open": sorted(large, key=lambda row: -abs(row.change_pct or 0.0)),
    }


def _same_image(document: Table) -> list[list[str]]:
    """Names of rows that boot one image under the same settings, so that they cannot differ."""
    names: dict[tuple[str, str], list[str]] = {}
    for arm in document["arms"]:
        if image := arm["variant"]["image_sha256"]:
            names.setdefault((image, repr(arm["settings"])), []).append(arm["name"])
    return [own for own in names.values() if len(own) > 1]


def _with_pages(word: str, id: str, others: Row, after: str) -> Row:
    """Metrics with a page of their own: benchmark metrics, then counters by size of change."""
    rows = [row | {"href": _metric_page(word, id, row)} for row in others["rows"]]
    return others | {"rows": rows, "first": not after}


def _metric_page(word: str, id: str, row: Mapping[str, Any]) -> str:
    query = urlencode({"metric": row["metric"], "unit_job": row["unit_job"]})
    return f"/{word}/{id}?{query}"


def _shown_blocks(sheet: Sheet, one: Row | None) -> list[Block]:
    """Blocks of the headline metrics or of one metric, metric by metric."""
    if one is None:
        blocks = sheet.shown()
        order = list(dict.fromkeys((block.unit_job, block.metric) for block in blocks))
        return sorted(blocks, key=lambda b: (order.index((b.unit_job, b.metric)), b.testbox))
    key = (one["unit_job"], one["metric"])
    return [block for block in sheet.blocks if (block.unit_job, block.metric) == key]


def _many(sheet: Sheet, blocks: Sequence[Block]) -> bool:
    """Each metric has its tables on its own page."""
    return len(sheet.kernels) * len(blocks) > _TABLE_CELLS and len(blocks) > 1


def _tables(word: str, plots: TablePlots, blocks: Sequence[Block]) -> Row:
    """`overview`: kernel x metric if there are several; `tables`: each metric with plots."""
    document, sheet, many = plots.document, plots.sheet, _many(plots.sheet, blocks)
    parts = {part["testbox"]: at for at, part in reversed([*enumerate(document["parts"])])}
    findings = {
        (*key_of(row), row["arm"], row["against"]): row
        for row in document["rows"]
        if row["swing_state"]
    }
    tables = [
        _table(plots, block, parts.get(block.testbox), findings)
        | {
            "page": _metric_page(
                word, document["id"], {"metric": block.metric, "unit_job": block.unit_job}
            ),
            "open": number < _OPEN_TABLES,
            "whole": not many,
        }
        for number, block in enumerate(blocks)
    ]
    return {"overview": _overview(sheet, tables) if len(tables) > 1 else None, "tables": tables}


def _overview(sheet: Sheet, tables: Sequence[Row]) -> Row:
    """A row per kernel, a column per metric and testbox; changes against the first reference."""
    return {
        "heads": tables,
        "rows": [
            {"kernel": kernel, "cells": [table["rows"][arm] for table in tables]}
            for arm, kernel in enumerate(sheet.kernels)
        ],
    }


def _table(
    plots: TablePlots,
    block: Block,
    part: int | None,
    findings: Mapping[tuple[str, str, str, int, str], documents.Row],
) -> Row:
    """One block: for each kernel its level, each change, and the columns."""
    sheet, series = plots.sheet, SeriesKey.of(block)
    titles = [title for title in sheet.columns if any(title in c.columns for c in block.cells)]
    columns = [readings(*(cell.columns.get(title) for cell in block.cells)) for title in titles]
    key = (block.testbox, block.unit_job, block.metric)
    return {
        "block": block,
        "verdicts": _counted(block, sheet.against[0]),
        "plots": [_plot(plots, series, rule) for rule in sheet.against],
        "columns": titles,
        "rows": [
            {
                "arm": arm,
                "kernel": kernel,
                "side": cell.side,
                "anchor": f"b{arm}-{part}",
                "changes": [
                    _change(cell.rows.get(rule), findings.get((*key, arm, rule)))
                    for rule in sheet.against
                ],
                "is_reference": not cell.rows and cell.side is not None,
                "columns": [texts[arm] for texts in columns],
            }
            for arm, (kernel, cell) in enumerate(zip(sheet.kernels, block.cells, strict=True))
        ],
    }


def _counted(block: Block, rule: str) -> list[tuple[str, int]]:
    """Verdicts against the first reference, the most interesting first."""
    counts = Counter(cell.rows[rule].verdict for cell in block.cells if rule in cell.rows)
    order: tuple[Verdict, ...] = ("worse", "better", "changed", "invalid", "unclear", "same")
    return [(verdict, counts[verdict]) for verdict in order if counts[verdict]]


def _change(row: ComparisonRow | None, finding: documents.Row | None) -> Row | None:
    """A change as shown in a cell, and the swing that it raised."""
    if row is None:
        return None
    return {"row": row, "against": in_words(row.against), "finding": finding}


def _boots(document: Table) -> Row:
    """Boots by kernel and part; `each`: there are few enough to list them one by one."""
    listed: dict[tuple[int, str, str], list[documents.BootOfAnArm]] = {}
    for boot in document["boot_list"]:
        listed.setdefault((boot["arm"], boot["testbox"], boot["spec"]), []).append(boot)
    return {
        "each": len(document["boot_list"]) <= _BOOTS,
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
