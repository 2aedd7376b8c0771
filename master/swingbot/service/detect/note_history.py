"""Analyse the history of a branch's tips each time another tip is measured."""

from __future__ import annotations

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Comparison, TreeHistory
from swingbot.core.stats.findings import Findings, look
from swingbot.core.stats.tip_spreads import tip_spread
from swingbot.core.thresholds import HISTORY_TIPS
from swingbot.service.ports.histories import Histories
from swingbot.service.ports.swings import Swings
from swingbot_jobs import codec


def note_history(
    swings: Swings, histories: Histories, comparison: Comparison, row: ComparisonRow
) -> None:
    """Analyse the last tips of a headline metric, including that of this watch comparison, and
    store the findings."""
    if row.head.mean is None:
        return
    levels = swings.recent_levels(
        comparison.tree, *row.key, before=comparison.id + 1, most=HISTORY_TIPS
    )[::-1]
    findings = look(
        [level.mean for level in levels],
        spreads=[tip_spread(level.mean, level.stddev, level.boots) for level in levels],
    )
    tips = {
        str(at): {
            "commit": levels[at].commit,
            "comparison": f"c{levels[at].comparison}",
        }
        for at in sorted(_named(findings))
    }
    histories.put(
        TreeHistory(
            tree=comparison.tree,
            testbox=row.testbox,
            unit_job=row.unit_job,
            metric=row.metric,
            upto=comparison.id,
            findings=codec.plain(findings) | {"tips": tips},
        )
    )


def _named(findings: Findings) -> set[int]:
    """Return the indices of the tips that the findings mention."""
    named = {0, findings.points - 1}
    candidate = (findings.candidate,) if findings.candidate is not None else ()
    ramp = (findings.ramp,) if findings.ramp is not None else ()
    for change in (*findings.changes, *findings.mode_changes, *candidate, *ramp):
        named |= {change.at, change.first, change.last}
    for level in findings.levels:
        named |= {level.first, level.last}
    for off in findings.excursions:
        named |= {off.first, off.last}
    for spread in (findings.spread, findings.boots_spread):
        if spread is not None:
            named.add(spread.at)
    return named
