"""What a row says in a cell and in a sentence: a size, what is excluded, what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.model.comparison_row import NO_BOOTS, ComparisonRow, Points
from swingbot.core.table.verdict import brief, doubt, excluded, in_words, legend, size
from swingbot.web.http.filters import claim


def a_row(verdict: str, change: float | None, **more: Any) -> ComparisonRow:
    given = {"better": "higher", "base": NO_BOOTS, "head": NO_BOOTS, "paired": False} | more
    return ComparisonRow(change_pct=change, interval_pct=more.pop("interval_pct", None),
                         verdict=verdict, **{k: v for k, v in given.items() if k != "interval_pct"})  # type: ignore[arg-type]  # fmt: skip


CLAIMED = a_row("worse", -18.04)
EXCLUDED = a_row("same", 0.1, margin_pct=0.4712, interval_pct=(-0.2, 0.4))
SMALL = a_row("same", 0.31, margin_pct=0.47, interval_pct=(0.2, 0.4))
DOUBTED = a_row("unclear", -18.1, more_boots=1)
HOPELESS = a_row("unclear", 2.0)
INVALID = a_row("invalid", 2.0)


@pytest.mark.parametrize(
    ("row", "cell", "sentence", "word"),
    [
        (CLAIMED, "-18.0%", "18.0% worse", "worse"),
        (a_row("changed", 3.0, better=None), "+3.0%", "3.0% higher", "changed"),
        (EXCLUDED, "< 0.48 %", "no change of 0.48 % or more", "< 0.48\u00a0%"),
        (SMALL, "[+0.31%]", "0.31% better, smaller than what matters", "[+0.31\u00a0%]"),
        (a_row("same", 0.0), "same", "no change", "no change"),
        (
            DOUBTED,
            "(-18.1%)",
            "18.1% worse, 1 more boot a side needed",
            "1 more boot a side needed",
        ),
        (a_row("unclear", -3.0, more_boots=4, better="lower"), "(-3.0%)",
         "3.0% better, 4 more boots a side needed", "4 more boots a side needed"),
        (HOPELESS, "(+2.0%)", "2.0% better, not clear", "not clear"),
        (a_row("unclear", None), "unclear", "not clear", "not clear"),
        (INVALID, "invalid", "not comparable", "not comparable"),
    ],
)  # fmt: skip
def test_a_row_in_a_cell_in_a_sentence_and_in_a_word(
    row: ComparisonRow, cell: str, sentence: str, word: str
) -> None:
    assert (brief(row), in_words(row), claim(row)) == (cell, sentence, word)
    document = row.to_json()
    assert (brief(document), in_words(document), claim(document)) == (cell, sentence, word)


SHARE = Points(change=0.1, interval=(0.07, 0.13))


@pytest.mark.parametrize(
    ("row", "cell", "sentence"),
    [
        # the margin of a share is in points: 0.16 of 10 are 1.6 %
        (a_row("same", 0.1, margin_pct=0.154, points=SHARE), "< 0.16 points",
         "no change of 0.16 points or more"),
        (a_row("same", 0.1, margin_pct=1.0, points=SHARE), "< 1 point",
         "no change of 1 point or more"),
        # a small change is the same number in a cell and in a sentence
        (a_row("worse", -0.04), "-0.04%", "0.04% worse"),
        (a_row("unclear", 0.04, more_boots=2), "(+0.04%)",
         "0.04% better, 2 more boots a side needed"),
        (a_row("unclear", -0.001, more_boots=2), "(0.0%)", "2 more boots a side needed"),
        (a_row("same", -0.004, margin_pct=0.0051, interval_pct=(-0.005, -0.003)), "< 0.0051 %",
         "no change of 0.0051 % or more"),
        (a_row("same", 12.0, margin_pct=0.9, interval_pct=(8.0, 16.0), points=SHARE), "[+12%]",
         "12.0% better, smaller than what matters"),
    ],
)  # fmt: skip
def test_shares_and_changes_near_none(row: ComparisonRow, cell: str, sentence: str) -> None:
    assert (brief(row), in_words(row)) == (cell, sentence)
    assert (brief(row.to_json()), in_words(row.to_json())) == (cell, sentence)


def test_what_all_rows_exclude_is_the_largest_margin_of_each_unit() -> None:
    shares = [a_row("same", 0.1, margin_pct=margin, points=SHARE) for margin in (1.0, 0.154)]
    rows = [EXCLUDED, *shares, a_row("same", 0.0, margin_pct=0.2), a_row("same", 0.0)]
    assert excluded(rows) == "0.48 % or 1 point"
    assert [excluded(some) for some in (rows[:1], shares, rows[-1:])] == ["0.48 %", "1 point", ""]


def test_size_and_doubt_are_two_things() -> None:
    assert (size(DOUBTED), doubt(DOUBTED)) == ("-18.1%", "1 more boot a side needed")
    assert (size(CLAIMED), doubt(CLAIMED)) == ("-18.0%", "")
    assert (size(a_row("unclear", None)), brief(None)) == ("", "")


def test_a_legend_explains_the_signs_that_are_there_and_no_others() -> None:
    assert legend([CLAIMED]) == []
    words = "; ".join(legend([DOUBTED, SMALL, EXCLUDED]))
    assert "'< N %' means no change of N % or more" in words
    assert "in brackets" in words and "in parentheses" in words
    assert "parentheses" not in "; ".join(legend([EXCLUDED, SMALL]))
