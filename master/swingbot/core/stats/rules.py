"""The rule of each metric class: its scale, impossible values and unit of the minimum effect.

| class | scale | minimum effect | impossible |
|---|---|---|---|
| kpi, benchmark | logarithm | percent | |
| time | logarithm | percent | zero or less |
| count, counter | root; integers spread at least like Poisson counts | percent | less than zero |
| share, profile | difference | points of a hundred | less than zero |
"""

from __future__ import annotations

from typing import Any, Final, Literal

from swingbot.core.stats.rows import Rule

CLASSES: Final = ("kpi", "count", "share", "time")
_SAME_AS: Final = {"benchmark": "kpi", "counter": "count", "profile": "share"}
_OWN: Final[dict[str, dict[str, Any]]] = {
    "kpi": {},
    "time": {"positive": True},
    "count": {"form": "root", "poisson": True, "least": 0.0},
    "share": {"form": "difference", "points": True, "least": 0.0},
}


def rule_for(
    klass: str, better: Literal["higher", "lower"] | None, min_effect_pct: float, **more: Any
) -> Rule:
    """Return the rule of a metric class; `more` sets further fields of Rule.

    Raises KeyError for an unknown class.
    """
    return Rule(
        klass=klass,
        better=better,
        min_effect_pct=min_effect_pct,
        **_OWN[_SAME_AS.get(klass, klass)],
        **more,
    )
