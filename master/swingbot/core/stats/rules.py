"""The rule of each class of metric. What differs: the scale, what a value cannot be, what the minimum effect is measured in.

| class | scale | minimum effect | cannot be |
|---|---|---|---|
| kpi, benchmark | logarithm | percent | |
| time | logarithm | percent | zero or less |
| count, counter | root; whole numbers spread at least like Poisson counts | percent | less than zero |
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
    """The rule of a metric of this class (KeyError for an unknown one); `more` are further fields of Rule."""
    return Rule(
        klass=klass,
        better=better,
        min_effect_pct=min_effect_pct,
        **_OWN[_SAME_AS.get(klass, klass)],
        **more,
    )
