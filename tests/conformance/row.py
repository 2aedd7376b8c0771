"""One line of the conformance table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing that both sides did: how much was compared, and each difference in one line.

    `note` says what was not compared and why; it does not count as a difference.
    """

    what: str
    compared: int
    differences: tuple[str, ...] = ()
    note: str = ""


def table(rows: Iterable[Row]) -> str:
    """The rows for a person, differences below the row that they belong to."""
    found = list(rows)
    width = max((len(row.what) for row in found), default=0)
    lines = []
    for row in found:
        verdict = (
            f"{len(row.differences)} differ"
            if row.differences
            else "equal"
            if row.compared
            else "not compared"
        )
        lines.append(
            (
                f"{row.what:{width}}  {row.compared:5}  "
                f"{verdict}{'  ' + row.note if row.note else ''}"
            ).rstrip()
        )
        lines += [f"    {difference}" for difference in row.differences]
    return "\n".join(lines)
