"""A plan and its cost as text, for a terminal here or elsewhere."""

from __future__ import annotations

from typing import Final

from swingbot.core.text.numbers import duration
from swingbot.core.text.plain import cut
from swingbot.service.table.cost import TableCost
from swingbot.service.table.extend import Extension
from swingbot.service.table.plan import TablePlan

_SHOWN: Final = 12  # rows of a plan listed at most


def plan_lines(planned: TablePlan) -> list[str]:
    """Format the plan and its cost as text."""
    rows = len(planned.arms)
    lines = [
        f"{rows} rows of tree {planned.tree}, {planned.boots} boots of each,"
        f" against {' and '.join(planned.against)}"
    ]
    for arm in planned.arms[:_SHOWN]:
        about = planned.about.get(arm.axes.get("kernel", ""), "")
        lines.append(f"  {arm.name}  {cut(about, 60)}".rstrip())
    if rows > _SHOWN:
        lines.append(f"  and {rows - _SHOWN} more")
    return [*lines, *planned.notes, *cost_lines(planned.cost)]


def extension_lines(id: str, planned: Extension) -> list[str]:
    """Format an extension and its cost as text."""
    added = [f"  added: {arm.name}" for arm in planned.added]
    look, stated = planned.look.number, planned.look.stated
    lines = [
        f"{id} will have {planned.boots} boots of each of its {planned.rows} rows; look {look}",
        *added,
    ]
    if look > stated:
        times = "one look" if stated == 1 else f"{stated} looks"
        lines.append(
            f"its request stated {times}: look {look} may withdraw changes and narrow intervals,"
            " but claims no new change of a row that was judged before"
        )
    return [*lines, *cost_lines(planned.cost)]


def cost_lines(cost: TableCost) -> list[str]:
    """Kernels, boots per testbox, the effect they resolve, and the total time."""
    known = cost.kernels - cost.builds
    building = f", about {duration(cost.build_seconds)}" if cost.builds else ""
    lines = [f"kernels: {cost.builds} to build{building}; {known} known"]
    lines += [f"  {name} {cut(why, 120)}" for name, why in cost.unbuilt.items()]
    lines += [f"  the same kernel, booted once: {', '.join(names)}" for names in cost.identical]
    for testbox in cost.testboxes:
        at_most = "at most" if testbox.at_most else "about"
        known_boots = f"; {testbox.known} known" if testbox.known else ""
        lines.append(
            f"{testbox.testbox}: {testbox.boots} boots, {at_most}"
            f" {duration(testbox.seconds)}{known_boots}"
        )
    lines += [seen.sentence for seen in cost.resolves]
    at_most = "at most" if cost.at_most else "about"
    return [*lines, f"in all {at_most} {duration(cost.seconds)} on an idle lab"]
