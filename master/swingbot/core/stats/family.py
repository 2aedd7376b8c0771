"""The rows of one table judged together: their intervals hold jointly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import BootRuns, Rule, compare


def compare_family(
    arms: Sequence[Sequence[BootRuns]],
    pairs: Sequence[tuple[int, int]],
    rule: Rule,
    *,
    invalid: Mapping[int, str] | None = None,
) -> list[ComparisonRow]:
    """Judge each pair (reference, arm) such that the error rates of `rule` hold for all together (Bonferroni)."""
    m = max(1, len(pairs))
    shared = replace(rule, alpha=rule.alpha / m, interval_alpha=rule.interval_alpha / m)
    reasons = invalid or {}
    return [
        compare(arms[reference], arms[arm], shared if m > 1 else rule, invalid=reasons.get(i))
        for i, (reference, arm) in enumerate(pairs)
    ]
