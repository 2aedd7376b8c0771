"""The verdict of a row in words: tables, pages, mails and commands take them from here.

A size and what is known of it are two things: `size` is the number, `doubt` what is missing before
it can be claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from swingbot.core.model.comparison_row import CHANGED, ComparisonRow
from swingbot.core.text.numbers import change, count, rounded_up, two_digits

Judged = ComparisonRow | Mapping[str, Any]  # a row, or its document

_SAME: Final = "'< N %' means no change of N % or more"
_SMALL: Final = "a change in brackets is there and smaller than what matters"
_UNCLEAR: Final = "a change in parentheses is not clear"
LEGEND: Final = f"{_SAME}; {_SMALL}; {_UNCLEAR}"


class _Facts(NamedTuple):
    verdict: str
    change_pct: float | None
    interval_pct: tuple[float | None, float | None] | None
    margin_pct: float | None
    more_boots: int | None
    better: Any


def _facts(row: Judged) -> _Facts:
    if isinstance(row, ComparisonRow):
        return _Facts._make(getattr(row, name) for name in _Facts._fields)
    return _Facts._make(row.get(name) for name in _Facts._fields)


def _small(row: _Facts) -> bool:
    """Whether the interval of a change that is too small to matter excludes 0."""
    low, high = row.interval_pct or (None, None)
    return row.verdict == "same" and low is not None and high is not None and not low <= 0.0 <= high


def brief(row: Judged | None) -> str:
    """Return a change as a cell shows it; `legend` explains the notation.

    `+5.6%` is claimed, `(+5.6%)` is not clear, `< 0.8 %` excludes changes of 0.8 % and more,
    `[+0.48%]` is there and smaller than what matters; otherwise the verdict. Empty for None.
    """
    if row is None:
        return ""
    own = _facts(row)
    if own.verdict == "invalid" or own.change_pct is None:
        return own.verdict
    if own.verdict == "unclear":
        return f"({own.change_pct:+.1f}%)"
    if own.verdict != "same":
        return f"{own.change_pct:+.1f}%"
    if _small(own):
        return f"[{two_digits(own.change_pct, '+')}%]"
    return "same" if own.margin_pct is None else f"< {rounded_up(own.margin_pct):g} %"


def size(row: Judged) -> str:
    """Return the size alone: that of `brief` without parentheses; empty if there is none."""
    own = _facts(row)
    return "" if own.change_pct is None else brief(row).strip("()")


def doubt(row: Judged) -> str:
    """Return what is missing before the size of a row can be claimed; empty if nothing is."""
    own = _facts(row)
    if own.verdict == "invalid":
        return "not comparable"
    if own.verdict != "unclear":
        return ""
    if own.more_boots is None:
        return "not clear"
    return f"{count(own.more_boots, 'more boot')} a side needed"


def in_words(row: Judged) -> str:
    """Return a row's change as a sentence has it, with its direction as a word:
    `18.0% worse`, `no change of 0.48 % or more`, `18.1% worse, 1 more boot a side needed`.
    """
    own = _facts(row)
    if own.verdict == "invalid" or (own.verdict == "unclear" and own.change_pct is None):
        return doubt(row)
    if own.verdict in CHANGED:
        return change(own.change_pct, own.better)
    if own.verdict == "unclear":
        return f"{change(own.change_pct, own.better)}, {doubt(row)}"
    if _small(own) and own.change_pct is not None:
        return f"{change(own.change_pct, own.better, 2)}, smaller than what matters"
    if own.margin_pct is None:
        return "no change"
    return f"no change of {rounded_up(own.margin_pct):g} % or more"


def legend(rows: Iterable[Judged]) -> list[str]:
    """Explain the notation of `brief` that these rows use."""
    cells = {brief(row)[:1] for row in rows}
    marks = (("<", _SAME), ("[", _SMALL), ("(", _UNCLEAR))
    return [words for mark, words in marks if mark in cells]
