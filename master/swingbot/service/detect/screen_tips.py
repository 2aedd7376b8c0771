"""Stage 1 of detection: compare a new tip with its base and with recent and older tips, and suspect
what stands out."""

from __future__ import annotations

import math
from dataclasses import replace

from swingbot.core.incident.level import log_ratio
from swingbot.core.model.comparison_row import ComparisonRow, Key, row_of
from swingbot.core.model.records import Comparison, Level, NewSwing
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan import screen
from swingbot.core.plan import swings as plan
from swingbot.core.plan.noise import day_sd
from swingbot.core.thresholds import CREEP_TIPS
from swingbot.service.detect.expect_changes import (
    ExpectedInRange,
    expected_within,
    level_after,
    named,
)
from swingbot.service.detect.note_history import note_history
from swingbot.service.ports import Catalogue, Git, GitError, LabSettings, Transaction
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.swings import Swings
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.kconfig import Kconfigs


def screen_tip(
    git: Git,
    catalogue: Catalogue,
    settings: LabSettings,
    tx: Transaction,
    comparison: Comparison,
    boot_means: dict[tuple[str, str, str], list[float]],
) -> None:
    """Record the swings of a judged watch comparison: `suspected` if a bisection may follow, else
    `not_bisected`.

    `boot_means`: means of the tip's boots, by (testbox, unit job, metric).
    """
    for row in tx.comparisons.rows(comparison.id):
        if not row.headline or row.head.mean is None:
            continue
        note_history(tx.swings, tx.histories, comparison, row)
        expected = expected_within(git, tx.variants, tx.incidents, comparison, row)
        if expected:
            _compare_with_expected(git, catalogue.kconfigs, settings, tx, comparison, row, expected)
            continue
        alarm = _alarm(
            git, catalogue.testboxes, settings, tx, comparison, row, boot_means.get(row.key, [])
        )
        if alarm is not None:
            _note(settings, tx.swings, comparison, row, *alarm)


def _compare_with_expected(
    git: Git,
    kconfigs: Kconfigs,
    settings: LabSettings,
    tx: Transaction,
    comparison: Comparison,
    row: ComparisonRow,
    expected: list[ExpectedInRange],
) -> None:
    """Handle a range with expected changes: note their effect, so that later tips are compared with
    the new level, and suspect anything beyond it."""
    if row.change_pct is None or row.verdict not in ("worse", "better", "changed", "same"):
        return
    effect = log_ratio(row.change_pct)
    alarm = screen.against_expected(effect, [within.effect for within in expected], row.min_effect)
    if alarm is not None:
        _note(
            settings,
            tx.swings,
            comparison,
            row,
            replace(alarm, why=f"{alarm.why} ({named(expected)})"),
            level_after(git, kconfigs, tx.trees, tx.variants, comparison, expected),
        )
        return
    reason = f"{row.change_pct:+.2f} % against its base, as expected ({named(expected)})"
    tx.swings.add(
        NewSwing(
            comparison=comparison.id,
            testbox=row.testbox,
            unit_job=row.unit_job,
            metric=row.metric,
            direction=plan.direction_of(effect, row.better),
            change_pct=row.change_pct,
            state="not_bisected",
            source="expected",
            reason=reason,
        )
    )


def _alarm(
    git: Git,
    testboxes: KnownTestboxes,
    settings: LabSettings,
    tx: Transaction,
    comparison: Comparison,
    row: ComparisonRow,
    tip: list[float],
) -> tuple[screen.SuspectedSwing, int | None] | None:
    """Return what stands out about a row, and the variant of the anchor if it has one; None if
    nothing does."""
    alarm = screen.suspect(
        row,
        tip,
        past_of(testboxes, settings, tx, comparison, row.key, row.min_effect),
    )
    if alarm is None or alarm.anchor is None:
        return (alarm, None) if alarm is not None else None
    before = (
        spreads_before(tx.swings, comparison, row.key)
        if alarm.source == "spread"
        else levels_before(tx.comparisons, tx.swings, tx.incidents, comparison, row.key)
    )
    anchor = before[alarm.anchor]
    return (alarm, anchor.variant) if _descends(git, tx.variants, comparison, anchor) else None


