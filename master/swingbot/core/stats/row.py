"""A comparison row as scripts read it (JSON), without ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

_Row = TypeVar("_Row", bound=Mapping[str, Any])
Key = tuple[str, str, str]  # testbox, unit job, metric
CHANGED: Final = ("worse", "better", "changed")  # the verdicts that say so


def key_of(row: Mapping[str, Any]) -> Key:
    """Which row of a comparison it is."""
    return row["testbox"], row["unit_job"], row["metric"]


def row_of(rows: Iterable[_Row], key: Key) -> _Row | None:
    """The row of that testbox, unit job and metric; None where the comparison has none."""
    return next((row for row in rows if key_of(row) == key), None)
