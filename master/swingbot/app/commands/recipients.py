"""`swingbot recipients`: show the recipients of a report about a commit; sends nothing."""

from __future__ import annotations

import click

from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.service.report.address import addressed, would_go_to
from swingbot.service.watch.trees import known_tree
from swingbot_jobs.terminal import say_json


@click.command()
@click.argument("commit")
@click.option("--tree", required=True, help="Tree that contains the commit.")
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
    lab = session.lab
    commit = lab.tools.git.resolve(tree, commit)
    watched = known_tree(lab.transaction, tree)
    chosen, problem = would_go_to(
        lab.tools,
        lab.settings,
        tree,
        commit,
        lab.tools.git.facts(commit).author,
        watched.base_commit if base is None else lab.tools.git.resolve(tree, base),
    )
    addressees = addressed(lab.settings.mail, lab.settings.recipients, chosen, problem)
    if json_:
        left_out = [
            {"address": address, "reason": reason} for address, reason in addressees.left_out
        ]
        facts = {
            "commit": commit,
            "to": list(addressees.would_to),
            "cc": list(addressees.would_cc),
            "lists": list(addressees.lists),
            "left_out": left_out,
            "commit_only": list(addressees.commit_only),
        }
        say_json(
            {
                **facts,
                "dry_run": addressees.dry_run,
                "really_to": [*addressees.to, *addressees.cc],
                "unknown": problem or None,
            }
        )
        return
    lines = [
        *(f"To: {address}" for address in addressees.would_to),
        *(f"Cc: {address}" for address in addressees.would_cc),
    ]
    lines += [
        f"only the commit names {address}, not MAINTAINERS of the tree's base"
        for address in addressees.commit_only
    ]
    lines += [f"not {address}: {reason}" for address, reason in addressees.left_out]
    lines = [*(lines or ["no recipients"]), *([problem] if problem else [])]
    if addressees.dry_run:
        lines.append(f"dry run: it is sent only to {', '.join(addressees.to)} (mail.dry_run)")
    elif addressees.without_recipient:
        lines.append(
            f"so it would be held; once released, it is sent to {', '.join(addressees.to)}"
        )
    click.echo("\n".join(lines))