def past_of(
    testboxes: KnownTestboxes,
    settings: LabSettings,
    tx: Transaction,
    comparison: Comparison,
    key: Key,
    min_effect: float,
) -> screen.MetricHistory:
    """Return the known history of a metric before the tip of `comparison`; `min_effect` is a log
    ratio (or share)."""
    return screen.MetricHistory(
        levels=[
            level.mean
            for level in levels_before(tx.comparisons, tx.swings, tx.incidents, comparison, key)
        ],
        spreads=[
            screen.TipBoots(mean=level.mean, stddev=level.stddev, boots=level.boots)
            for level in spreads_before(tx.swings, comparison, key)
        ],
        min_effect=min_effect,
        first=None if testboxes.known(key[0]).repeatable else settings.watch_boots,
        day_sd=day_sd(tx.noise.get(*key)),
    )


def levels_before(
    comparisons: Comparisons, swings: Swings, incidents: Incidents, comparison: Comparison, key: Key
) -> list[Level]:
    """Return the earlier tips at the current level: since the last swing, the last false alarm
    caused by the testbox, or the first tip in which a culprit was fixed."""
    since = swings.last(comparison.tree, *key, before=comparison.id) or 0
    levels = swings.recent_levels(comparison.tree, *key, before=comparison.id, most=max(CREEP_TIPS))
    for fix in _fixes(comparisons, incidents, comparison.tree, key):
        since = max([since, *(level.comparison for level in levels if level.comparison < fix)])
    return [level for level in levels if level.comparison >= since]


def spreads_before(swings: Swings, comparison: Comparison, key: Key) -> list[Level]:
    """Return the earlier tips whose boots may spread as those of this tip: since the last swing, or
    the last suspected change of the spread. A testbox that moved spreads boots as before."""
    since = swings.last(comparison.tree, *key, before=comparison.id, refuted=("spread",)) or 0
    levels = swings.recent_levels(comparison.tree, *key, before=comparison.id, most=max(CREEP_TIPS))
    return [level for level in levels if level.comparison >= since]


def _fixes(comparisons: Comparisons, incidents: Incidents, tree: int, key: Key) -> list[int]:
    """Return the comparisons which showed that a culprit that had changed this metric was fixed in
    the branch."""
    fixed = [
        (incident.comparison, comparisons.get(incident.fix_check))
        for incident in incidents.in_status("fixed")
        if incident.comparison is not None and incident.fix_check is not None
    ]
    return [
        check.id
        for of, check in fixed
        if check is not None
        and check.tree == tree
        and (seen := row_of(comparisons.rows(of), key)) is not None
        and seen.changed
    ]


def _descends(git: Git, variants: Variants, comparison: Comparison, anchor: Level) -> bool:
    """Return whether a line of history leads from the anchor to this tip.

    For a tip that was rebased away, a merge base is enough.
    """
    tip = variants.get(comparison.head).commit
    try:
        return anchor.commit != tip and (
            git.is_ancestor(anchor.commit, tip) or git.merge_base(anchor.commit, tip) is not None
        )
    except GitError:
        return False


def _note(
    settings: LabSettings,
    swings: Swings,
    comparison: Comparison,
    row: ComparisonRow,
    alarm: screen.SuspectedSwing,
    anchor: int | None,
) -> None:
    direction = (
        plan.direction_of(alarm.effect, row.better)
        if alarm.times is None
        else plan.direction_of_spread(alarm.times, row.better)
    )
    suspect = direction == "worse" or (direction == "better" and settings.bisect_improvements)
    if suspect or alarm.source in ("base", "expected"):
        swings.add(
            NewSwing(
                comparison=comparison.id,
                testbox=row.testbox,
                unit_job=row.unit_job,
                metric=row.metric,
                direction=direction,
                change_pct=100.0 * math.expm1(alarm.effect),
                state="suspected" if suspect else "not_bisected",
                source=alarm.source,
                anchor=anchor if suspect else None,
                reason=alarm.why,
            )
        )
