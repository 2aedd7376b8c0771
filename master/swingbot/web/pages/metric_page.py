"""`/metric/<tree>/<testbox>/<unit job>/<metric>`: one metric over all measured commits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.model.lookup import NotFound
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.raw.tables import CsvColumn, csv_lines
from swingbot.core.results.missing_boots import gone_words
from swingbot.core.stats.findings import look
from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import Git, GitError, Lab

from .. import limits
from ..http.csv_attachment import csv_attachment
from ..http.filters import swing_change
from ..http.render import Renderer, metric_page
from ..http.snapshot_reader import SnapshotReader
from ..plots.metric_plot import HistoryMark, NoiseBand, metric_plot
from ..plots.picture import picture
from ..plots.plot import PlotSubject
from ..ports import Row

_COLUMNS: Final = 400  # latest commits in a plot
_LINES: Final = 200  # latest commits in the table
_PLOTS: Final = 6  # further testboxes with a plot
_BAND_SDS: Final = 2.0
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
        self._source, self._renderer, self._lab = source, renderer, lab

    def routes(self) -> list[Route]:
        return [
            Route("/metric", self.choose),
            Route("/metric/{tree}/{testbox}/{names:path}", self.show),
        ]

    def choose(self, request: Request) -> Response:
        """Lead to the page of a metric whose tree or testbox is not known yet."""
        unit_job, metric = (_text(request, name) for name in ("unit_job", "metric"))
        if not unit_job or not metric:
            return RedirectResponse("/metrics")
        testbox = _text(request, "testbox")
        with self._source.reading() as conn:
            places = self._source.read.metric_places(conn, unit_job, metric, testbox)
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

    def show(self, request: Request) -> Response:
        tree, testbox = request.path_params["tree"], request.path_params["testbox"]
        names, form = _without_form(request.path_params["names"])
        if "\0" in tree + testbox + names or len(names) > 2 * limits.FIELD_CHARACTERS:
            raise NotFound("this page does not exist: its address has no valid names")
        kconfig, compiler = (_text(request, name) for name in ("kconfig", "compiler"))
        with self._source.reading() as conn:
            unit_job, metric = self._source.read.known_names(conn, testbox, names)
            if not metric:
                raise NotFound(
                    "an address of a metric is /metric/<tree>/<testbox>/<unit job>/<metric>"
                )
            history = self._source.read.metric_history(conn, tree, testbox, unit_job, metric)
        document = metric_document(self._lab(), history, kconfig, compiler)
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
            for point in document["points"][-_COLUMNS:]
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
    text = request.query_params.get(name, "")
    if len(text) > limits.FIELD_CHARACTERS or "\0" in text:
        raise HTTPException(400, f"{name} must have at most {limits.FIELD_CHARACTERS} characters.")
    return text


def _without_form(names: str) -> tuple[str, str]:
    stem, _, form = names.rpartition(".")
    return (stem, form) if form in _FORMS else (names, "")


def metric_document(lab: Lab, history: Row, kconfig: str, compiler: str) -> Row:
    """The document of a page (docs/json.md) from `read.metric_history`."""
    metric = metric_of(lab.catalogue.programs, history["metric"])
    kconfig, compiler = kconfig or history["kconfig"], compiler or history["compiler"]
    kernels = [one for one in history["kernels"] if one["layout"] == 0 and one["origin"] != "patch"]
    configurations = _configurations(kernels)
    chosen = [one for one in kernels if (one["kconfig"], one["compiler"]) == (kconfig, compiler)]
    notes = []
    if not chosen and configurations:
        first = configurations[0]
        notes.append(
            f"no kernel with {compiler}, {kconfig} has this metric; shown are those with"
            f" {first['compiler']}, {first['kconfig']}"
        )
        kconfig, compiler = first["kconfig"], first["compiler"]
        chosen = [
            one for one in kernels if (one["kconfig"], one["compiler"]) == (kconfig, compiler)
        ]
    older, unit = _units(history["units"])
    chosen = _in_git_order(lab.tools.git, history, chosen)
    points = [_point(one, older, history["testbox"]) for one in chosen]
    notes += _notes(history, kernels, points, older, unit)
    return {
        **{key: history[key] for key in ("tree", "testbox", "unit_job", "metric")},
        "unit": metric.unit or unit,
        "better": metric.better,
        "describe": metric.describe,
        "kconfig": kconfig,
        "compiler": compiler,
        "configurations": configurations,
        "points": points,
        "bands": _bands(history, points),
        "findings": [one for one in history["findings"] if one["testbox"] == history["testbox"]][
            -1:
        ],
        "swings": history["swings"],
        "culprits": history["culprits"],
        "units": history["units"],
        "noise": history["noise"].get(history["testbox"]),
        "testboxes": [_testbox(one, points) for one in history["testboxes"]],
        "notes": notes,
    }


def _configurations(kernels: Sequence[Row]) -> list[Row]:
    counts: dict[tuple[str, str], int] = {}
    for one in kernels:
        key = one["kconfig"], one["compiler"]
        counts[key] = counts.get(key, 0) + 1
    return [
        {"kconfig": kconfig, "compiler": compiler, "kernels": kernels_}
        for (kconfig, compiler), kernels_ in sorted(counts.items(), key=lambda one: -one[1])
    ]


def _units(units: Sequence[Row]) -> tuple[Row | None, str | None]:
    """Return the last unit that was given up, and the present one."""
    named = sorted(units, key=lambda one: int(one["last"][1:]))
    older = named[-2] if len(named) > 1 else None
    return older, (named[-1]["unit"] or None) if named else None


def _in_git_order(git: Git, history: Row, kernels: list[Row]) -> list[Row]:
    """Sort by git's order if the mirror knows every commit; else as tips and bisections say."""
    base, tip = history["base_commit"], history["tip_commit"]
    commits = {one["commit"] for one in kernels}
    if tip is None or not commits:
        return kernels
    try:
        places = {base: -1} | git.places(base, tip, sorted(commits))
    except GitError:
        return kernels
    if not commits <= places.keys():
        return kernels
    return [
        one | {"ordered": True} for one in sorted(kernels, key=lambda one: places[one["commit"]])
    ]


