"""`swingbot recipients`: to whom a report about a commit would go; nothing is sent."""

from __future__ import annotations

import click

from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.service.report.address import addressed, would_go_to


@click.command()
@click.argument("commit")
@click.option("--tree", required=True, help="The tree that the commit is in.")
@as_json
@pass_session
@guarded
def recipients(session: CommandContext, commit: str, tree: str, json_: bool) -> None:
    """To whom a report about COMMIT would go, and who is left out and why. Sends nothing, to nobody.

    \b
    Example:
      swingbot recipients 3f2a1b0c9d8e --tree linus
    """
    lab = session.lab
    commit = lab.git.resolve(tree, commit)
    chosen, problem = would_go_to(lab, tree, commit, lab.git.facts(commit).author)
    found = addressed(lab.policies.mail, lab.policies.recipients, chosen, problem)
    if json_:
        left_out = [{"address": address, "reason": reason} for address, reason in found.left_out]
        facts = {
            "commit": commit,
            "to": list(found.would_to),
            "cc": list(found.would_cc),
            "lists": list(found.lists),
            "left_out": left_out,
        }
        say_json(
            {
                **facts,
                "dry_run": found.dry_run,
                "really_to": [*found.to, *found.cc],
                "unknown": problem or None,
            }
        )
        return
    lines = [
        *(f"To: {address}" for address in found.would_to),
        *(f"Cc: {address}" for address in found.would_cc),
    ]
    lines += [f"not {address}: {reason}" for address, reason in found.left_out]
    lines = [*(lines or ["nobody"]), *([problem] if problem else [])]
    if found.dry_run:
        lines.append(f"dry run: it goes to {', '.join(found.to)} alone (mail.dry_run)")
    elif found.nobody:
        lines.append(f"so it would be held, and go to {', '.join(found.to)}")
    click.echo("\n".join(lines))
