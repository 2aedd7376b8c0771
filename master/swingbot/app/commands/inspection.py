"""`swingbot status`, `list`, `show`: inspect the state of the service."""

from __future__ import annotations

from typing import Any, NoReturn

import click

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, read_overrides, with_session_json
from swingbot.app.commands.proof import as_text as gates_as_text
from swingbot.app.keep.health_check import database_problem, problems_here, seems_to_run
from swingbot.app.sheets import printed
from swingbot.core.model import ids
from swingbot.core.report.table.formats import FORMS
from swingbot.service.ports import RequestError
from swingbot.service.report.table_sheet import kernel_changes, sheet_of
from swingbot_db import read
from swingbot_db.probe import ANSWER_SECONDS
from swingbot_jobs.terminal import say_json

_LISTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "comparisons": (
        read.list_comparisons,
        ("id", "status", "kind", "tree", "arms", "testboxes", "reason"),
    ),
    "experiments": (
        read.list_experiments,
        ("id", "status", "tree", "arms", "testboxes", "reason"),
    ),
    "bisections": (
        read.list_bisections,
        ("id", "status", "tree", "metric", "unit_job", "testbox", "reason"),
    ),
    "incidents": (read.list_incidents, ("id", "status", "tree", "culprit", "reports")),
    "orders": (read.list_orders, ("id", "kind", "state", "commit", "testbox", "k", "reason")),
    "reports": (read.list_reports, ("id", "state", "kind", "incident", "subject")),
    "testboxes": (read.list_testboxes, ("name", "tbox_group", "state", "label")),
    "trees": (read.list_trees, ("name", "branch", "tip_commit", "problem")),
    "metrics": (read.list_metrics, ("metric", "unit_job", "testbox", "boots", "noise_pct")),
}
_SHOWN: dict[str, Any] = {
    "comparison": read.table,
    "experiment": read.table,
    "bisection": read.bisection,
    "incident": read.incident,
    "report": read.report,
    "order": read.order,
    "variant": read.variant,
    "boot": read.boot,
}


@click.command()
@with_session_json
def status(session: CommandContext, json_: bool) -> None:
    """Show the state of components, queue and testboxes, and problems."""
    if seems_to_run(session.settings) and (why := database_problem(session.settings)):
        _without_database(session, why, json_)
    with session.reading(ANSWER_SECONDS) as conn:
        facts = read.status(conn)
    facts["problems"] = problems_here(session.settings) + facts["problems"]
    if session.settings.mail.stop:
        facts["problems"].append(
            {
                "text": "the setting mail.stop stops all mail; no report is sent",
                "link": "/outbox",
            }
        )
    if json_:
        say_json(facts)
    else:
        click.echo(text.status(facts))


def _without_database(session: CommandContext, why: str, json_: bool) -> NoReturn:
    """Print the problems of this machine, the database first; exit with status 1."""
    problems = [{"text": why, "link": None}, *problems_here(session.settings)]
    if json_:
        say_json({"problems": problems})
    else:
        for problem in problems:
            click.echo(f"PROBLEM   {problem['text']}")
    raise SystemExit(1)


@click.command("list")
@click.argument("kind", type=click.Choice(sorted(_LISTS)))
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Filter such as status=running or tree=linus; repeated filters are combined with AND.",
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
    load, columns = _LISTS[kind]
    with session.reading() as conn:
        try:
            rows = load(conn, read_overrides(filters), limit)
        except ValueError as error:
            raise RequestError(str(error)) from None
    if json_:
        say_json(rows)
    else:
        click.echo(
            text.table(
                [[_cell(row.get(column)) for column in columns] for row in rows],
                [c.upper() for c in columns],
            )
        )


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return f"{value.get('commit', '')[:12]} {value.get('subject', '')}".strip()
    if isinstance(value, list):
        return ",".join(str(one["name"] if isinstance(one, dict) else one) for one in value)
    return value[:12] if isinstance(value, str) and len(value) == 40 and " " not in value else value


@click.command()
@click.argument("id_", metavar="ID")
@click.option(
    "--counters", is_flag=True, help="Show all rows, including perf stat counters (comparisons)."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(FORMS)),
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
    kind, _ = ids.read(id_)
    if form is not None:
        if json_:
            raise RequestError("--format cannot be combined with --json; use one of them")
        with session.reading() as conn:
            click.echo(
                printed(conn, id_, form, ArtifactDirectory(session.settings.artifacts).open),
                nl=False,
            )
        return
    if kind not in _SHOWN:
        raise RequestError(f"{id_} cannot be shown; use `swingbot tree list` to see trees")
    with session.reading() as conn:
        facts = _SHOWN[kind](conn, id_)
        if kind in ids.TABLES:
            store = ArtifactDirectory(session.settings.artifacts)
            facts["kernel_changes"] = kernel_changes(read, store.open, conn, facts)
            sheet = sheet_of(read, store.open, conn, facts)
    if json_:
        say_json(facts)
    elif kind in ids.TABLES:
        changes = facts["kernel_changes"]
        click.echo(text.table_of_kernels(sheet, changes, counters=counters), nl=False)
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
            click.echo(f"\n{gates_as_text(facts['gates'])}")