_KERNEL: Final = (
    "commit",
    "subject",
    "author",
    "release",
    "variant",
    "build_key",
    "tip",
    "ordered",
)


def _point(kernel: Row, older: Row | None, testbox: str) -> Row:
    """A commit with its boots; `level` is the mean of those on the page's testbox that count."""
    boots = [
        boot | {"counts": older is None or boot["booted_at"] > older["until"]}
        for boot in kernel["boots"]
    ]
    means = [boot["mean"] for boot in boots if boot["testbox"] == testbox and boot["counts"]]
    return {
        **{key: kernel[key] for key in _KERNEL},
        "level": fmean(means) if means else None,
        "stddev": stdev(means) if len(means) > 1 else None,
        "boots": boots,
    }


def _testbox(row: Row, points: Sequence[Row]) -> Row:
    own = [
        (point, boot)
        for point in points
        for boot in point["boots"]
        if boot["testbox"] == row["name"] and boot["counts"]
    ]
    latest = own[-1][0]["commit"] if own else None
    means = [boot["mean"] for point, boot in own if point["commit"] == latest]
    return {
        **row,
        "commits": len({point["commit"] for point, _ in own}),
        "boots": len(own),
        "level": fmean(means) if means else None,
        "latest": latest,
    }


def _bands(history: Row, points: Sequence[Row]) -> list[Row]:
    """Levels with the range that noise alone explains of a boot: of the history analysis of the
    tips, else of these points."""
    measured = [point for point in points if point["level"] is not None]
    shown = {point["commit"] for point in measured}
    for one in history["findings"]:
        if one["testbox"] != history["testbox"]:
            continue
        try:
            tips = {int(at): tip["commit"] for at, tip in one["findings"]["tips"].items()}
            share = _BAND_SDS * _of_boot(one["findings"]["noise_pct"] / 100.0, measured)
            bands = [
                _around(
                    tips[level["first"]],
                    tips[level["last"]],
                    level["mean"],
                    share,
                    level.get("rise", 0.0),  # not in findings of earlier versions
                )
                for level in one["findings"]["levels"]
            ]
        except (AttributeError, KeyError, TypeError, ValueError):
            break  # stored by a different version
        if all(band["last"] in shown for band in bands):
            return bands
    record = history["noise"].get(history["testbox"])
    spread = record["boot_mean"]["sd"] if record and record.get("boot_mean") else None
    if not measured or spread is None:
        return []
    recent = measured[-_COLUMNS:]
    return [
        _around(
            recent[level.first]["commit"],
            recent[level.last]["commit"],
            level.mean,
            _BAND_SDS * spread,
            level.rise,
        )
        for level in look([point["level"] for point in recent]).levels
    ]


def _of_boot(sd: float, points: Sequence[Row]) -> float:
    """Return the relative standard deviation of a boot about its level, from that of the mean of a
    tip's boots: what a mean of k boots averages away is a share 1 - 1/k of their variance."""
    spreads = [
        ((point["stddev"] / point["level"]) ** 2, sum(boot["counts"] for boot in point["boots"]))
        for point in points
        if point["stddev"] is not None and point["level"]
    ]
    averaged = [square * (1.0 - 1.0 / boots) for square, boots in spreads]
    return math.sqrt(sd**2 + (fmean(averaged) if averaged else 0.0))


def _around(first: str, last: str, level: float, share: float, rise: float) -> Row:
    low, high = sorted((level * (1.0 - share), level * (1.0 + share)))
    return {
        "first": first,
        "last": last,
        "level": level,
        "low": low,
        "high": high,
        "rise": rise,
    }


def _notes(
    history: Row,
    kernels: Sequence[Row],
    points: Sequence[Row],
    older: Row | None,
    unit: str | None,
) -> list[str]:
    """What is not shown, and why, in sentences."""
    notes = []
    testbox = next(one for one in history["testboxes"] if one["name"] == history["testbox"])
    if testbox["state"] == "gone":
        notes.append(gone_words(testbox["name"], testbox["others"]))
    if older is not None:
        notes.append(
            f"the unit of this metric changed from {older['unit'] or 'no unit'} to"
            f" {unit or 'no unit'} after {older['last']}; boots from before are listed but not"
            " drawn, because their numbers cannot be compared"
        )
    patched = len(history["kernels"]) - len(kernels)
    if patched:
        notes.append(
            f"{count(patched, 'kernel')} with patches or another code layout left out: they are no"
            " commits of the branch"
        )
    unlike = len(kernels) - len(points)
    if unlike:
        notes.append(f"{count(unlike, 'kernel')} of other configurations left out")
    aside = sum(not point["ordered"] for point in points)
    if aside:
        notes.append(
            f"{count(aside, 'commit')} at the end whose place in history is not known: neither the"
            " mirror, nor the tips of the branch, nor a bisection has it"
        )
    if not any(point["level"] is not None for point in points):
        notes.append("no boot of these kernels on this testbox has a value that counts")
    return notes


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
