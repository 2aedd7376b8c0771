"""What a page draws of a metric's history: its own series, and further ones beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from statistics import fmean
from typing import Final

from swingbot.core.model.lookup import NotFound
from swingbot.core.text.numbers import count
from swingbot.core.text.plain import cut
from swingbot.service.ports import RequestError
from swingbot.service.report.metric_document import CountersBeside

from ..http.filters import swing_change
from ..plots.drawing import PlotSubject
from ..plots.metric_plot import (
    MOST_MARKS,
    History,
    HistoryMark,
    HistoryPeriod,
    HistorySeries,
    NoiseBand,
    chosen_boots,
)
from ..ports import Row
from .history_view import HistoryView, selected

_COUNTER_BOOTS: Final = 150  # in which counters are read
_COUNTER_MARKS: Final = 150  # of all counters together


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCounter:
    """A metric of the plot of counters; `mark`: its number there, None if its level at the `commit`
    that is 100 % is 0."""

    name: str
    mark: int | None
    commit: str


@dataclass(frozen=True, kw_only=True)
class ShownHistory:
    """`points` are those of the document that the view selects, `words` which those are; `beside`
    has further series as (name, document)."""

    document: Row
    view: HistoryView
    points: Sequence[Row]
    words: str
    beside: Sequence[tuple[str, Row]] = ()

    @property
    def names(self) -> list[str]:
        """Names of the series; none if there is one."""
        if not self.beside:
            return []
        own = f"{self.document['metric']} of {self.document['unit_job']} on"
        return [f"{own} {self.document['testbox']}", *(name for name, _ in self.beside)]

    @cached_property
    def percent_of(self) -> str:
        """The commit whose level is 100 %; empty if values are drawn as they are."""
        if self.view.ref:
            bounds = replace(self.view, first=self.view.ref, last=self.view.ref)
            chosen, _ = selected(self.document["points"], bounds, datetime.now(UTC))
            return str(chosen[0]["commit"])
        if not self.beside:
            return ""
        measured = [
            {point["commit"] for point in one["points"] if point["level"] is not None}
            for _, one in self.beside
            if one["tree"] == self.document["tree"]
        ]
        own = [point["commit"] for point in self.points if point["level"] is not None]
        common = (commit for commit in own if all(commit in one for one in measured))
        return str(next(common, own[0] if own else ""))

    @cached_property
    def notes(self) -> list[str]:
        """What of the further series is not drawn, or drawn from another commit."""
        own, notes = {point["commit"] for point in self.points}, []
        for (name, other), drawn in zip(self.beside, self._drawn, strict=True):
            if not drawn or not self.percent_of:
                notes.append(f"{name} has measured none of these commits that is measured here")
                continue
            built = f"{other['compiler']}, {other['kconfig']}"
            if built != f"{self.document['compiler']}, {self.document['kconfig']}":
                notes.append(f"the kernels of {name} are those with {built}")
            at = self._level_at(other, drawn)[0]
            if at != self.percent_of:
                notes.append(f"of {name}, 100 % is {at[:12]}")
            elif self.view.span == "all" and not (self.view.first or self.view.last):
                commits = {one["commit"] for one in other["points"] if one["level"] is not None}
                if more := len(commits - own):
                    words = count(more, "commit")
                    notes.append(f"{words} of {name} left out: they are not measured here")
        return notes

    def history(self, testbox: str, *, alone: bool = False, most: int = MOST_MARKS) -> History:
        """The plot on this testbox, of at most `most` boots; `alone`: without further series.
        Raises NotFound."""
        document, own = self.document, testbox == self.document["testbox"]
        named = {one["name"]: one for one in document["testboxes"]}
        if testbox not in named:
            raise NotFound(f"{testbox[:80]!r} has no boot that reports this metric")
        relative = own and not alone and bool(self.percent_of)
        columns = [*self.points]
        scale = 100.0 / self._level_at(document)[1] if relative else 1.0
        measured = self._shown if own else _boots(columns, testbox)
        series = [HistorySeries(name="", boots=measured, scale=scale)]
        for (name, other), boots in zip(self.beside, self._drawn, strict=True):
            if not relative or not boots:
                continue
            if other["tree"] != document["tree"]:  # its commits are columns of their own
                columns += [point for point in other["points"] if point["commit"] in boots]
                lists: list[list[Row]] = [[]] * (len(columns) - len(boots)) + list(boots.values())
            else:
                lists = [boots.get(point["commit"], []) for point in self.points]
            level = 100.0 / self._level_at(other, boots)[1]
            series.append(HistorySeries(name=name, boots=lists, scale=level))
        at = {point["commit"]: index for index, point in enumerate(self.points)}
        return History(
            subject=PlotSubject(
                testbox=testbox,
                unit_job=document["unit_job"],
                metric=document["metric"],
                unit=document["unit"] or "",
                better=document["better"],
                label=named[testbox]["label"],
            ),
            columns=columns,
            series=[_padded(one, len(columns)) for one in series],
            bands=_bands(document, at, scale) if own else (),
            marks=_marks(document, testbox, at),
            periods=_periods(document) if own else (),
            percent_of=self.percent_of if relative else "",
            by_time=self.view.by == "time",
            most=most,
        )

    @cached_property
    def boots_of_counters(self) -> list[tuple[int, Row]]:
        """Columns and boots of the plot in which counters are read: those that are drawn, of a long
        history fewer, and all of the commit that is 100 %."""
        shown = self._shown
        some, _ = chosen_boots(HistorySeries(name="", boots=shown), _COUNTER_BOOTS)
        found = {one.boot["boot"]: (one.column, dict(one.boot)) for one in some}
        for at, point in enumerate(self.points):
            if point["commit"] == self._counters_of:
                found |= {one["boot"]: (at, one) for one in shown[at]}
        return sorted(found.values(), key=lambda one: one[0])

    @cached_property
    def _shown(self) -> list[list[Row]]:
        return _boots(self.points, self.document["testbox"])

    @cached_property
    def _counters_of(self) -> str:
        """The commit whose counters are 100 %."""
        own = (point["commit"] for point in self.points if point["level"] is not None)
        return self.percent_of or str(next(own, ""))

    def counters(self, found: CountersBeside) -> tuple[History, list[ShownCounter]]:
        """The plot of the metric and of the counters beside it, over the same commits."""
        document, columns, by_time = self.document, self.points, self.view.by == "time"
        means = {name: found.means[name] for name in _names(found) if name in found.means}
        read = {boot for of in means.values() for boot in of}
        kept = [(at, one) for at, one in self.boots_of_counters if one["boot"] in read]
        own = {one["boot"]: one["mean"] for _, one in kept}
        series: list[HistorySeries] = []
        counters: list[ShownCounter] = []
        for name, values in [(document["metric"], own), *means.items()]:
            boots: list[list[Row]] = [[]] * len(columns)
            measured: list[int] = []
            for place, one in kept:
                if (mean := values.get(one["boot"])) is not None:
                    if not boots[place]:
                        boots[place] = []
                        measured.append(place)
                    boots[place].append({**one, "mean": mean})
            exact = [one for one in measured if columns[one]["commit"] == self._counters_of]
            start = (exact or measured)[0]
            level = fmean(one["mean"] for one in boots[start])
            commit = columns[start]["commit"]
            if not level:
                counters.append(ShownCounter(name=name, mark=None, commit=commit))
                continue
            counters.append(ShownCounter(name=name, mark=len(series), commit=commit))
            series.append(HistorySeries(name=name, boots=boots, scale=100.0 / level))
        at = {point["commit"]: index for index, point in enumerate(columns)}
        times = [one["booted_at"] for of in self._shown for one in of] if by_time else []
        history = History(
            subject=PlotSubject(
                testbox=document["testbox"],
                unit_job=document["unit_job"],
                metric="counters",
                unit="",
                better=None,
                label=None,
            ),
            columns=columns,
            series=series,
            marks=[
                mark
                for mark in _marks(document, document["testbox"], at)
                if mark.id == found.source and mark.column == at[found.commit]
            ],
            percent_of=self._counters_of,
            by_time=by_time,
            most=_COUNTER_MARKS,
            times=(min(times), max(times)) if times else (),
            some=True,
        )
        return history, counters

    @cached_property
    def _drawn(self) -> list[dict[str, list[Row]]]:
        """Boots of each further series by commit: of the commits that are shown, or of another
        tree of the time that is shown."""
        if not self.beside:
            return []
        own = {point["commit"] for point in self.points}
        shown = _boots(self.points, self.document["testbox"])
        times: list[str] = [one["booted_at"] for boots in shown for one in boots] or [""]
        low, high = min(times), max(times)

        def drawn(other: Row, commit: str, boots: Sequence[Row]) -> bool:
            if other["tree"] == self.document["tree"]:
                return commit in own
            return low <= min(str(one["booted_at"]) for one in boots) <= high

        return [
            {
                point["commit"]: boots
                for point, boots in zip(
                    other["points"], _boots(other["points"], other["testbox"]), strict=True
                )
                if boots and drawn(other, point["commit"], boots)
            }
            for _, other in self.beside
        ]

    def _level_at(
        self, document: Row, drawn: Mapping[str, object] | None = None
    ) -> tuple[str, float]:
        """The commit that is 100 % of a document, and its level; of a further series the first
        that is `drawn` if the commit of the page is not. Raises RequestError."""
        measured = [
            point
            for point in document["points"]
            if point["level"] is not None and (drawn is None or point["commit"] in drawn)
        ]
        exact = [point for point in measured if point["commit"] == self.percent_of]
        if not exact and document is self.document:
            raise RequestError(
                f"{cut(self.view.ref, 60)!r} has no value here, so nothing can be in per cent of it"
            )
        at = (exact or measured)[0]
        if not at["level"]:
            raise RequestError(f"the level at {at['commit'][:12]} is 0: per cent need another one")
        return str(at["commit"]), float(at["level"])


def _names(found: CountersBeside) -> list[str]:
    return [clue["metric"] for clue in found.change["clues"]]


def _padded(series: HistorySeries, width: int) -> HistorySeries:
    return replace(series, boots=[*series.boots, *[[]] * (width - len(series.boots))])


def _boots(points: Sequence[Row], testbox: str) -> list[list[Row]]:
    """Boots on a testbox that count, by point."""
    return [
        [boot for boot in point["boots"] if boot["testbox"] == testbox and boot["counts"]]
        for point in points
    ]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _bands(document: Row, at: Mapping[str, int], scale: float) -> list[NoiseBand]:
    return [
        NoiseBand(
            first=at.get(band["first"], 0),
            last=at.get(band["last"], len(at) - 1),
            **{name: band[name] * scale for name in ("level", "low", "high", "rise")},
        )
        for band in document["bands"]
        if band["last"] in at or band["first"] in at
    ]


def _periods(document: Row) -> list[HistoryPeriod]:
    return [
        HistoryPeriod(
            begin=_seconds(one["begin"]),
            end=_seconds(one["end"]) if one["end"] else datetime.now(UTC).timestamp(),
            words=f"{document['testbox']} was {one['state']} from {one['begin']}"
            f" to {one['end'] or 'now'}: {cut(one['why'], 160)}",
        )
        for one in document["absences"]
    ]


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
    # several bisections may have found the same commit
    culprits = {
        (one["incident"], one["commit"], one["testbox"]): one for one in document["culprits"]
    }
    for one in culprits.values():
        if one["testbox"] == testbox and one["commit"] in at:
            change = "" if one["change_pct"] is None else f" {one['change_pct']:+.1f} %"
            subject = cut(one["subject"], 80)
            marks.append(
                HistoryMark(
                    column=at[one["commit"]],
                    id=one["incident"],
                    href=f"/incident/{one['incident']}",
                    words=f"incident {one['incident']}:{change} {subject}",
                    kind="incident",
                )
            )
            marks += [
                HistoryMark(
                    column=at[one["commit"]],
                    id=report,
                    href=f"/report/{report}",
                    words=f"mail {report} of incident {one['incident']}: {subject}",
                    kind="mail",
                    of=one["incident"],
                )
                for report in one["reports"][:1]
            ]
    return marks
