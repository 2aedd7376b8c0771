"""`swingbot facts`: facts recorded for a boot, and the checklist of a quiet testbox."""

from __future__ import annotations

from dataclasses import asdict

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import as_json, guarded
from swingbot_jobs.contract.facts import checklist, known
from swingbot_jobs.terminal import say_json


@click.command("facts")
@click.option(
    "--checklist",
    "quiet",
    is_flag=True,
    help="Show the checklist of a quiet testbox: what enforces, verifies and records each item.",
)
@as_json
@guarded
def facts_(quiet: bool, json_: bool) -> None:
    """List the facts recorded for every boot. A job or testbox can require any of them.

    \b
    Example:
      swingbot facts --checklist
    """
    if json_:
        say_json(
            [asdict(item) for item in checklist()]
            if quiet
            else [asdict(fact) for fact in known().values()]
        )
    elif quiet:
        rows = [
            (item.item, item.want, item.enforced, " ".join(item.verified), " ".join(item.recorded))
            for item in checklist()
        ]
        click.echo(
            text.table(rows, ("ITEM", "WANTED", "ENFORCED BY", "VERIFIED BY", "RECORDED AS"))
        )
    else:
        rows = [
            (fact.group, fact.name, "sets it" if fact.set else "", fact.compare, fact.about)
            for fact in known().values()
        ]
        click.echo(text.table(rows, ("GROUP", "FACT", "RUNNER", "COMPARED AS", "DESCRIPTION")))
