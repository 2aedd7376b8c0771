"""`/results`: two to six kernels that have boots, compared without new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.limits import RESULT_KERNELS
from swingbot.core.raw.tables import CsvColumn, csv_lines
from swingbot.service.ports import Lab
from swingbot.service.report.existing_results import SORTED_GRIDS, ExistingResults, chooses
from swingbot.service.report.results_query import SORTS, ResultsQuery, query_of

from ..http.csv_attachment import csv_attachment
from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader
from ..ports import Row
from .results_table import heat_grid

_COLUMNS: Final = (
    *(
        CsvColumn(name, "string", "")
        for name in ("testbox", "unit_job", "metric", "unit", "better")
    ),
    *(
        CsvColumn(name, "string", "")
        for name in ("reference", "reference_subject", "kernel", "kernel_subject")
    ),
    *(CsvColumn(name, "string", "") for name in ("verdict", "reason")),
    *(CsvColumn(name, "double", "") for name in ("change_pct", "low_pct", "high_pct", "p")),
    *(
        CsvColumn(f"{side}_{name}", "double", "")
        for side in ("reference", "kernel")
        for name in ("mean", "stddev", "boots", "runs")
    ),
)
_LINES: Final = 300  # rows listed on a page; the CSV file has all


class ResultPages:
    """`lab` gives the metrics' definitions, the job files' names and the mirror's history."""

    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        lab: Callable[[], Lab],
        job_files: Callable[[], Sequence[str]],
    ) -> None:
        self._renderer = renderer
        self._results = ExistingResults(
            read=source.read, reading=source.reading, lab=lab, job_files=job_files
        )

    def routes(self) -> list[Route]:
        return [
            Route("/results", self.show),
            Route("/results.json", self.show),
            Route("/results.csv", self.spreadsheet),
        ]

    def show(self, request: Request) -> Response:
        query = _query(request)
        if is_json(request):
            return JSONResponse(self._results.document(query))
        query = self._results.in_tree(query)
        if chooses(query):
            return self._choose(query)
        document, rows = self._results.compared(query)
        return self._renderer.page(
            "results.html",
            this=document,
            asked=query,
            names=[kernel["name"] for kernel in document["kernels"]],
            grid=heat_grid(rows, document, grouped=query.sort not in SORTED_GRIDS),
            listed=document["rows"][:_LINES],
            sorts=SORTS,
            links=_links(query, document["kernels"]),
            permanent=query.address(kernels=_permanent(document["kernels"])),
        )

    def spreadsheet(self, request: Request) -> Response:
        query = self._results.in_tree(_query(request))
        if chooses(query):
            raise HTTPException(400, f"Give a tree and 2 to {RESULT_KERNELS} kernels.")
        document, _ = self._results.compared(query)
        kernels = document["kernels"]
        lines = csv_lines(_COLUMNS, (_line(row, kernels) for row in document["rows"]))
        return csv_attachment("results", "".join(lines))

    def _choose(self, query: ResultsQuery) -> Response:
        document, chosen = self._results.choice(query)
        return self._renderer.page(
            "results_choose.html",
            this=document,
            asked=query,
            releases=[one for one in document["kernels"] if one["release"]],
            chosen=chosen,
            most=RESULT_KERNELS,
        )


def _query(request: Request) -> ResultsQuery:
    """Raises RequestError."""
    return query_of(request.query_params.multi_items())


def _permanent(kernels: Sequence[Row]) -> tuple[str, ...]:
    """Return names that will always mean the same kernels."""
    return tuple(kernel["id"] or kernel["commit"] for kernel in kernels)


def _links(query: ResultsQuery, kernels: Sequence[Row]) -> list[list[tuple[str, str]]]:
    """For each kernel, pages of the same kernels in another order, or without it."""
    names = _permanent(kernels)
    links: list[list[tuple[str, str]]] = []
    for at, name in enumerate(names):
        others = names[:at] + names[at + 1 :]
        own = [("make it the reference", query.address(kernels=(name, *others)))] if at else []
        if len(names) > 2:
            own.append(("remove", query.address(kernels=others)))
        links.append(own)
    return links


def _line(row: Row, kernels: Sequence[Row]) -> Row:
    low, high = row["interval_pct"] or (None, None)
    sides = {
        f"{word}_{key}": row[side][key]
        for word, side in (("reference", "base"), ("kernel", "head"))
        for key in ("mean", "stddev", "boots", "runs")
    }
    own = {
        word + ending: kernels[row[at]][key]
        for word, at in (("reference", "reference"), ("kernel", "arm"))
        for ending, key in (("", "name"), ("_subject", "subject"))
    }
    return {**row, **own, **sides, "p": row.get("p"), "low_pct": low, "high_pct": high}
