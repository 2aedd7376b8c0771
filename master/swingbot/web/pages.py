"""Pages and JSON at `/<kind>/<id>`, lists at `/<plural>`, plots at `/plot/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.comparison_row import Key, key_of
from swingbot.core.model.lookup import NotFound

from . import free_memory, incident, kernel_change, plot
from . import report as report_page
from .plot_rows import is_of, plotted, program_of, programs_of
from .ports import Connection, OpenArtifact, Row
from .render import Renderer, is_json
from .reproduction import Kits
from .snapshot_reader import SnapshotReader

_TAIL_BYTES, _TAIL_LINES = 16_384, 40
# colours and other controls of a console
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_LIMIT = 1000  # rows of a list at most
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
_RUNNING = ("waiting", "ready", "running")
_PLOTS = 12  # on one page
_COLUMNS = 20  # metrics in a boot's table, the benchmark's own first


class Pages:
    def __init__(
        self,
        source: SnapshotReader,
        renderer: Renderer,
        artifact: OpenArtifact,
        kits: Kits | None = None,
    ) -> None:
        self._source, self._renderer, self._artifact, self._kits = source, renderer, artifact, kits
        read = source.read
        self._kinds: Mapping[str, Callable[[Connection, str], Row]] = {
            "comparison": read.comparison,
            "bisection": read.bisection,
            "incident": read.incident,
            "report": read.report,
            "order": read.order,
            "boot": read.boot,
            "tree": read.tree,
            "testbox": read.testbox,
            "kernel": read.kernel,
            "variant": read.variant,
        }
        self._extra: Mapping[str, Callable[[Connection, Row], Row]] = {
            "comparison": self._comparison,
            "incident": lambda conn, found: incident.shown(found),
            "report": self._report,
            "order": self._order,
            "boot": self._boot,
            "kernel": self._kernel,
        }

        # What a list's page shows below the list.
        self._beside: Mapping[str, Callable[[Connection], Row]] = {
            "testboxes": lambda conn: {"compilers": read.list_compilers(conn)},
        }

    def overview(self, request: Request) -> Response:
        with self._source.reading() as conn:
            found = self._source.read.status(conn)
        if is_json(request):
            return JSONResponse(found)
        return self._renderer.page("overview.html", refresh=True, status_now=found)

    def one(self, request: Request) -> Response:
        """The page of one thing, or with `.json` at the end its JSON."""
        kind, id = request.path_params["kind"], request.path_params["id"].removesuffix(".json")
        if kind not in self._kinds:
            raise HTTPException(
                404,
                f"There are no pages of kind {kind!r};"
                f" there are {', '.join([*self._kinds, 'experiment'])}.",
            )
        with self._source.reading() as conn:
            found = self._kinds[kind](conn, id)
            if kind == "comparison":
                found["kernel"] = kernel_change.of_comparison(
                    self._source.read, self._artifact, conn, found
                )
            if is_json(request):
                return JSONResponse(found)
            if kind == "report" and found["incident"] is None:
                return self._renderer.page("digest.html", this=found)
            more = self._extra[kind](conn, found) if kind in self._extra else {}
        refresh = found.get("status") in _RUNNING or (
            kind == "order" and found["state"] in _RUNNING
        )
        return self._renderer.page(f"{kind}.html", refresh=refresh, this=found, **more)

    def variant(self, request: Request) -> Response:
        """A variant's page is that of its kernel, or of the order that will build it; before that, its own."""
        if is_json(request):
            request.path_params["kind"] = "variant"
            return self.one(request)
        with self._source.reading() as conn:
            found = self._source.read.variant(conn, request.path_params["id"])
        if found["build"] is None and found["build_order"] is None:
            return self._renderer.page("variant.html", this=found)
        return RedirectResponse(
            f"/kernel/{found['build_key']}" if found["build"] else f"/order/{found['build_order']}"
        )

    def listing(self, request: Request) -> Response:
        plural = request.path_params["plural"].removesuffix(".json")
        if plural not in PLURALS:
            raise HTTPException(
                404,
                f"There is no page /{plural}; lists are {', '.join('/' + name for name in PLURALS)}.",
            )
        filters = dict(request.query_params)
        limit = _limit(filters.pop("limit", None))
        with self._source.reading() as conn:
            try:
                found = getattr(self._source.read, f"list_{plural}")(conn, filters, limit)
            except ValueError as error:
                raise HTTPException(400, f"{error}") from error
            more = self._beside[plural](conn) if plural in self._beside else {}
        if is_json(request):
            return JSONResponse(found)
        return self._renderer.page(
            f"list_{plural}.html", rows=found, filters=filters, limit=limit, **more
        )

    def _comparison(self, conn: Connection, found: Row) -> Row:
        samples = self._source.read.samples_of_comparison(conn, found["id"])
        shown = plotted(found, samples)
        return {
            "kits": self._kits is not None,
            "plots": [_title(key) for key in shown[:_PLOTS]],
            "values": _values(found, samples),
            "free_memory": free_memory.of_comparison(samples),
        }

    def comparison_plot(self, request: Request) -> Response:
        with self._source.reading() as conn:
            found = self._source.read.comparison(conn, request.path_params["id"])
            samples = self._source.read.samples_of_comparison(conn, found["id"])
        keys = plotted(found, samples)
        number = request.path_params["number"]
        if number >= len(keys):
            raise NotFound(
                f"comparison {found['id']} has {len(keys)} plots; there is none with number {number}"
            )
        mine = [row for row in samples if key_of(row) == keys[number]]
        return picture(plot.comparison_plot(_shown(found, keys[number]), mine))

    def bisection_plot(self, request: Request) -> Response:
        with self._source.reading() as conn:
            found = self._source.read.bisection(conn, request.path_params["id"])
        return picture(plot.bisection_plot(found))

    def _report(self, conn: Connection, found: Row) -> Row:
        return report_page.of_report(self._source.read, conn, found) | {
            "kit": report_page.kit_of(self._kits, found["id"])
        }

    def history_plot(self, request: Request) -> Response:
        with self._source.reading() as conn:
            found = self._source.read.report(conn, request.path_params["id"])
            return picture(report_page.history_plot(self._source.read, conn, found))

    def _order(self, conn: Connection, found: Row) -> Row:
        name = "build.log" if found["kind"] == "build" else "console.log"
        return {
            "tails": {
                attempt["id"]: self._tail(attempt["files"], name) for attempt in found["attempts"]
            }
        }

    def _boot(self, conn: Connection, found: Row) -> Row:
        own = {
            metric
            for run in found["runs"]
            for metric in run["samples"]
            if is_of(metric, run["unit_job"])
        }
        others = {metric for run in found["runs"] for metric in run["samples"]} - own
        metrics = [*sorted(own), *sorted(others)]
        return {
            "metrics": metrics[:_COLUMNS],
            "more": max(0, len(metrics) - _COLUMNS),
            "free_memory": free_memory.of_boot(found),
            "tail": self._tail(found["files"], "console.log"),
        }

    def _kernel(self, conn: Connection, found: Row) -> Row:
        return {
            "tail": self._tail(found["files"], "build.log") if found["status"] == "failed" else None
        }

    def _tail(self, files: Mapping[str, Any], name: str) -> Row | None:
        """The last lines of a log from the artifact store; None when it is not there (yet)."""
        if name not in (files or {}):
            return None
        try:
            with self._artifact(files[name]["sha256"]) as log:
                log.seek(max(0, log.seek(0, 2) - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except (OSError, ValueError, ArtifactError):
            return None
        lines = _CONTROL.sub("", text).splitlines()[-_TAIL_LINES:]
        return {"name": name, "text": "\n".join(line[:500] for line in lines)}


def _limit(given: str | None) -> int:
    if given is None:
        return 100
    if not (given.isascii() and given.isdigit() and 0 < int(given[:9]) <= _LIMIT):
        raise HTTPException(400, f"limit must be a number from 1 to {_LIMIT}, not {given!r}")
    return int(given)


def picture(text: str) -> Response:
    """The answer with an SVG document."""
    # The style stands inside the picture; a picture runs nothing and loads nothing.
    headers = {
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        "cache-control": "no-cache",
    }
    return Response(text, media_type="image/svg+xml", headers=headers)


def _title(key: Key) -> str:
    return f"{key[2]} of {key[1]} on {key[0]}: every run of base and head, grouped by boot"


def _shown(found: Row, key: Key) -> plot.PlotSubject:
    row: Row = next((row for row in found["rows"] if key_of(row) == key), {})
    label = next((part["label"] for part in found["parts"] if part["testbox"] == key[0]), None)
    return plot.PlotSubject(
        testbox=key[0],
        unit_job=key[1],
        metric=key[2],
        unit=row.get("unit") or "",
        better=row.get("better"),
        label=label,
    )


def _values(found: Row, samples: list[Row]) -> list[Row]:
    """The numbers behind the plots, as a table: for each key and boot the values of its runs."""
    tables: dict[Key, dict[tuple[int, str], Row]] = {}
    programs = programs_of(found)
    aliases = {key_of(row) for row in found["rows"] if row.get("alias_of")}
    for sample in samples:
        if program_of(sample["metric"]) in programs and key_of(sample) not in aliases:
            boot = tables.setdefault(key_of(sample), {}).setdefault(
                (sample["k"], sample["side"]),
                {"boot": sample["boot"], "k": sample["k"], "side": sample["side"], "values": []},
            )
            boot["values"].append(sample["value"])
    order = [key_of(row) for row in found["rows"]]
    keys = sorted(tables, key=lambda key: (order.index(key) if key in order else len(order), key))
    return [
        {"key": key, "boots": [tables[key][place] for place in sorted(tables[key])]} for key in keys
    ]
