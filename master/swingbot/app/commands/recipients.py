"""`swingbot recipients`: show the recipients of a report about a commit; sends nothing."""

from __future__ import annotations

import click

from swingbot.app.commands.completion import TREES
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.app.documents import Facts
from swingbot_jobs.terminal import say_json


@click.command()
@click.argument("commit")
@click.option("--tree", required=True, shell_complete=TREES, help="Tree that contains the commit.")
@click.option(
    "--base",
    help="Commit whose MAINTAINERS to read instead (default: base of the tree, as in reports).",
)
@with_session_json
def recipients(
    session: CommandContext, commit: str, tree: str, base: str | None, json_: bool
) -> None:
    """Show who would receive a report about COMMIT, and who is left out and why. Sends nothing.

    \b
    Example:
      swingbot recipients 3f2a1b0c9d8e --tree linus
    """
    facts = session.documents.recipients(tree, commit, base)
    if json_:
        say_json(facts)
        return
    lines = [*(f"To: {one}" for one in facts["to"]), *(f"Cc: {one}" for one in facts["cc"])]
    lines += [
        f"only the commit names {address}, not MAINTAINERS of the tree's base"
        for address in facts["commit_only"]
    ]
    lines += [f"not {left['address']}: {left['reason']}" for left in facts["left_out"]]
    lines = [*(lines or ["no recipients"]), *([facts["unknown"]] if facts["unknown"] else [])]
    if facts["dry_run"]:
        lines.append(f"dry run: it is sent only to {_people(facts)} (mail.dry_run)")
    elif not facts["to"]:
        lines.append(f"so it would be held; once released, it is sent to {_people(facts)}")
    click.echo("\n".join(lines))


def _people(facts: Facts) -> str:
    return ", ".join(facts["really_to"])
