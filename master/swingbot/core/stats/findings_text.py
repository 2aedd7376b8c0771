"""Describe the findings in a history of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from swingbot.core.stats.findings import Findings
from swingbot.core.stats.tip_spreads import SpreadChange
from swingbot.core.text.numbers import count


def tell(findings: Findings, x: Sequence[str] | Mapping[int, str]) -> list[str]:
    """Describe findings for a person; `x` labels at least the points that the text mentions."""
    lines = [
        f"{count(findings.points, 'point')}, noise {findings.noise_pct:.2g} % about the level"
        + (f", autocorrelation {findings.alike:.2f}" if findings.alike >= 0.2 else "")
    ]
    for change in findings.changes:
        between = (
            "" if change.first == change.last else f" (95 %: {x[change.first]} .. {x[change.last]})"
        )
        machine = "; the anchor moved too, so it is the machine" if change.machine else ""
        lines.append(
            f"step at {x[change.at]}{between}: {percent(change.pct)} %,"
            f" 95 % interval {percent(change.low_pct)} .. {percent(change.high_pct)} %,"
            f" p = {change.p:.1g}{machine}"
        )
    if findings.creep is not None:
        lines.append(
            f"creep: {percent(findings.creep.pct)} % from first to last, p = {findings.creep.p:.1g}"
        )
    if findings.spread is not None:
        lines.append(
            f"spread: {findings.spread.times:.2g} times as large from {x[findings.spread.at]} on,"
            f" p = {findings.spread.p:.1g}"
        )
    if findings.boots_spread is not None:
        lines.append(_boots_spread(findings, findings.boots_spread, x))
    if findings.modes is not None:
        lines.append(
            f"two modes: {findings.modes.apart_pct:.2g} % apart,"
            f" {100 * findings.modes.share:.0f} % of the points in the smaller one"
        )
    if findings.latest is not None:
        lines.append(
            f"last point: {percent(findings.latest.pct)} % from the median of those before it,"
            f" p = {findings.latest.p:.2g}"
        )
    if findings.anchor is not None:
        moved = findings.anchor.changes or findings.anchor.creep
        lines.append("machine: " + ("its anchor moved:" if moved else "its anchor shows no change"))
        if moved:
            lines += [f"  {line}" for line in tell(findings.anchor, x)[1:]]
    if not (findings.changes or findings.creep):
        lines.append("no step and no creep")
    return lines


def _boots_spread(
    findings: Findings, spread: SpreadChange, x: Sequence[str] | Mapping[int, str]
) -> str:
    moved = findings.creep is not None or any(
        change.first <= spread.at <= change.last for change in findings.changes
    )
    return (
        f"spread between boots: {spread.times:.2g} times as large from {x[spread.at]} on"
        + ("" if moved else ", level unchanged")
        + f", p = {spread.p:.1g}"
    )


def percent(pct: float) -> str:
    """Format a signed change in percent of any size."""
    return f"{pct:+.2f}" if abs(pct) < 1e5 else f"{pct:+.4g}" if math.isfinite(pct) else "?"
