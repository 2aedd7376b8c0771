"""The heat grid of a page of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow, without_aliases

from ..ports import Row

_GRID_LINES: Final = 120  # tests in the heat grid


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
    return {"row": row, "heat": heat, "why": row.reason or ""}
