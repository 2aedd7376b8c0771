"""What a history shows, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from swingbot.core.stats.findings import Findings
from swingbot.core.text.numbers import count


def tell(found: Findings, x: Sequence[str] | Mapping[int, str]) -> list[str]:
    """What a history shows, for a person; `x` names its points: those at least that it speaks of."""
    lines = [
        f"{count(found.points, 'point')}, noise {found.noise_pct:.2g} % about the level"
        + (f", neighbours alike ({found.alike:.2f})" if found.alike >= 0.2 else "")
    ]
    for change in found.changes:
        between = (
            "" if change.first == change.last else f" (95 %: {x[change.first]} .. {x[change.last]})"
        )
        machine = "; the anchor moved too: the machine" if change.machine else ""
        lines.append(
            f"step at {x[change.at]}{between}: {percent(change.pct)} %,"
            f" 95 % interval {percent(change.low_pct)} .. {percent(change.high_pct)} %, p = {change.p:.1g}{machine}"
        )
    if found.creep is not None:
        lines.append(
            f"creep: {percent(found.creep.pct)} % from first to last, p = {found.creep.p:.1g}"
        )
    if found.spread is not None:
        lines.append(
            f"spread: {found.spread.times:.2g} times as large from {x[found.spread.at]} on, p = {found.spread.p:.1g}"
        )
    if found.modes is not None:
        lines.append(
            f"two modes: {found.modes.apart_pct:.2g} % apart, {100 * found.modes.share:.0f} % of the points in the smaller one"
        )
    if found.latest is not None:
        lines.append(
            f"last point: {percent(found.latest.pct)} % from the median of those before it, p = {found.latest.p:.2g}"
        )
    if found.anchor is not None:
        moved = found.anchor.changes or found.anchor.creep
        lines.append("machine: " + ("its anchor moved:" if moved else "its anchor shows no change"))
        if moved:
            lines += [f"  {line}" for line in tell(found.anchor, x)[1:]]
    if not (found.changes or found.creep):
        lines.append("no step and no creep")
    return lines


def percent(pct: float) -> str:
    """A change in percent with its sign, however large."""
    return f"{pct:+.2f}" if abs(pct) < 1e5 else f"{pct:+.4g}" if math.isfinite(pct) else "?"
