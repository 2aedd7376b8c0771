"""A comparison row as scripts read it (JSON), without ids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from swingbot.core.stats.rows import RowVerdict, Rule, Side

_Row = TypeVar("_Row", bound=Mapping[str, Any])
Key = tuple[str, str, str]  # testbox, unit job, metric
CHANGED: Final = ("worse", "better", "changed")  # the verdicts that say so


def key_of(row: Mapping[str, Any]) -> Key:
    """Which row of a comparison it is."""
    return row["testbox"], row["unit_job"], row["metric"]


def row_of(rows: Iterable[_Row], key: Key) -> _Row | None:
    """The row of that testbox, unit job and metric; None where the comparison has none."""
    return next((row for row in rows if key_of(row) == key), None)


def row_json(row: RowVerdict, rule: Rule) -> dict[str, Any]:
    """`mean` is of boot means, or of the level that `level` names; `stddev` is between boots, `stddev_within` of a run in its boot. Missing is None."""
    facts: dict[str, Any] = {
        "class": rule.klass,
        "better": rule.better,
        "base": side_json(row.base),
        "head": side_json(row.head),
        "change_pct": row.change_pct,
        "interval_pct": _pair(row.interval_pct),
        "verdict": row.verdict,
        "reason": row.reason,
        "level": row.level,
        "min_effect_pct": rule.min_effect_pct,
        "margin_pct": _finite(row.margin_pct),
        "more_boots": row.more_boots,
        "paired": rule.paired,
        "p": _finite(row.p),
    }
    if rule.points:
        facts |= {"change_points": row.change_points, "interval_points": _pair(row.interval_points)}
    return facts


def side_json(side: Side) -> dict[str, Any]:
    return {
        "boots": side.boots,
        "runs": side.runs,
        "mean": side.mean,
        "stddev": side.stddev,
        "stddev_within": side.stddev_within,
    }


def _pair(bounds: tuple[float, float] | None) -> list[float] | None:
    return list(bounds) if bounds and all(map(math.isfinite, bounds)) else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
