"""The verdict of a row in words: tables, pages, mails and commands take them from here.

A size and what is known of it are two things: `size` is the number, `doubt` what is missing before
it can be claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from swingbot.core.model.comparison_row import CHANGED, ComparisonRow
from swingbot.core.text.numbers import (
    change,
    count,
    nil,
    rounded_up,
    signed_percent,
    two_digits,
    typeset,
)

Judged = ComparisonRow | Mapping[str, Any]  # a row, or its document

_SAME: Final = "'< N %' means no change of N % or more"
_SMALL: Final = "a change in brackets is there and smaller than what matters"
_UNCLEAR: Final = "a change in parentheses is not clear"
_ON_PAGES: Final = {"same": "no change", "unclear": "not clear", "invalid": "not comparable"}
LEGEND: Final = f"{_SAME}; {_SMALL}; {_UNCLEAR}"


class _Facts(NamedTuple):
    verdict: str
    change_pct: float | None
    interval_pct: tuple[float | None, float | None] | None
    margin_pct: float | None
    more_boots: int | None
    better: Any
    points: bool  # a share, whose margin is in percentage points


def _facts(row: Judged) -> _Facts:
    if isinstance(row, ComparisonRow):
        points = row.points is not None
        given = [getattr(row, name) for name in _Facts._fields[:-1]]
    else:
        points = row.get("change_points") is not None
        given = [row.get(name) for name in _Facts._fields[:-1]]
    return _Facts._make([*given, points])


def _small(row: _Facts) -> bool:
    """Whether the interval of a change that is too small to matter excludes 0."""
    low, high = row.interval_pct or (None, None)
    if row.verdict != "same" or nil(row.change_pct) or low is None or high is None:
        return False
    return not low <= 0.0 <= high


def _excluded(row: _Facts) -> str | None:
    """The smallest change that is excluded, with its unit; None if it is not known."""
    if row.margin_pct is None:
        return None
    bound = f"{rounded_up(row.margin_pct):g}"
    if not row.points:
        return f"{bound} %"
    return f"{bound} point" if bound == "1" else f"{bound} points"


def excluded(rows: Iterable[Judged]) -> str:
    """Return the smallest change that all of these rows exclude: `0.8 %`, of shares `2 points`, of
    both `0.8 % or 2 points`. Empty if it is not known.
    """
    known = [own for own in map(_facts, rows) if own.margin_pct is not None]
    largest = sorted(known, key=lambda own: own.margin_pct or 0.0)
    by_unit = {own.points: _excluded(own) or "" for own in largest}
    return " or ".join(by_unit[points] for points in sorted(by_unit))


def brief(row: Judged | None) -> str:
    """Return a change as a cell shows it; `legend` explains the notation.

    `+5.6%` is claimed, `(+5.6%)` is not clear, `< 0.8 %` excludes changes of 0.8 % and more (of a
    share: `< 0.8 points`), `[+0.48%]` is there and smaller than what matters; otherwise the
    verdict. Empty for None.
    """
    if row is None:
        return ""
    own = _facts(row)
    if own.verdict == "invalid" or own.change_pct is None:
        return own.verdict
    if own.verdict == "unclear":
        return f"({signed_percent(own.change_pct)})"
    if own.verdict != "same":
        return signed_percent(own.change_pct)
    if _small(own):
        return f"[{two_digits(own.change_pct, '+')}%]"
    excluded = _excluded(own)
    return "same" if excluded is None else f"< {excluded}"


def on_page(row: Judged | None) -> str:
    """Return `brief` as pages and plots print it."""
    text = brief(row)
    return _ON_PAGES.get(text) or typeset(text)


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
    if own.verdict == "invalid" or (own.verdict == "unclear" and nil(own.change_pct)):
        return doubt(row)
    if own.verdict in CHANGED:
        return change(own.change_pct, own.better)
    if own.verdict == "unclear":
        return f"{change(own.change_pct, own.better)}, {doubt(row)}"
    if _small(own) and own.change_pct is not None:
        digits = 2 if abs(own.change_pct) < 1.0 else 1
        return f"{change(own.change_pct, own.better, digits)}, smaller than what matters"
    excluded = _excluded(own)
    return "no change" if excluded is None else f"no change of {excluded} or more"


def legend(rows: Iterable[Judged]) -> list[str]:
    """Explain the notation of `brief` that these rows use."""
    cells = {brief(row)[:1] for row in rows}
    marks = (("<", _SAME), ("[", _SMALL), ("(", _UNCLEAR))
    return [words for mark, words in marks if mark in cells]
