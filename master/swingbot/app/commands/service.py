"""`swingbot up`, `loop`, `web`, `smtpd`, `db`, `settings`: the service."""

from __future__ import annotations

import dataclasses
import logging
import sys
from pathlib import Path
from typing import Any

import click

from swingbot.app.commands import settings_page, text
from swingbot.app.commands.context import CommandContext, with_session, with_session_json
from swingbot.app.database import owner_url
from swingbot.app.settings import GROUPS, SECTIONS, shown, with_place
from swingbot.app.wiring import connect
from swingbot_jobs.lazy_group import Place, lazily
from swingbot_jobs.terminal import say_json


@click.command()
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="State directory (paths.state).",
)
@click.option(
    "--port", type=click.IntRange(1, 65000), help="First of four consecutive ports (web.port)."
)
@with_session
def up(session: CommandContext, state: Path | None, port: int | None) -> None:
    """Run the whole service in the foreground; Ctrl-C stops it.

    Starts the database, Buildbot, workers, loop, web pages and local mail server.

    \b
    Example:
      swingbot up --state /srv/swingbot --port 8010
    """
    from swingbot.app import embedded

    sys.exit(embedded.up(with_place(session.settings, state, port), click.echo))


@click.command()
@with_session
def loop(session: CommandContext) -> None:
    """Run only the loop that decides what to measure, for use by a process manager."""
    from swingbot.app.loop import run
    from swingbot.app.wiring import make_lab
    from swingbot_db.engine import name_sessions

    name_sessions("loop")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    run(session.settings, session.engine, make_lab(session.settings, session.engine))


@click.command()
@with_session
def web(session: CommandContext) -> None:
    """Run only the web pages, API and artifact store."""
    from swingbot.app.web import serve
    from swingbot_db.engine import name_sessions

    name_sessions("web")
    serve(session.settings, session.engine)


@click.command(
    epilog="""\b
Example, in a private container network:
  swingbot smtpd --host 0.0.0.0 --smtp-port 2525"""
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; only clients with the key in mail.key_file can deliver mail.",
)
@click.option(
    "--smtp-port",
    type=click.IntRange(1, 65535),
    help="Port (default: the port to which the loop sends mail).",
)
@with_session
def smtpd(session: CommandContext, host: str, smtp_port: int | None) -> None:
    """Run the local mail server.

    It delivers mail of the loop to a Maildir in the state directory and never relays.
    """
    from swingbot.app import smtpd as server

    server.serve(session.settings, host, smtp_port)


@click.group(cls=lazily(__package__, {"roles": Place("fleet:roles")}))
def db() -> None:
    """Upgrade the database and set up its roles."""


@db.command()
@with_session
def upgrade(session: CommandContext) -> None:
    """Upgrade the schemas of swingbot and Buildbot, as the user of db.owner_url. Safe to repeat."""
    from swingbot.app import master
    from swingbot_db import migrate, roles

    engine = connect(session.settings, owner_url(session.settings))
    migrate.upgrade(engine)
    master.upgrade_as_owner(session.settings, click.echo)
    with engine.begin() as conn:
        roles.grant(conn)  # on Buildbot's tables, which now exist
    click.echo("the database is up to date")


@click.command("settings")
@click.argument(
    "sections",
    nargs=-1,
    type=click.Choice(SECTIONS),
    metavar="[SECTION]...",
)
@click.option("--reference", is_flag=True, help="Print docs/settings.md (defaults and examples).")
@with_session_json
def settings_(
    session: CommandContext, sections: tuple[str, ...], reference: bool, json_: bool
) -> None:
    """Show every setting: its effective value, origin and meaning.

    \b
    Examples:
      swingbot settings web mail
      SWINGBOT_WATCH_BOOTS=5 swingbot settings watch
    """
    if reference:
        click.echo(settings_page.page(), nl=False)
        return
    rows: list[dict[str, Any]] = []
    chosen = sections or SECTIONS
    for section in (name for group in GROUPS for name in group.sections if name in chosen):
        values = getattr(session.settings, section)
        for field in dataclasses.fields(values):
            key = f"{section}.{field.name}"
            rows.append(
                {
                    "key": key,
                    "value": shown(getattr(values, field.name)),
                    "source": session.settings.sources.get(key, "default"),
                    "doc": field.metadata["doc"],
                }
            )
    if json_:
        say_json(
            {
                "state": str(session.settings.state),
                "cache": str(session.settings.cache),
                "settings": rows,
            }
        )
    else:
        click.echo(f"state {session.settings.state}\ncache {session.settings.cache}\n")
        for group in GROUPS:
            table = [
                (r["key"], repr(r["value"]), r["source"], r["doc"])
                for r in rows
                if r["key"].partition(".")[0] in group.sections
            ]
            if table:
                columns = ("KEY", "VALUE", "FROM", "MEANING")
                click.echo(f"{group.title}:\n{text.table(table, columns)}\n")
