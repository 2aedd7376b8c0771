"""Pages and JSON at `/<kind>/<id>`, lists at `/<plural>`, plots at `/plot/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from swingbot.core.model import cursor
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.comparison_row import folded
from swingbot.core.model.documents import Bisection
from swingbot.core.model.testbox_state import TIME_USES
from swingbot.service.kernel.bisected_config import config_changes
from swingbot.service.visible import changes_only, some_testboxes_only

from ..http.render import Renderer, is_json
from ..http.snapshot_reader import SnapshotReader
from ..plots.drawing import legend
from ..plots.metric_plot import metric_plot
from ..plots.picture import picture
from ..ports import Connection, Row, StoredFiles
from . import free_memory, incident
from . import report as report_page
from .metric_names import is_of
from .reproduction import Kits
from .shown_bisection import SERIES, bisection_history
from .shown_testbox import scatter_plots

_TAIL_BYTES, _TAIL_LINES, _LINE = 16_384, 40, 500
# colours and other control sequences of a console
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
PLURALS = (
    "comparisons",
    "experiments",
    "bisections",
    "incidents",
    "reports",
    "orders",
    "testboxes",
    "compilers",
    "trees",
    "metrics",
)
_LISTS = dict.fromkeys(("comparisons", "experiments"), "list_tables.html")
_RUNNING = ("waiting", "ready", "running")
_COLUMNS = 8  # metrics in a boot's table, the benchmark's own first
_VALUES = 10  # of each in a run
_SAMPLES = 5000  # values on the page of a boot, and of its free memory


class Pages:
    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        stored: StoredFiles,
        kits: Kits | None = None,
    ) -> None:
        self._source, self._renderer, self._stored, self._kits = source, renderer, stored, kits
        read = source.read
        self._kinds: Mapping[str, Callable[[Connection, str], Any]] = {
            "bisection": self._bisection,
            "incident": read.incident,
            "report": read.report,
            "order": read.order,
            "boot": lambda conn, id: read.boot(conn, id, samples=False),
            "tree": read.tree,
            "testbox": read.testbox,
            "kernel": read.kernel,
            "variant": read.variant,
        }
        self._extra: Mapping[str, Callable[[Connection, Any], Row]] = {
            "bisection": lambda conn, document: {
                "acts": _acts(document),
                "plot": metric_plot(bisection_history(document)),
                "legend": legend(SERIES),
            },
            "incident": lambda conn, document: incident.shown(document),
            "report": self._report,
            "order": self._order,
            "boot": self._boot,
            "kernel": self._kernel,
            "testbox": lambda conn, document: {
                "acts": _testbox_acts(document),
                "noise": _noise(document),
                "plots": scatter_plots(document),
                "time_uses": TIME_USES,
            },
        }

        # additional content below a list
        self._beside: Mapping[str, Callable[[Connection], Row]] = {
            "testboxes": lambda conn: {"compilers": read.list_compilers(conn)},
            "orders": lambda conn: {
                "queue_end": None if some_testboxes_only() else read.queue_end(conn)
            },
        }

    def overview(self, request: Request) -> Response:
        self._source.read.check(self._source.engine)
        with self._source.reading() as conn:
            document = self._source.read.status(conn)
        if is_json(request):
            return JSONResponse(document)
        return self._renderer.page("overview.html", refresh=request, status_now=document)

    def one(self, request: Request) -> Response:
        """The page of one object, or its JSON if the path ends in `.json`."""
        kind, id = request.path_params["kind"], request.path_params["id"].removesuffix(".json")
        if kind not in self._kinds:
            raise HTTPException(
                404,
                f"There are no pages of kind {kind!r};"
                f" kinds are {', '.join(['comparison', 'experiment', *self._kinds])}.",
            )
        with self._source.reading() as conn:
            if is_json(request) and kind == "boot":
                after = request.query_params.get("after", "")
                return JSONResponse(self._source.read.boot(conn, id, after=after))
            document = self._kinds[kind](conn, id)
            if is_json(request):
                return JSONResponse(document)
            if kind == "report" and document["incident"] is None:
                return self._renderer.page("digest.html", this=document)
            more = self._extra[kind](conn, document) if kind in self._extra else {}
        refresh = document.get("status") in _RUNNING or (
            kind == "order" and document["state"] in _RUNNING
        )
        return self._renderer.page(
            f"{kind}.html", refresh=request if refresh else None, this=document, **more
        )

    def variant(self, request: Request) -> Response:
        """Redirect to the kernel of a variant or to its build order; else show the variant."""
        if is_json(request):
            request.path_params["kind"] = "variant"
            return self.one(request)
        with self._source.reading() as conn:
            document = self._source.read.variant(conn, request.path_params["id"])
        if document["build"] is None and document["build_order"] is None:
            return self._renderer.page("variant.html", this=document)
        return RedirectResponse(
            f"/kernel/{document['build_key']}"
            if document["build"]
            else f"/order/{document['build_order']}"
        )

    def listing(self, request: Request) -> Response:
        plural = request.path_params["plural"].removesuffix(".json")
        if plural not in PLURALS:
            raise HTTPException(
                404,
                f"Page /{plural} does not exist; lists are"
                f" {', '.join('/' + name for name in PLURALS)}.",
            )
        filters = {name: value for name, value in request.query_params.items() if value}
        limit, after = _limit(filters.pop("limit", None)), filters.pop("after", "")
        no_levels = changes_only()  # of what else it reads, the database tells such a token nothing
        source = self._source.read
        read = (
            partial(source.list_of_changes, plural=plural)
            if no_levels
            else getattr(source, f"list_{plural}")
        )
        with self._source.reading() as conn:
            try:
                document = read(conn, filters=filters, limit=limit, after=after)
            except ValueError as error:
                raise HTTPException(400, f"{error}") from error
            beside = None if no_levels or is_json(request) else self._beside.get(plural)
            more = beside(conn) if beside else {}
            choices = {} if no_levels or is_json(request) else source.list_choices(conn, plural)
        following = None
        if document.next:
            query = {**filters, "limit": limit, "after": document.next}
            following = f"{request.url.path}?{urlencode(query)}"
        if is_json(request):
            links = {"link": f'<{following}>; rel="next"'} if following else None
            return JSONResponse(document, headers=links)
        return self._renderer.page(
            "list_changes.html" if no_levels else _LISTS.get(plural, f"list_{plural}.html"),
            rows=document,
            plural=plural,
            filters=filters,
            choices=choices,
            following=following,
            first=not after,
            **more,
        )

    def _bisection(self, conn: Connection, id: str) -> Bisection:
        read = self._source.read
        document = read.bisection(conn, id)
        document["config_changes"] = config_changes(read, self._stored.kernels, conn, document)
        return document

    def bisection_plot(self, request: Request) -> Response:
        with self._source.reading() as conn:
            document = self._source.read.bisection(conn, request.path_params["id"])
        history = bisection_history(document)
        return picture(metric_plot(history).picture(history.subject))

    def _report(self, conn: Connection, document: Row) -> Row:
        return report_page.of_report(self._source.read, conn, document) | {
            "kit": report_page.kit_of(self._kits, document["id"])
        }

    def history_plot(self, request: Request) -> Response:
        with self._source.reading() as conn:
            document = self._source.read.report(conn, request.path_params["id"])
            history = report_page.tips_history(self._source.read, conn, document)
        return picture(metric_plot(history).picture(history.subject))

    def _order(self, conn: Connection, document: Row) -> Row:
        name = "build.log" if document["kind"] == "build" else "console.log"
        return {
            "tails": {
                attempt["id"]: self._tail(attempt["files"], name)
                for attempt in document["attempts"]
            }
        }

    def _boot(self, conn: Connection, document: Row) -> Row:
        read, id = self._source.read, document["id"]
        names = read.metrics_of_boot(conn, id)
        own = {row["metric"] for row in names if is_of(row["metric"], row["unit_job"])}
        metrics = [*sorted(own), *sorted({row["metric"] for row in names} - own)]
        memory = [name for name in metrics if name.startswith(tuple(free_memory.PREFIXES))]
        shown = [name for name in metrics if name not in memory][:_COLUMNS]
        return {
            "metrics": shown,
            "more": len(metrics) - len(shown),
            "values": _by_run(
                read.first_samples_of_boot(conn, id, shown, each=_VALUES + 1, most=_SAMPLES)
            ),
            "most_values": _VALUES,
            "free_memory": free_memory.of_boot(
                document,
                read.first_samples_of_boot(conn, id, memory, each=_VALUES, most=_SAMPLES),
            ),
            "tail": self._tail(document["files"], "console.log"),
        }

    def _kernel(self, conn: Connection, document: Row) -> Row:
        return {
            "tail": self._tail(document["files"], "build.log")
            if document["status"] == "failed"
            else None
        }

    def _tail(self, files: Mapping[str, Any], name: str) -> Row | None:
        """Last lines of a log from the artifact store; None if it is not there (yet)."""
        if name not in (files or {}):
            return None
        try:
            with self._stored.open(files[name]["sha256"]) as log:
                log.seek(max(0, log.seek(0, 2) - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except (OSError, ValueError, ArtifactError):
            return None
        lines = [_CONTROL.sub("", line[:_LINE]) for line in text.splitlines()[-_TAIL_LINES:]]
        return {"name": name, "text": "\n".join(lines)}


def _acts(bisection: Bisection) -> list[Row]:
    """Links to the pages of what can be done about a bisection."""
    words = {"skip": "Skip commits", "hint": "Hint at commits", "cancel": "Cancel"}
    if bisection["resumable"]:
        words = {"resume": "Resume it with more boots"}
    elif bisection["status"] != "running":
        words = {}
    page = f"/bisection/{bisection['id']}"
    return [
        {"href": f"{page}/{act}", "words": text, "go": act == "resume"}
        for act, text in words.items()
    ]


def _testbox_acts(testbox: Row) -> list[Row]:
    if testbox["state"] not in ("quarantined", "drained"):
        return []
    href = f"/testbox/{quote(testbox['name'], safe='')}/resume"
    return [{"href": href, "words": "Return it to service", "go": True}]


def _by_run(samples: list[Row]) -> dict[tuple[str, int, str], list[float]]:
    """Values by unit job, number of the run and metric."""
    values: dict[tuple[str, int, str], list[float]] = {}
    for one in samples:
        key = (one["unit_job"], one["number"], one["metric"])
        values.setdefault(key, []).append(one["value"])
    return values


def _noise(testbox: Row) -> list[Row]:
    """Noise records by unit job, aliases folded, counters apart."""
    records = folded([row | {"testbox": testbox["name"]} for row in testbox["noise"]])
    return [
        {
            "unit_job": unit_job,
            "own": [row for row in rows if is_of(row["metric"], unit_job)],
            "counters": [row for row in rows if not is_of(row["metric"], unit_job)],
        }
        for unit_job, rows in _by_unit_job(records).items()
    ]


def _by_unit_job(records: list[Row]) -> dict[str, list[Row]]:
    by_job: dict[str, list[Row]] = {}
    for record in records:
        by_job.setdefault(record["unit_job"], []).append(record)
    return by_job


def _limit(text: str | None) -> int:
    if text is None:
        return 100
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= cursor.PIECE):
        raise HTTPException(
            400,
            f"limit must be a number from 1 to {cursor.PIECE}, not {text[:40]!r};"
            " the link at the end leads to more",
        )
    return int(text)
