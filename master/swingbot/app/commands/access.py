"""`swingbot token`: tokens that allow people to write over the web."""

from __future__ import annotations

import secrets

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, somebody, with_session, with_session_json
from swingbot.core.access import tokens
from swingbot.core.access.roles import PURPOSES, Role
from swingbot.service.access import create_token, revoke_token
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot_db import read
from swingbot_db.store import transactions
from swingbot_jobs.terminal import say_json


@click.group()
def token() -> None:
    """Manage tokens for the web. A token has an owner and one role.

    \b
    reader     reads pages, where the settings require a token
    submitter  requests comparisons, within a quota
    moderator  decides about reports and incidents, stops and resumes mail
    operator   may use every page, without a quota

    Each role includes those above it. Commands on this host need no token: whoever can access the
    service's files and database is an operator.
    """


@token.command()
@click.argument("who", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="Role of the token.",
)
@click.option(
    "--for",
    "life",
    metavar="TIME",
    help="Lifetime, such as 12h, 90d or 52w (default: until revoked).",
)
@click.option("--note", help="Purpose, such as 'nightly script on ci3'.")
@with_session_json
def create(
    session: CommandContext, who: str, role: str, life: str | None, note: str | None, json_: bool
) -> None:
    """Create a token and print it once. Only its SHA-256 is stored.

    \b
    Example:
      swingbot token create "Ada Example" --role moderator --for 90d
    """
    try:
        name, lasting = tokens.name_of(who), tokens.life_of(life) if life else None
    except tokens.BadToken as error:
        raise RequestError(str(error)) from None
    new_token = tokens.PREFIX + secrets.token_urlsafe(tokens.RANDOM_BYTES)
    new = NewToken(
        who=name,
        role=Role(role),
        digest=tokens.digest(new_token),
        life=lasting,
        note=note,
        by=somebody(),
    )
    with transactions(session.engine)("create token") as tx:
        number = create_token(tx.access, new)
    if json_:
        say_json({"id": number, "who": name, "role": role, "token": new_token})
        return
    click.echo(new_token)
    click.echo(
        f"token {number} of {name} {PURPOSES[Role(role)]}; it is not shown again. Sign in at"
        f" {session.placed.web_url}/login",
        err=True,
    )


@token.command("list")
@click.option("--all", "all_", is_flag=True, help="Include revoked and expired tokens.")
@with_session_json
def list_(session: CommandContext, all_: bool, json_: bool) -> None:
    """List valid tokens and their last use, never the tokens themselves.

    \b
    Example:
      swingbot token list --all
    """
    with session.reading() as conn:
        rows = read.tokens(conn, over=all_)
    if json_:
        say_json(rows)
        return
    heads = ("ID", "WHO", "ROLE", "CREATED", "BY", "EXPIRES", "LAST USED", "REVOKED", "NOTE")
    cells = (
        "id",
        "who",
        "role",
        "made_at",
        "made_by",
        "expires_at",
        "used_at",
        "revoked_at",
        "note",
    )
    click.echo(
        text.table(
            [tuple(row[cell] if row[cell] is not None else "" for cell in cells) for row in rows],
            heads,
        )
    )


@token.command()
@click.argument("number", metavar="ID", type=int)
@with_session
def revoke(session: CommandContext, number: int) -> None:
    """Revoke a token and end all its sessions immediately.

    \b
    Example:
      swingbot token revoke 3
    """
    with transactions(session.engine)("revoke token") as tx:
        owner = revoke_token(tx.access, number, somebody())
    click.echo(f"token {number} of {owner} is revoked")


@token.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Number of entries.",
)
@with_session_json
def log(session: CommandContext, limit: int, json_: bool) -> None:
    """Show the log of tokens, latest entry first.

    Entries: created, revoked, signed in and out, refused,
    comparisons requested.

    \b
    Example:
      swingbot token log --limit 20
    """
    with session.reading() as conn:
        rows = read.access_events(conn, limit)
    if json_:
        say_json(rows)
    else:
        cells = ("at", "act", "who", "token", "detail")
        click.echo(
            text.table(
                [
                    tuple(row[cell] if row[cell] is not None else "" for cell in cells)
                    for row in rows
                ],
                ("AT", "WHAT", "WHO", "TOKEN", "DETAIL"),
            )
        )
