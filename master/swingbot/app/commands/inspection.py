"""`swingbot status`, `list`, `show`: inspect the state of the service."""

from __future__ import annotations

from typing import Final

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import CommandContext, read_overrides, with_session_json
from swingbot.app.documents import FORMS, PLURALS, Facts, kind_of
from swingbot.core.model import ids
from swingbot.core.table.verdict import in_words
from swingbot.core.text.numbers import signed_percent
from swingbot.service.ports import RequestError
from swingbot_jobs.terminal import say_json

_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "comparisons": ("id", "status", "kind", "tree", "arms", "testboxes", "result"),
    "experiments": ("id", "status", "tree", "arms", "testboxes", "result"),
    "bisections": ("id", "status", "tree", "metric", "unit_job", "testbox", "result"),
    "orders": ("id", "kind", "state", "commit", "testbox", "k", "reason"),
    "reports": ("id", "state", "kind", "incident", "subject"),
    "testboxes": ("name", "tbox_group", "state", "queued", "queue_end", "label"),
    "trees": ("name", "branch", "tip_commit", "problem"),
    "metrics": ("metric", "unit_job", "testbox", "boots", "noise_pct"),
}


@click.command()
@with_session_json
def status(session: CommandContext, json_: bool) -> None:
    """Show the state of components, queue and testboxes, and problems."""
    facts = session.documents.status()
    if json_:
        say_json(facts)
    elif "queue" in facts:
        click.echo(text.status(facts))
    else:
        for problem in facts["problems"]:
            click.echo(f"PROBLEM   {problem['text']}")
    if "queue" not in facts:
        raise SystemExit(1)


@click.command("list")
@click.argument("kind", type=click.Choice(PLURALS))
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Filter such as status=running or tree=linus; repeated filters are combined with AND."
    " Several values with commas mean any of them; an unknown value is refused with the known"
    " ones. Incidents also have sort=change, oldest or author.",
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@with_session_json
def list_(
    session: CommandContext, kind: str, filters: tuple[str, ...], limit: int, json_: bool
) -> None:
    """List objects of one kind, latest first.

    \b
    Example:
      swingbot list bisections --filter status=running --json
    """
    rows = session.documents.listing(kind, read_overrides(filters), limit)
    if json_:
        say_json(rows)
    elif kind == "incidents":
        click.echo(text.incidents(rows))
    else:
        columns = _COLUMNS[kind]
        click.echo(
            text.table(
                [[_cell(row, column) for column in columns] for row in rows],
                [c.upper() for c in columns],
            )
        )


def _result(row: Facts) -> str | None:
    """What a table or bisection found, or why it found nothing."""
    if (headline := row.get("headline")) and row["status"] == "done":
        return f"{headline['metric']}: {in_words(headline)}"
    if culprit := row.get("culprit"):
        size = "" if row["change_pct"] is None else f"{signed_percent(row['change_pct'])} by "
        return f"{size}{culprit['commit'][:12]} {culprit['subject']}"
    reason: str | None = row.get("reason")
    return reason


def _cell(row: Facts, column: str) -> object:
    if column == "queue_end":
        return text.queue_end(row[column])
    value = _result(row) if column == "result" else row.get(column)
    if isinstance(value, dict):
        return f"{value.get('commit', '')[:12]} {value.get('subject', '')}".strip()
    if isinstance(value, list):
        return ",".join(str(one["name"] if isinstance(one, dict) else one) for one in value)
    return value[:12] if isinstance(value, str) and len(value) == 40 and " " not in value else value


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of())
@click.option(
    "--counters", is_flag=True, help="Show all rows, including perf stat counters (comparisons)."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Output format: text, or for mail, LKP, perf stat, changelog, or CSV.",
)
@with_session_json
def show(session: CommandContext, id_: str, counters: bool, form: str | None, json_: bool) -> None:
    """Show an object by its id: c5, e6, b2, i1, r4, o12, v3, x7.

    \b
    Examples:
      swingbot show b2 --json
      swingbot show c5 --format changelog
    """
    if form is not None:
        if json_:
            raise RequestError("--format cannot be combined with --json; use one of them")
        click.echo(session.documents.printed(id_, form), nl=False)
        return
    kind = kind_of(id_)
    if kind in ids.TABLES and not json_:
        click.echo(session.documents.shown(id_, counters=counters), nl=False)
        return
    facts = session.documents.document(id_)
    if json_:
        say_json(facts)
    elif kind == "bisection":
        click.echo(text.bisection(facts))
    elif kind == "boot":
        click.echo(text.boot(facts))
    elif kind == "report":
        click.echo(f"{facts['id']} is {facts['state']}\n\n{facts['body']}")
    else:
        for key, value in facts.items():
            if not isinstance(value, (dict, list)):
                click.echo(f"{key:20} {value}")
        if kind == "incident":
            click.echo(f"\n{text.gates(facts['gates'])}")
