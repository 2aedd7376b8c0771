"""What became of the swings that a comparison raised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.model.documents import Row
from swingbot.core.text.plain import clean

_OUTCOMES: Final = {
    "suspected": "fresh boots are to confirm or refute it",
    "refuted": "refuted",
    "open": "confirmed, to be bisected",
    "bisecting": "confirmed, being bisected",
    "explained": "confirmed, its culprit found",
    "not_found": "confirmed, no culprit found",
    "not_bisected": "not bisected",
    "known": "known",
}


def swings_of(rows: Sequence[Row]) -> list[Row]:
    """Rows of a table that raised a swing."""
    return [row for row in rows if row["swing_state"]]


def outcome(row: Row) -> str:
    """What became of the swing of a row, without ids."""
    return _OUTCOMES[row["swing_state"] or "suspected"]


def reason(row: Row) -> str:
    """Return the recorded reason for the state of a swing, empty if there is none."""
    if row["evidence"] is None or row["swing_state"] not in ("refuted", "known", "not_bisected"):
        return ""
    return clean(row["evidence"]["reason"] or row["evidence"]["alarm"] or "")


def swing_lines(rows: Sequence[Row]) -> list[str]:
    """The lines of `swingbot show` of what became of each swing; empty without a swing."""
    lines = list(map(_line, swings_of(rows)))
    return ["Swings that it raised", *lines] if lines else []


def _line(row: Row) -> str:
    by = ", ".join(_ids(row))
    words = f"  {row['metric']} of {row['unit_job']} on {row['testbox']}: {outcome(row)}"
    return words + (f" ({by})" if by else "") + (f": {why}" if (why := reason(row)) else "")


def _ids(row: Row) -> Iterator[str]:
    """Ids of what proved or refuted it, and of its search."""
    yield from (one for one in (row["proof"], row["bisection"]) if one)
