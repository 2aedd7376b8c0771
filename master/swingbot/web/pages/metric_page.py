"""`/metric/<tree>/<testbox>/<unit job>/<metric>`: one metric over all measured commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.limits import FIELD_CHARACTERS
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw.tables import CsvColumn, csv_lines
from swingbot.core.text.plain import cut
from swingbot.service.ports import Lab
from swingbot.service.report.metric_document import PLOTTED, MetricHistories
from swingbot.service.report.results_query import HistoryQuery, checked

from ..http.csv_attachment import csv_attachment
from ..http.filters import swing_change
from ..http.render import Renderer, metric_page
from ..http.snapshot_reader import SnapshotReader
from ..plots.metric_plot import HistoryMark, NoiseBand, metric_plot
from ..plots.picture import picture
from ..plots.plot import PlotSubject
from ..ports import Row

_LINES: Final = 200  # latest commits in the table
_PLOTS: Final = 6  # further testboxes with a plot
_FORMS: Final = ("json", "csv", "svg")
_CSV: Final = (
    *(CsvColumn(name, "string", "") for name in ("commit", "release", "subject", "variant")),
    *(CsvColumn(name, "string", "") for name in ("testbox", "boot")),
    CsvColumn("mean", "double", ""),
    CsvColumn("runs", "integer", ""),
    CsvColumn("booted_at", "time", ""),
    CsvColumn("unit", "string", ""),
)


class MetricPages:
    """`lab` gives the metric's definition and the order of commits in the mirror."""

    def __init__(self, source: SnapshotReader, renderer: Renderer, lab: Callable[[], Lab]) -> None:
        self._source, self._renderer = source, renderer
        self._histories = MetricHistories(read=source.read, reading=source.reading, lab=lab)

    def routes(self) -> list[Route]:
        return [
            Route("/metric", self.choose),
            Route("/metric.json", self.document),
            Route("/metric/{tree}/{testbox}/{names:path}", self.show),
        ]

    def choose(self, request: Request) -> Response:
        """Lead to the page of a metric whose tree or testbox is not known yet."""
        unit_job, metric = (_text(request, name) for name in ("unit_job", "metric"))
        if not unit_job or not metric:
            return RedirectResponse("/metrics")
        testbox = _text(request, "testbox")
        with self._source.reading() as conn:
            places = self._source.read.metric_places(
                conn, metric, unit_job=unit_job, testbox=testbox
            )
        if not places:
            raise NotFound(
                f"no boot has reported {metric!r} of {unit_job!r}; /metrics lists all metrics"
            )
        links = [
            one | {"href": metric_page(one["tree"], one["testbox"], unit_job, metric)}
            for one in places
        ]
        if len(links) == 1:
            return RedirectResponse(links[0]["href"])
        return self._renderer.page(
            "metric_choose.html", unit_job=unit_job, metric=metric, places=links
        )

    def document(self, request: Request) -> Response:
        """The history of a metric whose tree, testbox or unit job may be left out."""
        names = [one.name for one in fields(HistoryQuery)]
        if unknown := set(request.query_params) - set(names):
            raise HTTPException(
                400, f"{min(unknown)[:40]!r} is not a parameter here; use {', '.join(names)}."
            )
        query = HistoryQuery(**{name: request.query_params.get(name, "") for name in names})
        if not query.metric:
            raise HTTPException(400, "Give a metric; /metrics.json lists all.")
        return JSONResponse(self._histories.document(query))

    def show(self, request: Request) -> Response:
        tree, testbox = request.path_params["tree"], request.path_params["testbox"]
        names, form = _without_form(request.path_params["names"])
        if "\0" in tree + testbox + names or len(names) > 2 * FIELD_CHARACTERS:
            raise NotFound("this page does not exist: its address has no valid names")
        kconfig, compiler = (_text(request, name) for name in ("kconfig", "compiler"))
        with self._source.reading() as conn:
            unit_job, metric = self._source.read.known_names(conn, testbox, names)
            if not metric:
                raise NotFound(
                    "an address of a metric is /metric/<tree>/<testbox>/<unit job>/<metric>"
                )
        document = self._histories.document(
            HistoryQuery(
                metric=metric,
                tree=tree,
                testbox=testbox,
                unit_job=unit_job,
                kconfig=kconfig,
                compiler=compiler,
            )
        )
        if form == "json":
            return JSONResponse(document)
        if form == "csv":
            return _spreadsheet(document)
        if form == "svg":
            return picture(self._plot(document, _text(request, "on") or testbox))
        page = metric_page(tree, testbox, unit_job, metric)
        query = urlencode([(k, v) for k, v in (("kconfig", kconfig), ("compiler", compiler)) if v])
        return self._renderer.page(
            "metric.html",
            this=document,
            page=page,
            suffix=query,
            shown=document["points"][-_LINES:][::-1],
            others=[one for one in document["testboxes"] if one["name"] != testbox],
            plots=_PLOTS,
            compare=_compare(document),
        )

    def _plot(self, document: Row, testbox: str) -> str:
        named = {one["name"]: one for one in document["testboxes"]}
        if testbox not in named:
            raise NotFound(f"{testbox[:80]!r} has no boot that reports this metric")
        columns = [
            point
            | {"boots": [b for b in point["boots"] if b["testbox"] == testbox and b["counts"]]}
            for point in document["points"][-PLOTTED:]
        ]
        at = {column["commit"]: index for index, column in enumerate(columns)}
        own = testbox == document["testbox"]
        subject = PlotSubject(
            testbox=testbox,
            unit_job=document["unit_job"],
            metric=document["metric"],
            unit=document["unit"] or "",
            better=document["better"],
            label=named[testbox]["label"],
        )
        bands = [
            NoiseBand(
                first=at.get(band["first"], 0),
                last=at.get(band["last"], len(columns) - 1),
                level=band["level"],
                low=band["low"],
                high=band["high"],
                rise=band["rise"],
            )
            for band in (document["bands"] if own else ())
            if band["last"] in at
        ]
        return metric_plot(subject, columns, bands, _marks(document, testbox, at))


