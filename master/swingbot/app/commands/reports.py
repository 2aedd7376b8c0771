"""`swingbot report`: what has been written about culprits, and whether it may leave."""

from __future__ import annotations

import click

from swingbot.adapters.artifacts import secret
from swingbot.app.commands import text
from swingbot.app.commands.context import Session, as_json, guarded, pass_session, say_json
from swingbot.core.model import ids
from swingbot.web.forms import operator_key
from swingbot_db import read, reports


@click.command()
@pass_session
@guarded
def key(session: Session) -> None:
    """Print the operator's key, with which a person signs in to the pages to decide about reports and incidents.

    \b
    Example:
      swingbot key
    """
    click.echo(operator_key(secret(session.settings.secret_file)))


@click.group()
def report() -> None:
    """Read, release and drop reports."""


@report.command("list")
@click.option("--state", help="Only reports in this state, such as held.")
@as_json
@pass_session
@guarded
def list_(session: Session, state: str | None, json_: bool) -> None:
    """Reports, latest first."""
    with session.reading() as conn:
        rows = read.list_reports(conn, {"state": state} if state else None, 50)
    if json_:
        say_json(rows)
    else:
        click.echo(text.table([(r["id"], r["state"], r["kind"], r["subject"]) for r in rows], ("ID", "STATE", "KIND", "SUBJECT")))


@report.command("show")
@click.argument("id_", metavar="ID")
@click.option("--mail", is_flag=True, help="The whole message, headers included, as it was or will be sent.")
@as_json
@pass_session
@guarded
def show(session: Session, id_: str, mail: bool, json_: bool) -> None:
    """Show a report.

    \b
    Example:
      swingbot report show r4 --mail
    """
    ids.read(id_, "report")
    with session.reading() as conn:
        facts = read.report(conn, id_)
    if json_:
        say_json(facts)
    elif mail:
        click.echo((facts["mail"] or "").replace("\r\n", "\n"), nl=False)
    else:
        click.echo(f"{facts['id']} is {facts['state']}; to {', '.join(facts['to'])}\nSubject: {facts['subject']}\n\n{facts['body']}")


@report.command()
@click.argument("id_", metavar="ID")
@pass_session
@guarded
def release(session: Session, id_: str) -> None:
    """Let a report leave; one whose fate is unknown is sent again."""
    with session.engine.begin() as conn:
        click.echo(f"{id_} is {reports.release(conn, ids.read(id_, 'report')[1])}")


@report.command()
@click.argument("id_", metavar="ID")
@pass_session
@guarded
def drop(session: Session, id_: str) -> None:
    """Never send a report."""
    with session.engine.begin() as conn:
        click.echo(f"{id_} is {reports.drop(conn, ids.read(id_, 'report')[1])}")
