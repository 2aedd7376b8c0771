"""Labels cells of tables with the heads of their columns.

On narrow screens the style sheet shows each row as a block, where a number needs its label.
Works on rendered pages: all text in them is escaped, so `<` and `>` only occur in tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Final

_TABLE: Final = re.compile(r"<table\b.*?(?:</table>|\Z)", re.DOTALL)
_HEAD: Final = re.compile(r"<thead>\s*<tr>((?:(?!</?thead>).)*)</tr>\s*</thead>", re.DOTALL)
_HEAD_CELL: Final = re.compile(r"<th\b([^<>]*)>(.*?)(?:</th>|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"<svg.*?(?:</svg>|\Z)|<[^<>]*>", re.DOTALL)
_ROW: Final = re.compile(r"<tr\b.*?(?=<tr\b|</tbody>|</table>)", re.DOTALL)
_CELL: Final = re.compile(r"<(td|th)\b([^<>]*)>")
_SPAN: Final = re.compile(r'\b(colspan|rowspan)="(\d+)"')


def label_cells(page: str) -> str:
    """Add `data-label` to the cells of every table that has one row of column heads."""
    return _TABLE.sub(lambda match: _table(match[0]), page)


def _table(table: str) -> str:
    heads = _HEAD.search(table)
    if heads is None:
        return table
    labels = [_words(cell[2]) for cell in _HEAD_CELL.finditer(heads[1])]
    if any("colspan" in cell[1] for cell in _HEAD_CELL.finditer(heads[1])):
        return table
    below: dict[int, int] = {}  # column -> further rows that a cell of it spans
    body = _ROW.sub(lambda row: _row(row[0], labels, below), table[heads.end() :])
    return table[: heads.end()] + body


def _words(head: str) -> str:
    return " ".join(unescape(_TAG.sub(" ", head)).split())


def _row(row: str, labels: list[str], below: dict[int, int]) -> str:
    columns = _columns(below)

    def labelled(cell: re.Match[str]) -> str:
        spans = {name: int(size) for name, size in _SPAN.findall(cell[2])}
        column = next(columns)
        if (rows := spans.get("rowspan", 1)) > 1:
            below[column] = rows - 1
        for _ in range(spans.get("colspan", 1) - 1):
            next(columns)
        label = labels[column] if column < len(labels) and "colspan" not in spans else ""
        said = f' data-label="{escape(label)}"' if label else ""
        return f"<{cell[1]}{said}{cell[2]}>"

    return _CELL.sub(labelled, row)


def _columns(below: dict[int, int]) -> Iterator[int]:
    """Columns that cells of the rows above leave free."""
    column = 0
    while True:
        if below.get(column, 0):
            below[column] -= 1
        else:
            yield column
        column += 1
