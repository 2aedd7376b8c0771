"""`swingbot login` and `logout`: the service elsewhere that commands use."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click

from swingbot.app.commands.context import guarded
from swingbot.app.remote import login as logins
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.model.answer_documents import WhoseToken


@click.command()
@click.argument("url", metavar="URL", required=False)
@click.option("--anonymous", is_flag=True, help="Only read what is open; ask for no token.")
@click.option("--insecure", is_flag=True, help="Send the token over http to another host.")
@guarded
def login(url: str | None, anonymous: bool, insecure: bool) -> None:
    """Log in to a service elsewhere; then all commands use it. Without URL, show the login.

    Asks for a token of the operator (on that host: `swingbot token create`), or reads it from
    standard input. It is kept in ~/.config/swingbot/login.json, readable for you alone, and sent
    to URL only.

    SWINGBOT_URL and SWINGBOT_TOKEN outrank it; over http to another host they need
    SWINGBOT_INSECURE=1. An empty SWINGBOT_URL, or --config, --state or
    --port, mean the service on this host.

    \b
    Examples:
      swingbot login https://lab.example
      swingbot login https://lab.example <token
    """
    if url is None:
        found = logins.current()
        if found is None:
            click.echo("not logged in: commands use the service on this host")
            return
    else:
        found = Login(url=logins.url_of(url), token=None if anonymous else "", insecure=insecure)
        found.check_private()  # before it is asked for
        if not anonymous:
            found = replace(found, token=_asked())
    person = Connection(found).json(WhoseToken, "/login.json")
    if url is not None:
        logins.write(logins.file_of(os.environ), found)
    named = f"{person.get('who')} ({person.get('role')})"
    who = named if person.get("who") else "an anonymous reader"
    click.echo(f"logged in to {found.url} as {who}")


def _asked() -> str:
    if sys.stdin.isatty():
        return logins.token_of(click.prompt("Token", hide_input=True, err=True))
    return logins.token_of(sys.stdin.read(1000))


@click.command()
@guarded
def logout() -> None:
    """Forget the login; the token stays valid until the operator revokes it."""
    file = logins.file_of(os.environ)
    known = file.exists()
    file.unlink(missing_ok=True)
    click.echo("logged out" if known else "was not logged in")