def _text(request: Request, name: str) -> str:
    return checked(name, request.query_params.get(name, ""))


def _without_form(names: str) -> tuple[str, str]:
    stem, _, form = names.rpartition(".")
    return (stem, form) if form in _FORMS else (names, "")


def _marks(document: Row, testbox: str, at: Mapping[str, int]) -> list[HistoryMark]:
    marks = [
        HistoryMark(
            column=at[swing["commit"]],
            id=swing["comparison"],
            href=f"/comparison/{swing['comparison']}",
            words=f"swing of {swing_change(swing)}, {swing['state'].replace('_', ' ')}",
            kind="swing",
        )
        for swing in document["swings"]
        if swing["testbox"] == testbox and swing["commit"] in at
    ]
    for one in document["culprits"]:
        if one["testbox"] == testbox and one["commit"] in at:
            change = "" if one["change_pct"] is None else f" {one['change_pct']:+.1f} %"
            marks.append(
                HistoryMark(
                    column=at[one["commit"]],
                    id=one["incident"],
                    href=f"/incident/{one['incident']}",
                    words=f"incident {one['incident']}:{change} {cut(one['subject'], 80)}",
                    kind="incident",
                )
            )
    return marks


def _compare(document: Row) -> dict[str, str]:
    """For each commit, the page that compares it with the measured one before it."""
    links, before = {}, None
    for point in document["points"]:
        if point["level"] is None:
            continue
        if before is not None:
            query = [("tree", document["tree"]), ("kernel", before["variant"])]
            query += [("kernel", point["variant"]), ("testbox", document["testbox"])]
            query += [("test", document["unit_job"])]
            links[point["commit"]] = f"/results?{urlencode(query)}"
        before = point
    return links


def _spreadsheet(document: Row) -> Response:
    old = [one["unit"] for one in document["units"]][-2:-1]

    def line(point: Row, boot: Row) -> dict[str, Any]:
        unit = document["unit"] if boot["counts"] else (old[0] if old else None)
        return {**point, **boot, "unit": unit}

    rows = (line(point, boot) for point in document["points"] for boot in point["boots"])
    name = quote(document["metric"], safe="")[:100]
    return csv_attachment(name, "".join(csv_lines(_CSV, rows)))
