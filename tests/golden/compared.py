"""What `swingbot compare` prints of the boots in `compare/*.in.yaml`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.report.table.formats import as_text
from swingbot.core.report.table.sheet import sheet_of_table
from swingbot.core.stats.compare import compare
from swingbot.core.stats.rows import BootRuns, Rule
from tests.table_documents import a_table

COMPARED = Path(__file__).parent / "compare"
Boots = Sequence[BootRuns]
Judge = Callable[[Boots, Boots, Rule], ComparisonRow]


def compared_text(document: Path, judge: Judge = compare) -> str:
    """The rows that `judge` makes of the boots, as they are stored and printed."""
    rows = []
    for metric, facts in yaml.safe_load(document.read_text(encoding="utf-8")).items():
        sides = [
            [BootRuns(k=k, values=(value,)) for k, value in enumerate(facts[side])]
            for side in ("base", "head")
        ]
        row = replace(
            judge(sides[0], sides[1], Rule(**facts["rule"])),
            testbox="box",
            unit_job=metric.partition(".")[0],
            metric=metric,
            unit=facts["unit"],
            headline=True,
        )
        rows.append(row.to_json())
    table = a_table({}, ["base", "head"], against=("first",), id="c1", rows=rows)
    return as_text(sheet_of_table(table))
