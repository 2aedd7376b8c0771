"""`swingbot compilers`: compilers of the build workers."""

from __future__ import annotations

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot_db import read
from swingbot_jobs.terminal import say_json


@click.command(epilog="Example:  swingbot compilers --json")
@with_session_json
def compilers(session: CommandContext, json_: bool) -> None:
    """List the compilers that each build worker announced when it last logged in.

    A worker detects compilers when it starts; restart it after installing one.
    """
    with session.reading() as conn:
        rows = read.list_compilers(conn)
    if json_:
        say_json(rows)
        return
    if not rows:
        click.echo("no build worker has announced its compilers yet; see `swingbot worker list`")
        return
    cells = [(r["worker"], r["name"], r["version"], r["problem"] or "builds kernels") for r in rows]
    click.echo(text.table(cells, ("WORKER", "COMPILER", "VERSION", "STATE")))
