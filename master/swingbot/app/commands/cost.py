"""Cost of a request as text, and the confirmation prompt."""

from __future__ import annotations

import sys

import click

from swingbot.core.text.numbers import duration
from swingbot.core.text.plain import cut
from swingbot.service.ports import RequestError
from swingbot.service.table.cost import TableCost


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


def confirm(*, yes: bool) -> None:
    """Ask for confirmation on a terminal. Raises RequestError if the user declines."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm("Queue this request?", default=True, err=True):
        raise RequestError("nothing was queued")
