"""`swingbot jobs cover`: which jobs run the code of a commit or of a source file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import TREES
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.core.text.numbers import count, thousands
from swingbot_jobs.terminal import say_json

if TYPE_CHECKING:
    from swingbot.core.model.upkeep_documents import Cover

_WHY: Final = {
    "no hook": "without a hook (inlined, or never traced)",
    "namesakes": "of a name that other files have too",
    "not asked": "not counted in any run",
}


@click.command("cover")
@click.argument("target", metavar="PATH|COMMIT")
@click.option("--tree", required=True, shell_complete=TREES, help="Tree whose boots to look at.")
@with_session_json
def jobs_cover(session: CommandContext, target: str, tree: str, json_: bool) -> None:
    """Show which jobs run the code of a source or commit.

    It also lists the functions that no job runs. The calls were counted by boots of kernels with
    the fragment trace. PATH is relative to the kernel's tree; of a COMMIT, the functions that its
    diff changes are looked up.

    \b
    Examples:
      swingbot jobs cover mm/vmscan.c --tree mm
      swingbot jobs cover 3f2a1b0c9d8e --tree mm
    """
    cover = session.documents.cover(tree, target)
    if json_:
        say_json(cover)
    else:
        click.echo("\n".join(_lines(cover)))


def _lines(cover: Cover) -> list[str]:
    kernel, functions = cover["kernel"], cover["functions"]
    what = f"commit {cover['commit'][:12]}" if cover["commit"] else cover["path"]
    lines = [
        f"{what}: {count(len(functions), 'function')} in kernel {kernel['commit'][:12]} of tree"
        f" {cover['tree']} ({kernel['kconfig']})",
    ]
    if functions:  # else zeros would read as if no job ran the code
        lines.append(
            text.table(
                [
                    (
                        job["unit_job"],
                        job["testbox"],
                        job["boot"],
                        job["functions"],
                        thousands(job["calls"]),
                    )
                    for job in cover["jobs"]
                ],
                ("JOB", "TESTBOX", "BOOT", "FUNCTIONS", "CALLS"),
            )
        )
    idle = [one for one in functions if one["seen"] == "counted"]
    idle = [one for one in idle if not any(row["calls"] for row in one["calls"])]
    groups = [("run by none of these jobs", idle)] + [
        (f"not known, {why}", [one for one in functions if one["seen"] == seen])
        for seen, why in _WHY.items()
    ]
    lines += [
        f"{title} ({len(ones)}): {', '.join(one['name'] for one in ones)}"
        for title, ones in groups
        if ones
    ]
    return lines + [f"{left['what']} {left['reason']}" for left in cover["left_out"]]
