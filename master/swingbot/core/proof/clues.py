"""Clues: counters, symbols and sizes that may explain a change.

At most five are listed. A clue must change in every measured pair of kernels that shows the change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.proof.gates import GateRow
from swingbot.core.proof.share import Effect, effect_of
from swingbot.core.text.numbers import change, percent, thousands
from swingbot.core.text.plain import cut
from swingbot.core.thresholds import CLUE_FOLLOWS_SHARE, CLUE_LEAST_PCT

MOST: Final = 5
_OF_CODE: Final = 2  # of these, sizes of functions that the commit changed
# any two kernels differ by smaller changes of a counter
_LEAST: Final = math.log1p(CLUE_LEAST_PCT / 100.0)
_COUNTERS: Final = ("counter", "count", "time", "share", "profile")
ClueKind = Literal["counter", "symbol", "size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A counter, symbol or size that may explain the change.

    `words` gives its values in parent and commit: "12345 to 23456, 90.0% more". A counter has a
    `change_pct`, a symbol `points`.
    """

    kind: ClueKind
    name: str
    words: str
    base: float | None = None
    head: float | None = None
    change_pct: float | None = None
    points: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRows:
    """Rows of another pair of kernels for the same unit job on the same testbox.

    `turned` is true if the head is the kernel without the commit.
    """

    rows: Sequence[ComparisonRow]
    turned: bool = False


def clues(
    headline: ComparisonRow,
    rows: Sequence[ComparisonRow],
    others: Sequence[PairRows],
    code: GateRow | None,
) -> tuple[Clue, ...]:
    """Return the clues, strongest first.

    `rows` compare parent and commit; `others` are the pairs that gates measured.
    """
    own = effect_of(headline)
    if own is None:
        return ()
    scored_clues = [
        clue for row in rows if _is_counter_of(row, headline) for clue in _of_row(row, own, others)
    ]
    best = [
        clue for _, clue in sorted(scored_clues, key=lambda scored: (-scored[0], scored[1].name))
    ]
    sizes = _of_code(code)[:_OF_CODE]
    return (*best[: MOST - len(sizes)], *sizes)


def _is_counter_of(row: ComparisonRow, headline: ComparisonRow) -> bool:
    return (
        (row.testbox, row.unit_job) == (headline.testbox, headline.unit_job)
        and row.klass in _COUNTERS
        and not row.headline
    )


def _of_row(
    row: ComparisonRow, own: Effect, others: Sequence[PairRows]
) -> list[tuple[float, Clue]]:
    share = row.klass in ("share", "profile")
    size = _points(row) if share else _ratio(row, own)
    base, head = row.base.mean, row.head.mean
    if size is None or base is None or head is None:
        return []
    if not all(_same_way(row, pair, size) for pair in others):
        return []
    words = f"{_number(base)} to {_number(head)}" + (
        " points" if share else f", {change(row.change_pct, row.better)}"
    )
    return [
        (
            abs(size) * (10.0 if share else 1.0),
            Clue(
                kind="symbol" if row.klass == "profile" else "counter",
                name=row.metric,
                words=words,
                base=base,
                head=head,
                change_pct=None if share else row.change_pct,
                points=100.0 * size if share else None,
            ),
        )
    ]


def _points(row: ComparisonRow) -> float | None:
    """Return the change of a share (1 is a hundred points), or None if it is not significant."""
    if row.points is None or row.points.change is None or row.points.interval is None:
        return None
    low, high = row.points.interval
    return row.points.change / 100.0 if row.changed and low * high > 0 else None


def _ratio(row: ComparisonRow, own: Effect) -> float | None:
    """Return the log effect of a counter.

    None if it is not significant, too small, or only follows the amount of work done.
    """
    effect = effect_of(row)
    if effect is None or effect.low is None or effect.high is None or not row.changed:
        return None
    if (
        effect.low * effect.high <= 0
        or abs(effect.log) < _LEAST
        or abs(effect.log - own.log) < CLUE_FOLLOWS_SHARE * abs(own.log)
    ):
        return None
    return effect.log


def _same_way(row: ComparisonRow, pair: PairRows, size: float) -> bool:
    """Return whether the other pair, if it has this row, changes in the same direction."""
    for other in pair.rows:
        if other.key == row.key:
            seen = (
                (other.points.change if other.points else None)
                if row.klass in ("share", "profile")
                else other.change_pct
            )
            return (
                seen is not None
                and other.verdict != "same"
                and seen * size * (-1 if pair.turned else 1) > 0
            )
    return True


def _of_code(code: GateRow | None) -> list[Clue]:
    """Return the functions whose size the commit changed, largest change first."""
    if code is None or code.status != "pass":
        return []
    sized = [
        one
        for one in code.detail.get("functions", [])
        if one["base"] is not None and one["head"] is not None and one["base"] != one["head"]
    ]
    sized.sort(key=lambda one: (-abs(one["head"] - one["base"]), one["name"]))
    return [
        Clue(
            kind="size",
            name=cut(one["name"], 80),
            words=_sized(one["base"], one["head"], one["object"]),
        )
        for one in sized
    ]


def _sized(base: int, head: int, where: str) -> str:
    return (
        f"{base} to {head} bytes ({percent(100.0 * (head / base - 1)) if base else 'new'}"
        f" {'more' if head > base else 'less'}), in {where}"
    )


def _number(value: float) -> str:
    return thousands(value) if abs(value) >= 1000 else f"{value:.4g}"
