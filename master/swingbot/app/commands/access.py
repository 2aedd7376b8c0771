"""`swingbot token`: who may write over the web, and in which role."""

from __future__ import annotations

import secrets

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.app.commands.reports import whoami
from swingbot.core.access import tokens
from swingbot.core.access.roles import PURPOSES, Role
from swingbot.service.ports import RequestError
from swingbot_db import access


@click.group()
def token() -> None:
    """Who may write over the web: a token bears a person's name and one role.

    \b
    reader     reads pages where settings require a token
    submitter  asks for comparisons, within a quota
    moderator  decides about reports and incidents, stops and resumes mail
    operator   does all that can be done on pages, without a quota

    Each may all that those above it may. Commands on this host need no token: who may use the service's files and database is the operator.
    """


@token.command()
@click.argument("who", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="What the token is good for.",
)
@click.option(
    "--for",
    "life",
    metavar="TIME",
    help="How long it is good, such as 12h, 90d or 52w; default: until it is revoked.",
)
@click.option("--note", help="What it is for, such as 'nightly script on ci3'.")
@as_json
@pass_session
@guarded
def create(
    session: CommandContext, who: str, role: str, life: str | None, note: str | None, json_: bool
) -> None:
    """Make a token and print it, once: only its SHA-256 is kept.

    \b
    Example:
      swingbot token create "Ada Example" --role moderator --for 90d
    """
    try:
        name, lasting = tokens.name_of(who), tokens.life_of(life) if life else None
    except tokens.BadToken as error:
        raise RequestError(str(error)) from None
    made = tokens.PREFIX + secrets.token_urlsafe(tokens.RANDOM_BYTES)
    with session.engine.begin() as conn:
        number = access.create(
            conn,
            who=name,
            role=Role(role),
            digest=tokens.digest(made),
            life=lasting,
            note=note,
            by=whoami(),
        )
    if json_:
        say_json({"id": number, "who": name, "role": role, "token": made})
        return
    click.echo(made)
    click.echo(
        f"token {number} of {name} {PURPOSES[Role(role)]}; it is not shown again. Sign in with it at {session.placed.web_url}/login",
        err=True,
    )


@token.command("list")
@click.option("--all", "all_", is_flag=True, help="Also those that were revoked or have expired.")
@as_json
@pass_session
@guarded
def list_(session: CommandContext, all_: bool, json_: bool) -> None:
    """Tokens that are good, and when each was used last; never the tokens themselves.

    \b
    Example:
      swingbot token list --all
    """
    with session.reading() as conn:
        rows = access.tokens(conn, over=all_)
    if json_:
        say_json(rows)
        return
    heads = ("ID", "WHO", "ROLE", "MADE", "BY", "EXPIRES", "LAST USED", "REVOKED", "NOTE")
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
@pass_session
@guarded
def revoke(session: CommandContext, number: int) -> None:
    """End a token at once, with every session that was begun with it.

    \b
    Example:
      swingbot token revoke 3
    """
    with session.engine.begin() as conn:
        try:
            whose = access.revoke(conn, number, by=whoami())
        except access.NoSuchToken as error:
            raise RequestError(str(error)) from None
    click.echo(f"token {number} of {whose} is good no more")


@token.command()
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many."
)
@as_json
@pass_session
@guarded
def log(session: CommandContext, limit: int, json_: bool) -> None:
    """What was done with tokens, latest first: made, revoked, signed in and out, refused, comparisons asked for.

    \b
    Example:
      swingbot token log --limit 20
    """
    with session.reading() as conn:
        rows = access.events(conn, limit)
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
