"""`/results`: two to six kernels that have boots, compared without new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw.tables import CsvColumn, csv_lines
from swingbot.core.results.existing_boots import (
    SORTS,
    JudgedResults,
    in_order,
    judge_existing,
)
from swingbot.core.results.missing_boots import FillingCosts, Gap, gaps, gone_words
from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import GitError, Lab

from .. import limits
from ..http.csv_attachment import csv_attachment
from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader
from ..ports import Connection, Row
from .results_query import ResultsQuery, read_query
from .results_table import heat_grid, moved, row_document

# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")
_COLUMNS: Final = (
    *(
        CsvColumn(name, "string", "")
        for name in ("testbox", "unit_job", "metric", "unit", "better")
    ),
    *(CsvColumn(name, "string", "") for name in ("reference", "kernel", "verdict", "reason")),
    *(CsvColumn(name, "double", "") for name in ("change_pct", "low_pct", "high_pct", "p")),
    *(
        CsvColumn(f"{side}_{name}", "double", "")
        for side in ("reference", "kernel")
        for name in ("mean", "stddev", "boots", "runs")
    ),
)
_SORTED_GRIDS: Final = ("size", "significance")  # else the tests of a unit job are together
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
        self._source, self._renderer, self._lab = source, renderer, lab
        self._job_files = job_files

    def routes(self) -> list[Route]:
        return [
            Route("/results", self.show),
            Route("/results.json", self.show),
            Route("/results.csv", self.spreadsheet),
        ]

    def show(self, request: Request) -> Response:
        query = read_query(request)
        if not query.tree or len(query.kernels) < 2:
            return self._choose(request, query)
        document, rows = self._document(query)
        if is_json(request):
            return JSONResponse(document)
        return self._renderer.page(
            "results.html",
            this=document,
            asked=query,
            names=[kernel["name"] for kernel in document["kernels"]],
            grid=heat_grid(rows, document, grouped=query.sort not in _SORTED_GRIDS),
            listed=document["rows"][:_LINES],
            sorts=SORTS,
            links=_links(query, document["kernels"]),
            permanent=query.address(kernels=_permanent(document["kernels"])),
        )

    def spreadsheet(self, request: Request) -> Response:
        query = read_query(request)
        if not query.tree or len(query.kernels) < 2:
            raise HTTPException(400, "Give a tree and two to six kernels.")
        document, _ = self._document(query)
        names = [kernel["name"] for kernel in document["kernels"]]
        lines = csv_lines(_COLUMNS, (_line(row, names) for row in document["rows"]))
        return csv_attachment("results", "".join(lines))

    # -- choosing kernels

    def _choose(self, request: Request, query: ResultsQuery) -> Response:
        read = self._source.read
        with self._source.reading() as conn:
            trees = read.trees_with_results(conn)
            if not query.tree and len(trees) == 1:
                query = ResultsQuery(tree=trees[0]["name"], kernels=query.kernels)
            tree = read.result_tree(conn, query.tree) if query.tree else None
            kernels = read.measured_kernels(conn, query.tree) if tree else []
            chosen = [self._kernel(conn, tree, ref)[0]["id"] for ref in query.kernels if tree]
        document = {"tree": query.tree or None, "trees": trees, "kernels": kernels}
        if is_json(request):
            return JSONResponse(document)
        releases = [one for one in kernels if one["release"]]
        return self._renderer.page(
            "results_choose.html",
            this=document,
            asked=query,
            releases=releases,
            chosen=chosen,
            most=limits.RESULT_KERNELS,
        )

    def _kernel(self, conn: Connection, tree: Row, ref: str) -> tuple[Row, list[str]]:
        """Return the kernel that `ref` names and what a reader must know about the choice."""
        found = self._source.read.named_kernels(conn, tree, ref)
        commit = None
        if not found and _REF.fullmatch(ref) and ".." not in ref:
            try:
                commit = self._lab().tools.git.resolve(tree["name"], ref)
            except GitError:
                commit = None
            found = self._source.read.named_kernels(conn, tree, commit) if commit else []
        if not found and commit is None:
            raise NotFound(
                f"tree {tree['name']} has no kernel {cut(ref, 80)!r}: give a variant (v12), a"
                " commit or prefix that was built, base, tip, or a release;"
                f" /results?tree={quote(tree['name'])} lists all kernels with boots"
            )
        if not found:
            return _unmeasured(tree, str(commit), ref), []
        commits = {one["commit"] for one in found}
        if len(commits) > 1 and found[0]["commit"].startswith(ref):
            raise HTTPException(
                400,
                f"{ref} is the prefix of {len(commits)} commits with kernels in tree"
                f" {tree['name']}; give more digits.",
            )
        kernel, *others = found
        also = [one for one in others if one["boots"]]
        if not also:
            return kernel, []
        listed = ", ".join(
            f"{one['id']} ({one['compiler']}, {one['kconfig']}"
            + (f", layout {one['layout']}" if one["layout"] else "")
            + ")"
            for one in also[:5]
        )
        return kernel, [
            f"{cut(ref, 80)} names {len(also) + 1} kernels with boots; shown is {kernel['id']}"
            f" ({kernel['compiler']}, {kernel['kconfig']}), others are {listed}"
        ]

    # -- the document

    def _document(self, query: ResultsQuery) -> tuple[Row, list[ComparisonRow]]:
        """Return the document of a page (docs/json.md) and the rows of its grid.

        Raises NotFound.
        """
        read, lab = self._source.read, self._lab()
        with self._source.reading() as conn:
            tree = read.result_tree(conn, query.tree)
            kernels: list[Row] = []
            notes: list[str] = []
            for ref in query.kernels:
                kernel, more = self._kernel(conn, tree, ref)
                notes += more
                if kernel["id"] and kernel["id"] in [one["id"] for one in kernels]:
                    notes.append(f"{cut(ref, 80)} names {kernel['id']} again; it is shown once")
                    continue
                kernels.append(kernel)
            if len(kernels) < 2:
                raise HTTPException(
                    400,
                    f"All names given are kernel {kernels[0]['id']} ({kernels[0]['name']});"
                    " give two different kernels.",
                )
            _distinct_names(kernels)
            measured = read.results(conn, kernels, query.metric)
            places = {(boot["testbox"], boot["spec"]) for boot in measured["boots"]}
            times, build = read.boot_times(conn, places), read.build_time(conn)
            culprits = read.found_culprits(conn)
        judged = judge_existing(measured, lab.catalogue.programs)
        shown = _filtered(judged, query)
        files = list(dict.fromkeys([*tree["jobs"], *self._job_files()]))
        costs = FillingCosts(job_files=files, boot_seconds=times, build_seconds=build)
        missing = gaps(measured, kernels, judged.places, costs)
        rows = in_order(shown, query.sort)
        in_grid = rows if query.sort in _SORTED_GRIDS else shown
        return {
            "tree": tree["name"],
            "kernels": [_of_kernel(kernel) for kernel in kernels],
            "filters": {
                "testbox": list(query.testboxes),
                "test": query.test,
                "metric": query.metric,
                "verdict": list(query.verdicts),
            },
            "sort": query.sort,
            "rows": [row_document(row, judged) for row in rows],
            "testboxes": list(measured["testboxes"].values()),
            "missing": [_gap_document(tree, kernels, gap) for gap in missing],
            "moved": moved(lab.tools.git, kernels, _benchmarks(judged, query), culprits),
            "notes": [*notes, *_notes(kernels, measured, judged, query, shown)],
        }, in_grid


def _unmeasured(tree: Row, commit: str, ref: str) -> Row:
    """A commit that was never requested as a kernel."""
    return {
        "id": None,
        "name": cut(ref, 40),
        "release": None,
        "commit": commit,
        "subject": "",
        "author": "",
        "kconfig": tree["kconfig"],
        "compiler": tree["compiler"],
        "layout": 0,
        "origin": "branch",
        "trust": tree["trust"],
        "build_key": None,
        "build": None,
        "image_sha256": None,
        "error": None,
        "boots": 0,
        "testboxes": [],
        "latest": None,
    }


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


_KERNEL: Final = (
    *("id", "name", "release", "commit", "subject", "author", "kconfig", "compiler", "layout"),
    *("origin", "trust", "build_key", "build", "boots", "testboxes", "latest"),
)


def _of_kernel(kernel: Row) -> Row:
    return {key: kernel[key] for key in _KERNEL}


def _distinct_names(kernels: Sequence[Row]) -> None:
    """Add to equal names what tells their kernels apart."""
    for name in {one["name"] for one in kernels}:
        alike = [one for one in kernels if one["name"] == name]
        for one in alike if len(alike) > 1 else ():
            one["name"] = f"{name} ({one['compiler']}, {one['id']})"


def _filtered(judged: JudgedResults, query: ResultsQuery) -> list[ComparisonRow]:
    return [
        row
        for row in judged.rows
        if (not query.testboxes or row.testbox in query.testboxes)
        and query.test.lower() in row.unit_job.lower()
        and (not query.verdicts or row.verdict in query.verdicts)
    ]


def _benchmarks(judged: JudgedResults, query: ResultsQuery) -> list[ComparisonRow]:
    """The rows of which a reader asks what moved: no counters, unless they were selected."""
    return [row for row in judged.rows if query.metric or row.klass not in ("counter", "profile")]


def _notes(
    kernels: Sequence[Row],
    measured: Row,
    judged: JudgedResults,
    query: ResultsQuery,
    shown: Sequence[ComparisonRow],
) -> list[str]:
    """Why something is not on the page, in sentences."""
    notes = []
    for index, kernel in enumerate(kernels):
        if not any(boot["kernel"] == index for boot in measured["boots"]):
            notes.append(f"{kernel['name']} has no boots yet")
    if not judged.rows and not notes:
        notes.append(_nothing_common(kernels, judged, query))
    elif judged.rows and not shown:
        notes.append(
            f"none of the {count(len(judged.rows), 'row')} matches the filters; without them all"
            " are shown"
        )
    for testbox in measured["testboxes"].values():
        if testbox["state"] == "gone":
            notes.append(gone_words(testbox["name"], testbox["others"]))
    if measured["cut"]:
        notes.append("there are more values than one page judges; select metrics with metric=")
    if judged.unjudged:
        notes.append(
            f"{count(judged.unjudged, 'further metric')} were not judged; select some with metric="
        )
    return notes


def _nothing_common(kernels: Sequence[Row], judged: JudgedResults, query: ResultsQuery) -> str:
    """Say what each kernel has, as nothing was measured on two of them."""
    if query.metric and judged.places:
        return (
            f"no metric whose name contains {cut(query.metric, 80)!r} was measured on two of these"
            " kernels by the same test on the same testbox"
        )
    each = []
    for index, kernel in enumerate(kernels):
        own = [f"{p.job.name} on {p.testbox}" for p in judged.places if index in p.boots]
        more = f" and {len(own) - 3} more" if len(own) > 3 else ""
        each.append(f"{kernel['name']}: {', '.join(own[:3]) + more or 'no result'}")
    return (
        "these kernels have no test on a testbox in common, and results of different tests or"
        f" testboxes are never compared ({'; '.join(each)})"
    )


def _gap_document(tree: Row, kernels: Sequence[Row], gap: Gap) -> Row:
    """A gap for pages and scripts; `href` is the form that would fill it."""
    kernel = kernels[gap.kernel]
    other = next(one for index, one in enumerate(kernels) if index != gap.kernel)
    by_hand = kernel["origin"] == "patch" or kernel["layout"] > 0
    query = {
        "tree": tree["name"],
        "base": other["commit"],
        "head": kernel["commit"],
        "job": gap.jobs[0] if gap.jobs else "",
        "testbox": gap.testbox,
        "boots": str(gap.boots),
    }
    fills = not gap.never and not by_hand
    return {
        "kernel": gap.kernel,
        "testbox": gap.testbox,
        "unit_jobs": list(gap.unit_jobs),
        "why": gap.why
        + ("; only the command line can boot a patched kernel again" if by_hand else ""),
        "boots": gap.boots,
        "reference_boots": gap.together,
        "seconds": gap.seconds,
        "build_seconds": gap.build_seconds,
        "href": f"/compare?{urlencode(query)}" if fills else None,
    }


def _line(row: Row, names: Sequence[str]) -> Row:
    low, high = row["interval_pct"] or (None, None)
    sides = {
        f"{word}_{key}": row[side][key]
        for word, side in (("reference", "base"), ("kernel", "head"))
        for key in ("mean", "stddev", "boots", "runs")
    }
    own = {"reference": names[row["reference"]], "kernel": names[row["arm"]]}
    return {**row, **own, **sides, "p": row.get("p"), "low_pct": low, "high_pct": high}
