"""What the plot of a bisection shows: its boots over its commits, and the belief in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.text.plain import cut

from ..plots.drawing import PlotSubject
from ..plots.metric_plot import History, HistoryMark, HistorySeries
from ..ports import Row

SERIES: Final = ("search", "confirmation")


def bisection_history(bisection: Mapping[str, Any]) -> History:
    """Its boots by phase; boots without a value, skips, hints and the next boots are marks."""
    points = bisection["points"]
    seen = [entry for entry in bisection["log"] if entry["seen_at"]]
    lists: list[list[list[Row]]] = [[[] for _ in points] for _ in SERIES]
    for entry in seen:
        if entry["mean"] is not None:
            boot = {"boot": entry["boot"], "mean": entry["mean"], "runs": len(entry["values"])}
            lists[entry["phase"] == "confirm"][entry["idx"]].append(boot)
    ends = {0: "good", len(points) - 1: "bad"}
    return History(
        subject=PlotSubject.of_bisection(bisection),
        columns=[{**point, "release": ends.get(point["idx"])} for point in points],
        series=[
            HistorySeries(name=name, boots=boots) for name, boots in zip(SERIES, lists, strict=True)
        ],
        marks=[*_without_value(seen), *_of_people(points), *_next(bisection)],
        beliefs=[point["probability"] for point in points],
        suspects=[point["idx"] for point in points if point["state"] in ("culprit", "suspect")],
    )


def _without_value(seen: Sequence[Row]) -> list[HistoryMark]:
    return [
        HistoryMark(
            column=entry["idx"],
            id=entry["boot"] or "no boot",
            href=f"/boot/{entry['boot']}" if entry["boot"] else "",
            words=f"k={entry['k']}, {entry['phase']}: {cut(entry['skip'] or 'no value', 160)}",
            kind="no value",
        )
        for entry in seen
        if entry["mean"] is None
    ]


def _of_people(points: Sequence[Row]) -> list[HistoryMark]:
    """Commits that cannot or should not be measured, and hints."""
    said = []
    for point in points:
        if point.get("skipped") or point["state"] in ("does not build", "cannot be measured"):
            said.append((point, "skipped", point.get("skipped") or point["state"]))
        if point.get("hint", 1.0) != 1.0:
            factor = f"{point['hint']:g}"
            said.append((point, f"×{factor}", f"hint from a person, {factor} times as likely"))
    return [
        HistoryMark(
            column=point["idx"],
            id=short,
            href=f"/variant/{point['variant']}",
            words=f"{point['commit'][:12]}: {cut(words, 160)}",
            kind="person",
        )
        for point, short, words in said
    ]


def _next(bisection: Mapping[str, Any]) -> list[HistoryMark]:
    return [
        HistoryMark(
            column=one["idx"],
            id="next",
            href=f"/variant/{bisection['points'][one['idx']]['variant']}",
            words=f"the next boot is k={one['k']} of {one['commit'][:12]}",
            kind="next",
        )
        for one in bisection.get("next") or ()
    ]
