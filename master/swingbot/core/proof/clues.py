"""What goes with a change and may explain it: counters, symbols, sizes. At most five, and only where they go wherever the change goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.proof.gates import GateRow
from swingbot.core.proof.share import Effect, effect_of
from swingbot.core.text.numbers import change, percent
from swingbot.core.text.plain import cut
from swingbot.core.thresholds import CLUE_FOLLOWS_SHARE, CLUE_LEAST_PCT

MOST: Final = 5
_OF_CODE: Final = 2  # of them sizes of functions that the commit changed
# smaller changes of a counter are there in any two kernels
_LEAST: Final = math.log1p(CLUE_LEAST_PCT / 100.0)
_COUNTERS: Final = ("counter", "count", "time", "share", "profile")
ClueKind = Literal["counter", "symbol", "size"]
CLUE_KINDS: Final[tuple[ClueKind, ...]] = ("counter", "symbol", "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """Something that explains the change: a counter, a symbol or a size, and what became of it ("12345 to 23456, 90.0% more")."""

    kind: ClueKind
    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRows:
    """The rows of another pair of kernels of the same unit job on the same testbox; `turned`: the head is the one without the commit."""

    rows: Sequence[ComparisonRow]
    turned: bool = False


def clues(
    headline: ComparisonRow,
    rows: Sequence[ComparisonRow],
    others: Sequence[PairRows],
    code: GateRow | None,
) -> tuple[Clue, ...]:
    """The best first. `rows` are those of parent and commit, `others` of the pairs that gates measured."""
    own = effect_of(headline)
    if own is None:
        return ()
    found = [clue for row in rows if _beside(row, headline) for clue in _of_row(row, own, others)]
    best = [clue for _, clue in sorted(found, key=lambda scored: (-scored[0], scored[1].name))]
    sizes = _of_code(code)[:_OF_CODE]
    return (*best[: MOST - len(sizes)], *sizes)


def _beside(row: ComparisonRow, headline: ComparisonRow) -> bool:
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
            ),
        )
    ]


def _points(row: ComparisonRow) -> float | None:
    """Change of a share, 1 for a hundred points; None unless it is clear."""
    if row.points is None or row.points.change is None or row.points.interval is None:
        return None
    low, high = row.points.interval
    return row.points.change / 100.0 if row.changed and low * high > 0 else None


def _ratio(row: ComparisonRow, own: Effect) -> float | None:
    """Log effect of a counter; None unless it is clear, large enough to matter, and other than the amount of work."""
    found = effect_of(row)
    if found is None or found.low is None or found.high is None or not row.changed:
        return None
    if (
        found.low * found.high <= 0
        or abs(found.log) < _LEAST
        or abs(found.log - own.log) < CLUE_FOLLOWS_SHARE * abs(own.log)
    ):
        return None
    return found.log


def _same_way(row: ComparisonRow, pair: PairRows, size: float) -> bool:
    """Whether another pair that has the row shows it in the same direction."""
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
    """Functions whose size the commit changed, the largest change first."""
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
    return f"{base} to {head} bytes ({percent(100.0 * (head / base - 1)) if base else 'new'} {'more' if head > base else 'less'}), in {where}"


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"
