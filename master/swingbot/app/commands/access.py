"""`swingbot token`: tokens that allow people to write over the web."""

from __future__ import annotations

import secrets

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, somebody, with_session, with_session_json
from swingbot.core.access import tokens
from swingbot.core.access.roles import PURPOSES, Role
from swingbot.core.mail.addresses import BadAddress, checked
from swingbot.service.access import create_token, revoke_token
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot.service.visible import NotLimited
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
    default=tokens.DEFAULT_LIFE,
    show_default=True,
    help="Lifetime, such as 12h, 90d or 52w; `never`: until revoked.",
)
@click.option(
    "--tree",
    "trees",
    metavar="TREE",
    multiple=True,
    help="Only for requests of this tree (role submitter; default: of all); may be repeated.",
)
@click.option(
    "--group",
    "groups",
    metavar="GROUP",
    multiple=True,
    help="Only for what testboxes of this group measured (role reader); may be repeated.",
)
@click.option(
    "--changes-only",
    is_flag=True,
    help="With --group: verdicts and changes in percent, but no levels.",
)
@click.option(
    "--trust",
    "vouches",
    is_flag=True,
    help="Trust the commits and patches that it sends first: build and boot them as those of the"
    " tree.",
)
@click.option(
    "--mail",
    metavar="ADDRESS",
    help="Mail address of the token, for results requested with `--mail` (not for the role"
    " reader).",
)
@click.option("--note", help="Purpose, such as 'nightly script on ci3'.")
@with_session_json
def create(
    session: CommandContext,
    who: str,
    role: str,
    life: str,
    trees: tuple[str, ...],
    groups: tuple[str, ...],
    changes_only: bool,
    vouches: bool,
    mail: str | None,
    note: str | None,
    json_: bool,
) -> None:
    """Create a token and print it once. Only its SHA-256 is stored.

    With --tree it requests, extends and cancels tables of these trees only;
    it reads what its role reads.
    With --group it reads what testboxes of these groups measured, and no more;
    with --changes-only of that only by how many percent something changed.
    With --trust it vouches for its person's own commits until it ends: docs/walls.md.
    With --mail its requests can end with a mail to this address.

    \b
    Examples:
      swingbot token create "Ada Example" --role moderator --for 30d
      swingbot token create "Bob" --role submitter --mail bob@example.org
      swingbot token create "mm-ci" --role submitter --tree mm --for never
      swingbot token create "partner" --role reader --group lkp-skl --for 30d
    """
    if trees and role != Role.SUBMITTER:
        raise RequestError("--tree limits the role submitter only")
    if changes_only and not groups:
        raise RequestError("--changes-only needs --group: testboxes whose levels are withheld")
    if vouches and (groups or role == Role.READER):
        raise RequestError(
            "--trust is for tokens that send commits: not for the role reader, nor with --group"
        )
    if mail is not None and role == Role.READER:
        raise RequestError("--mail is for tokens that request tables: not for the role reader")
    if groups:
        _check_groups(session, role, groups)
    try:
        name, lasting = tokens.name_of(who), tokens.life_of(life)
        address = None if mail is None else checked(mail)
    except (tokens.BadToken, BadAddress) as error:
        raise RequestError(str(error)) from None
    new_token = tokens.PREFIX + secrets.token_urlsafe(tokens.RANDOM_BYTES)
    new = NewToken(
        who=name,
        role=Role(role),
        digest=tokens.digest(new_token),
        life=lasting,
        trees=tuple(dict.fromkeys(trees)) or None,
        groups=tuple(dict.fromkeys(groups)) or None,
        levels=not changes_only,
        vouches=vouches,
        mail=address,
        note=note,
        by=somebody(),
    )
    with transactions(session.engine)("create token") as tx:
        for tree in new.trees or ():
            if tx.trees.named(tree) is None:
                raise RequestError(f"tree {tree!r} does not exist; `swingbot tree list` lists all")
        number = create_token(tx.access, new)
    with session.reading() as conn:
        (row,) = (row for row in read.tokens(conn, over=True, who=name) if row["id"] == number)
    if json_:
        keys = ("id", "who", "role", "trees", "groups", "levels", "vouches", "mail", "expires_at")
        say_json({key: row[key] for key in keys} | {"token": new_token})
        return
    click.echo(new_token)
    limits = [
        f"{what}: {', '.join(few)}"
        for what, few in (("trees", new.trees), ("testbox groups", new.groups))
        if few
    ]
    if changes_only:
        limits.append("changes only")
    limited = f" ({'; '.join(limits)})" if limits else ""
    trust = ", and vouches for the commits that it sends first" if vouches else ""
    trust += f", and gets mails with results at {address}" if address else ""
    until = f"expires at {row['expires_at']}" if row["expires_at"] else "never expires"
    click.echo(
        f"token {number} of {name} {PURPOSES[Role(role)]}{limited}{trust}; it {until} and is"
        f" not shown again. Sign in at {session.placed.web_url}/login",
        err=True,
    )


def _check_groups(session: CommandContext, role: str, groups: tuple[str, ...]) -> None:
    """Raises RequestError."""
    if role != Role.READER:
        raise RequestError("--group limits the role reader only")
    web = session.placed.web
    if "open" in (web.read, web.metrics):
        raise RequestError(
            'everybody can read the pages: set web.read = "token" and web.metrics = "token" or'
            ' "off" before you create tokens limited to testbox groups'
        )
    with session.reading() as conn:
        known = read.testbox_groups(conn)
        if unknown := [group for group in groups if group not in known]:
            raise RequestError(
                f"no testbox has the group {unknown[0]!r}; groups are {', '.join(known) or 'none'}"
            )
        if not read.can_limit(conn):
            raise RequestError(str(NotLimited()))


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
    cells = {
        "id": "ID",
        "who": "WHO",
        "role": "ROLE",
        "trees": "TREES",
        "groups": "GROUPS",
        "levels": "LEVELS",
        "vouches": "TRUST",
        "mail": "MAIL",
        "made_at": "CREATED",
        "made_by": "BY",
        "expires_at": "EXPIRES",
        "used_at": "LAST USED",
        "revoked_at": "REVOKED",
        "note": "NOTE",
    }
    shown = [
        row
        | {key: " ".join(row[key]) if row[key] else "all" for key in ("trees", "groups")}
        | {"levels": "yes" if row["levels"] else "no"}
        | {"vouches": "own commits" if row["vouches"] else ""}
        for row in rows
    ]
    click.echo(
        text.table(
            [tuple("" if row[cell] is None else row[cell] for cell in cells) for row in shown],
            tuple(cells.values()),
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
    comparisons requested, commits vouched for.

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
