"""Cells get the heads of their columns as labels."""

from __future__ import annotations

import re

from swingbot.web.http.cell_labels import label_cells

HEAD = (
    '<thead><tr><th>test</th><th class="num">95 % <b>interval</b></th><th>boots</th></tr></thead>'
)


def labels(body: str, head: str = HEAD) -> list[list[str]]:
    """The label of each cell, by row; '' for none."""
    page = label_cells(f"<p>x</p><table>{head}<tbody>{body}</tbody></table>")
    return [
        [
            (re.search(r'data-label="([^"]*)"', cell) or [""] * 2)[1]
            for cell in re.findall(r"<t[dh]\b[^>]*>", row)
        ]
        for row in page.partition("<tbody>")[2].split("<tr>")[1:]
    ]


def test_a_cell_has_the_words_of_its_columns_head() -> None:
    assert labels("<tr><th>a</th><td>1</td><td>2</td></tr>") == [["test", "95 % interval", "boots"]]


def test_a_cell_below_one_that_spans_rows_has_the_label_of_its_own_column() -> None:
    body = '<tr><td rowspan="2">a</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr>'
    again = "<tr><td>b</td><td>5</td><td>6</td></tr>"
    whole = ["test", "95 % interval", "boots"]
    assert labels(body + again) == [whole, whole[1:], whole]


def test_a_cell_over_several_columns_has_none() -> None:
    assert labels('<tr><td colspan="2">none</td><td>2</td></tr>') == [["", "boots"]]


def test_quotes_in_a_head_do_not_end_the_attribute() -> None:
    head = '<thead><tr><th>"a" &amp; b<svg><text>0 %</text></svg></th></tr></thead>'
    assert labels("<tr><td>1</td></tr>", head) == [["&quot;a&quot; &amp; b"]]


def test_tables_without_one_row_of_heads_stay_as_they_are() -> None:
    for table in (
        "<table><tr><th>a</th><td>1</td></tr></table>",
        '<table><thead><tr><th colspan="2">a</th></tr></thead>'
        "<tbody><tr><td>1</td></tr></tbody></table>",
    ):
        assert label_cells(table) == table


def test_only_cells_change() -> None:
    page = f"<table>{HEAD}<tbody><tr><td>1 &lt; 2</td></tr></tbody></table><pre>&lt;td&gt;</pre>"
    assert re.sub(r' data-label="[^"]*"', "", label_cells(page)) == page
