"""`swingbot recipients`: to whom a report about a commit would go; nothing is sent."""

from __future__ import annotations

import click

from swingbot.adapters.git import Mirror
from swingbot.adapters.maintainers import NoMaintainers, maintainers_of
from swingbot.app.commands.context import Session, as_json, guarded, pass_session, say_json
from swingbot.app.settings import Mail
from swingbot.core.report.addressees import Listed, Rules, choose


@click.command()
@click.argument("commit")
@click.option("--tree", required=True, help="The tree that the commit is in.")
@as_json
@pass_session
@guarded
def recipients(session: Session, commit: str, tree: str, json_: bool) -> None:
    """To whom a report about COMMIT would go, and who is left out and why. Sends nothing, to nobody.

    \b
    Example:
      swingbot recipients 3f2a1b0c9d8e --tree linus
    """
    settings = session.settings
    mirror = Mirror(settings.mirror)
    found = mirror.facts(mirror.resolve(tree, commit))
    listed: tuple[Listed, ...] = ()
    unknown = "mail.get_maintainer is off: maintainers and lists are not known"
    if settings.mail.get_maintainer:
        try:
            listed, unknown = maintainers_of(settings.mirror, found.commit), ""
        except NoMaintainers as error:
            unknown = str(error)
    chosen = choose(found.author, listed, _rules(settings.mail, tree), {})
    if json_:
        left_out = [{"address": address, "reason": reason} for address, reason in chosen.left_out]
        say_json({"commit": found.commit, "to": list(chosen.to), "cc": list(chosen.cc), "left_out": left_out, "unknown": unknown or None})
        return
    lines = [*(f"To: {address}" for address in chosen.to), *(f"Cc: {address}" for address in chosen.cc)]
    lines += [f"not {address}: {reason}" for address, reason in chosen.left_out]
    click.echo("\n".join([*(lines or ["nobody"]), *([unknown] if unknown else [])]))


def _rules(mail: Mail, tree: str) -> Rules:
    def names(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())

    return Rules(author_only=tree in names(mail.private_trees), opt_outs=names(mail.opt_outs), most=mail.most_recipients)
