"""The rows of a page of results: a heat grid, and what moved between two kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow, without_aliases
from swingbot.core.results.existing_boots import JudgedResults
from swingbot.core.text.numbers import rounded_up
from swingbot.service.ports import Git, GitError

from ..ports import Row

_GRID_LINES: Final = 120  # tests in the heat grid
_MOVED: Final = 60  # rows of what moved
_CULPRITS: Final = 400  # distinct culprits whose place in history is looked up


def row_document(row: ComparisonRow, judged: JudgedResults) -> Row:
    """A row as docs/json.md has it, with its kernels and which boots were compared."""
    place = next(
        place
        for place in judged.places
        if (place.testbox, place.job.name) == (row.testbox, row.unit_job)
    )
    return row.to_json() | {
        "arm": row.arm,
        "reference": row.reference,
        "together": place.together,
        "alias_of": row.alias_of,
        "counter": row.klass in ("counter", "profile", "time"),
    }


def heat_grid(rows: Sequence[ComparisonRow], document: Row, *, grouped: bool) -> Row:
    """A line per test, a column per testbox and compared kernel.

    `grouped`: `rows` have the tests of a unit job one after the other.

    A cell is {row, heat, kind}: `heat` from 0 to 4 grows with the change in units of the smallest
    change that matters.
    """
    shown = without_aliases(rows)
    tests = list(dict.fromkeys((row.unit_job, row.metric) for row in shown))
    heads = list(dict.fromkeys((row.testbox, row.arm) for row in shown))
    order = {name: at for at, name in enumerate(dict.fromkeys(row.testbox for row in shown))}
    heads.sort(key=lambda head: (order[head[0]], head[1]))
    cells = {(row.unit_job, row.metric, row.testbox, row.arm): row for row in shown}
    units = {(row.unit_job, row.metric): row for row in shown}
    return {
        "testboxes": [
            {"name": name, "columns": sum(head[0] == name for head in heads)} for name in order
        ],
        "heads": heads,
        "lines": [
            {
                "unit_job": unit_job,
                "metric": metric,
                "row": units[unit_job, metric],
                "cells": [
                    _cell(cells.get((unit_job, metric, testbox, arm)), testbox, arm, document)
                    for testbox, arm in heads
                ],
            }
            for unit_job, metric in tests[:_GRID_LINES]
        ],
        "left_out": max(0, len(tests) - _GRID_LINES),
        "grouped": grouped,
    }


def _cell(row: ComparisonRow | None, testbox: str, arm: int, document: Row) -> Row:
    if row is None:
        why = next(
            (
                gap["why"]
                for gap in document["missing"]
                if (gap["kernel"], gap["testbox"]) == (arm, testbox)
            ),
            "not measured on two of these kernels there",
        )
        return {"row": None, "why": why}
    heat = 0
    if row.changed and row.change_pct is not None and row.min_effect_pct:
        times = abs(row.change_pct) / row.min_effect_pct
        heat = 1 + sum(times >= step for step in (2.0, 5.0, 15.0))
    margin = None if row.margin_pct is None else f"{rounded_up(row.margin_pct):g}"
    return {"row": row, "heat": heat, "margin": margin, "why": row.reason or ""}


def moved(
    git: Git, kernels: Sequence[Row], rows: Sequence[ComparisonRow], culprits: Sequence[Row]
) -> list[Row]:
    """What moved from the first kernel to each other one, the largest first, and who did it.

    `incidents` are those whose commit lies between the two in git's order; each row has those of
    its own metric. `order` says why the incidents could not be placed; None: they could.
    """
    shown = without_aliases(rows)
    return [
        _moved_to(git, kernels, arm, [row for row in shown if row.arm == arm], culprits)
        for arm in range(1, len(kernels))
    ]


def _moved_to(
    git: Git,
    kernels: Sequence[Row],
    arm: int,
    rows: Sequence[ComparisonRow],
    culprits: Sequence[Row],
) -> Row:
    between, backwards, order = _between(
        git, kernels[0]["commit"], kernels[arm]["commit"], culprits
    )
    incidents: dict[str, Row] = {}
    for one in between:
        names = ("incident", "status", "commit", "subject", "author", "tree")
        entry = incidents.setdefault(
            one["incident"], {key: one[key] for key in names} | {"metrics": []}
        )
        metric = {key: one[key] for key in ("testbox", "unit_job", "metric", "change_pct")}
        if metric not in entry["metrics"]:
            entry["metrics"].append(metric | {"bisection": one["bisection"]})
    changed = sorted(
        (row for row in rows if row.changed and row.reference == 0),
        key=lambda row: -abs(row.change_pct or 0.0),
    )
    return {
        "kernel": arm,
        "backwards": backwards,
        "order": order,
        "judged": sum(row.reference == 0 for row in rows),
        "changed": len(changed),
        "rows": [_with_culprits(row, between) for row in changed[:_MOVED]],
        "incidents": list(incidents.values()),
    }


def _with_culprits(row: ComparisonRow, between: Sequence[Row]) -> Row:
    own = [one for one in between if (one["unit_job"], one["metric"]) == (row.unit_job, row.metric)]
    names = ("testbox", "unit_job", "metric")
    return {
        **{name: getattr(row, name) for name in names},
        "verdict": row.verdict,
        "change_pct": row.change_pct,
        "interval_pct": list(row.interval_pct) if row.interval_pct else None,
        "incidents": list(dict.fromkeys(one["incident"] for one in own)),
    }


def _between(
    git: Git, first: str, last: str, culprits: Sequence[Row]
) -> tuple[list[Row], bool, str | None]:
    """Return the culprits between two commits, whether the first is the newer one, and why not."""
    commits = list(dict.fromkeys(one["commit"] for one in culprits))[:_CULPRITS]
    if not commits:
        return [], False, None
    try:
        forth, back = git.places(first, last, [*commits, last]), {}
        if last not in forth:
            back = git.places(last, first, [*commits, first])
    except GitError:
        return [], False, "the mirror does not have the history between the two"
    inside: dict[str, Any] = forth or back
    aside = None
    if forth and not git.is_ancestor(first, last):
        aside = "the first kernel is not an ancestor of the other, whose own commits are listed"
    return [one for one in culprits if one["commit"] in inside], not forth and bool(back), aside
