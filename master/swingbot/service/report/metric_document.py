"""One metric over all measured commits of a tree, for pages and commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final, Protocol

from swingbot.core.model.lookup import NotFound
from swingbot.core.model.why_documents import ExplainedChange
from swingbot.core.plan.metric_rules import metric_of
from swingbot.core.results.missing_boots import gone_words
from swingbot.core.stats.findings import look
from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import Git, GitError, Lab, RequestError
from swingbot.service.report.results_query import HistoryQuery
from swingbot_jobs.language.program import Program

Row = dict[str, Any]
PLOTTED: Final = 400  # latest commits in a plot, and those whose levels are looked for
_BAND_SDS: Final = 2.0
_PLACE: Final = ("tree", "testbox", "unit_job")
_CHOICES: Final = 10  # named in a sentence
_TRIED: Final = 3  # changes that are asked for their counters


class MetricReads(Protocol):
    """Read models, each given an open connection."""

    def metric_places(
        self, conn: Any, metric: str, *, unit_job: str = "", testbox: str = ""
    ) -> list[Row]: ...
    def metric_history(
        self, conn: Any, tree: str, testbox: str, unit_job: str, metric: str
    ) -> Row: ...
    def why_of_metric(
        self, conn: Any, source: str, testbox: str, unit_job: str, metric: str
    ) -> ExplainedChange | None: ...
    def means_of_boots(
        self,
        conn: Any,
        testbox: str,
        unit_job: str,
        metrics: Sequence[str],
        boots: Sequence[str],
    ) -> dict[str, dict[str, float]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersBeside:
    """Counters that moved most with a change of the metric, the strongest first, each with its
    means by boot; `source` is the comparison or incident that claims the change, at `commit`."""

    source: str
    commit: str
    change: ExplainedChange
    means: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricHistories:
    """`reading` opens a snapshot; `lab` gives the metric's definition and the order of commits."""

    read: MetricReads
    reading: Callable[[], AbstractContextManager[Any]]
    lab: Callable[[], Lab]

    def document(self, query: HistoryQuery) -> Row:
        """Return the history (docs/json.md). Raises NotFound, RequestError."""
        with self.reading() as conn:
            if not (query.tree and query.testbox and query.unit_job):
                query = self._complete(conn, query)
            history = self.read.metric_history(
                conn, query.tree, query.testbox, query.unit_job, query.metric
            )
        lab = self.lab()
        return metric_document(
            lab.catalogue.programs,
            lab.tools.git,
            history,
            query.kconfig,
            query.compiler,
        )

    def counters(
        self, document: Row, commits: Container[str], boots: Sequence[str]
    ) -> CountersBeside | None:
        """Return the counters that moved most with the largest change at one of the commits that
        has any, and their means in `boots`; without counters the largest change."""
        place = document["testbox"], document["unit_job"]
        first: CountersBeside | None = None
        with self.reading() as conn:
            for source, commit in _changes(document, commits)[:_TRIED]:
                change = self.read.why_of_metric(conn, source, *place, document["metric"])
                if change is None:
                    continue
                names = [clue["metric"] for clue in change["clues"]]
                means = self.read.means_of_boots(conn, *place, names, boots) if names else {}
                found = CountersBeside(source=source, commit=commit, change=change, means=means)
                if names:
                    return found
                first = first or found
        return first

    def _complete(self, conn: Any, query: HistoryQuery) -> HistoryQuery:
        """Return the query with the names of the one place that has the metric."""
        places = self.read.metric_places(conn, query.metric)
        if not places:
            raise NotFound(
                f"no boot has reported {cut(query.metric, 80)!r}; `swingbot list metrics`, or"
                " /metrics, lists all metrics"
            )
        named = {name: value for name in _PLACE if (value := getattr(query, name))}
        for name, value in named.items():
            known = sorted({place[name] for place in places})
            if value not in known:
                raise NotFound(
                    f"{name.replace('_', ' ')} {cut(value, 80)!r} has no boot that reports"
                    f" {query.metric}; those that have are {', '.join(known[:_CHOICES])}"
                )
        fitting = [one for one in places if named.items() <= one.items()]
        if not fitting:
            raise NotFound(
                f"no boot of {' and '.join(named.values())} together has reported {query.metric};"
                f" {_listed(places)} has"
            )
        if len(fitting) > 1:
            raise RequestError(
                f"{query.metric} was measured in {len(fitting)} places; choose one by tree,"
                f" testbox and unit job: {_listed(fitting)}"
            )
        return replace(query, **{name: fitting[0][name] for name in _PLACE})


def _changes(document: Row, commits: Container[str]) -> list[tuple[str, str]]:
    """(comparison or incident, commit) of each change on the testbox of the page, the largest
    first; the incident of a culprit before the swing that led to it."""
    found = [
        (-abs(one["change_pct"] or 0.0), rank, one[kind], one["commit"])
        for rank, (kind, of) in enumerate((("incident", "culprits"), ("comparison", "swings")))
        for one in document[of]
        if one["testbox"] == document["testbox"] and one["commit"] in commits
    ]
    return [(source, commit) for _, _, source, commit in sorted(found)]


def _listed(places: Sequence[Row]) -> str:
    words = [f"{one['tree']}, {one['testbox']}, {one['unit_job']}" for one in places[:_CHOICES]]
    return "; ".join(words) + (f"; and {len(places) - _CHOICES} more" * (len(places) > _CHOICES))


def metric_document(
    programs: Mapping[str, Program], git: Git, history: Row, kconfig: str, compiler: str
) -> Row:
    """The document of a page (docs/json.md) from `read.metric_history`."""
    metric = metric_of(programs, history["metric"])
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
    chosen = _in_git_order(git, history, chosen)
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
        "absences": history["absences"],
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
    boots, means = kernel["boots"], []
    for boot in boots:
        boot["counts"] = older is None or boot["booted_at"] > older["until"]
        if boot["counts"] and boot["testbox"] == testbox:
            means.append(boot["mean"])
    level = math.fsum(means) / len(means) if means else None
    return {
        **{key: kernel[key] for key in _KERNEL},
        "level": level,
        "stddev": _stdev(means, level) if level is not None and len(means) > 1 else None,
        "boots": boots,
    }


def _stdev(means: Sequence[float], level: float) -> float:
    """`statistics.stdev` computes with fractions, which takes half the time of a long history."""
    return math.sqrt(math.fsum((mean - level) ** 2 for mean in means) / (len(means) - 1))


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
    recent = measured[-PLOTTED:]
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
