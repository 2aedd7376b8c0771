"""`/metric/<tree>/<testbox>/<unit job>/<metric>`: one metric over all measured commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.limits import FIELD_CHARACTERS
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw.tables import CsvColumn, csv_lines
from swingbot.core.text.nearest import instead_of
from swingbot.core.text.plain import cut
from swingbot.service.ports import Lab, RequestError
from swingbot.service.report.metric_document import MetricHistories
from swingbot.service.report.results_query import HistoryQuery, checked

from ..http.csv_attachment import csv_attachment
from ..http.render import Renderer, metric_page
from ..http.snapshot_reader import SnapshotReader
from ..plots.drawing import legend
from ..plots.metric_plot import metric_plot
from ..plots.picture import picture
from ..ports import Row
from .history_view import AXES, BESIDE, LINES, RANGES, HistoryView, selected, view_of
from .shown_history import ShownHistory

_PLOTS: Final = 6  # further testboxes with a plot
_FURTHER_MARKS: Final = 300  # boots in those together
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
        view = view_of(request.query_params)
        with self._source.reading() as conn:
            unit_job, metric = self._source.read.known_names(conn, testbox, names)
            if not metric:
                raise NotFound(
                    "an address of a metric is /metric/<tree>/<testbox>/<unit job>/<metric>"
                )
        query = HistoryQuery(
            metric=metric,
            tree=tree,
            testbox=testbox,
            unit_job=unit_job,
            kconfig=view.kconfig,
            compiler=view.compiler,
        )
        document = self._histories.document(query)
        if form == "json":
            return JSONResponse(document)
        if form == "csv":
            return _spreadsheet(document)
        shown = self._shown(query, document, view)
        if form == "svg":
            history = shown.history(view.on or testbox)
            return picture(metric_plot(history).picture(history.subject))
        return self._page(document, shown)

    def _shown(self, query: HistoryQuery, document: Row, view: HistoryView) -> ShownHistory:
        points, words = selected(document["points"], view, datetime.now(UTC))
        beside = []
        for field, name in view.beside:
            if getattr(query, field) == name:
                raise RequestError(f"{field} {cut(name, 60)!r} is what the page shows already")
            beside.append((f"{field.replace('_', ' ')} {name}", self._beside(query, field, name)))
        if any(field == "tree" for field, _ in view.beside) and view.by != "time":
            view = replace(view, by="time")
            words += "; trees are drawn by time, because they have no order in common"
        return ShownHistory(document=document, view=view, points=points, words=words, beside=beside)

    def _beside(self, query: HistoryQuery, field: str, name: str) -> Row:
        changes = {"kconfig": "", "compiler": ""} if field == "tree" else {}
        other = self._histories.document(replace(query, **{**changes, field: name}))
        if field == "compiler" and other["compiler"] != name:
            known = sorted({one["compiler"] for one in other["configurations"]})
            raise RequestError(
                f"no kernel with compiler {cut(name, 60)!r} has this metric;"
                f" {instead_of(name, known)}"
            )
        return other

    def _page(self, document: Row, shown: ShownHistory) -> Response:
        view, testbox = shown.view, document["testbox"]
        page = metric_page(document["tree"], testbox, document["unit_job"], document["metric"])
        plot = metric_plot(shown.history(testbox))
        others = [one for one in document["testboxes"] if one["name"] != testbox]
        most = _FURTHER_MARKS // max(1, min(_PLOTS, len(others)))
        drawn = [
            (name, metric_plot(shown.history(name, alone=True, most=most)))
            for name in (one["name"] for one in others[:_PLOTS])
        ]
        latest = shown.points[::-1]
        pages = max(1, -(-len(latest) // LINES))
        if view.page > pages:
            raise RequestError(f"page {view.page} does not exist: there are {pages}")
        lines = latest[LINES * (view.page - 1) : LINES * view.page]
        return self._renderer.page(
            "metric.html",
            this=document,
            page=page,
            view=view,
            suffix=HistoryView(kconfig=view.kconfig, compiler=view.compiler).query(),
            ranges=RANGES,
            axes=AXES,
            fields=BESIDE,
            selection=shown.words,
            plot=plot,
            legend=legend(shown.names),
            notes=shown.notes,
            percent_of=shown.percent_of,
            shown=lines,
            pages=pages,
            others=others,
            drawn=drawn,
            counters=self._counters(document, shown),
            plots=_PLOTS,
            compare=_compare(document, lines),
        )

    def _counters(self, document: Row, shown: ShownHistory) -> Row | None:
        """The counters that moved most with the largest change shown; None: no change is claimed
        there."""
        commits = {point["commit"] for point in shown.points if point["level"] is not None}
        boots = [boot["boot"] for _, boot in shown.boots_of_counters]
        found = self._histories.counters(document, commits, boots)
        if found is None:
            return None
        row: Row = {"source": found.source, "commit": found.commit, "change": found.change}
        row["plot"] = None
        if not found.means:
            return row
        history, counters = shown.counters(found)
        marks = [mark for mark, _ in legend([one.name for one in history.series])]
        clues = {one["metric"]: one for one in found.change["clues"]}
        return row | {
            "plot": metric_plot(history),
            "of": history.percent_of,
            "shown": [
                {
                    "name": one.name,
                    "mark": None if one.mark is None else marks[one.mark],
                    "commit": one.commit,
                    "clue": clues.get(one.name),
                }
                for one in counters
            ],
        }


def _text(request: Request, name: str) -> str:
    return checked(name, request.query_params.get(name, ""))


def _without_form(names: str) -> tuple[str, str]:
    stem, _, form = names.rpartition(".")
    return (stem, form) if form in _FORMS else (names, "")


def _compare(document: Row, lines: Sequence[Row]) -> dict[str, str]:
    """For each commit of the table, the page that compares it with the measured one before it."""
    links, before, shown = {}, None, {point["commit"] for point in lines}
    for point in document["points"]:
        if point["level"] is None:
            continue
        if before is not None and point["commit"] in shown:
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
