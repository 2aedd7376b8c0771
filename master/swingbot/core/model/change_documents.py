"""Tables for tokens that see no levels. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, TypedDict


class ChangesKeys(TypedDict):
    id: str
    kind: str  # as of a table
    tree: str
    status: str  # as of a table
    created_at: str
    testboxes: list[str]
    arms: list[dict[str, Any]]  # `name`, `commit` and `subject` of its kernels


class ChangeInPercent(TypedDict):
    """A headline row; percentages have one decimal and three digits, and none is below -99.9."""

    testbox: str
    test: int  # number of the unit job in its table
    metric: str
    arm: int  # number of the arm
    reference: int  # number of the arm it is compared with
    against: str  # rule of the reference
    verdict: str
    change_pct: float | None
    interval_pct: list[float] | None


class TableOfChanges(ChangesKeys):
    """A table for a token without levels."""

    rows: list[ChangeInPercent]  # worse first, then larger first


class LineOfChanges(ChangesKeys):
    """A line of a table for a token without levels."""

    worse: int  # rows with this verdict
    better: int  # rows with this verdict
    changed: int  # rows with this verdict
    same: int  # rows with this verdict
    unclear: int  # rows that are unclear or invalid
