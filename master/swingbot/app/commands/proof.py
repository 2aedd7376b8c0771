"""`swingbot proof`: gates that a culprit must pass before a mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import (
    CommandContext,
    require_service,
    somebody,
    with_session_json,
)
from swingbot.core.model import ids
from swingbot.core.proof.gates import GATES
from swingbot.core.text.numbers import duration
from swingbot_jobs.terminal import say_json

gate_option = click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="GATE",
    help=f"Gate: {', '.join(GATES)}; may be repeated.",
)


@click.group()
def proof() -> None:
    """Show and run the gates that a culprit must pass before a mail.

    \b
    Examples:
      swingbot proof show i1
      swingbot proof run i1 --gate layout
    """


@proof.command()
@click.argument("incident", metavar="INCIDENT", shell_complete=ids_of("incidents"))
@with_session_json
def show(session: CommandContext, incident: str, json_: bool) -> None:
    """Show each gate: status, reason, cost and comparison.

    \b
    Example:
      swingbot proof show i1 --json
    """
    ids.read(incident, "incident")
    facts = session.documents.document(incident)
    gates = facts["gates"]
    if json_:
        say_json({"incident": facts["id"], "gates": gates})
    else:
        click.echo(text.gates(gates))


@proof.command()
@click.argument("incident", metavar="INCIDENT", shell_complete=ids_of("incidents"))
@gate_option
@with_session_json
def run(session: CommandContext, incident: str, gates: tuple[str, ...], json_: bool) -> None:
    """Run gates again with fresh boots; a drafted mail is not changed.

    Without --gate, all gates in the setting proof.gates are run. The culprit of a bisection started
    by hand is first measured against its parent; then its gates open and its mail is drafted.

    \b
    Examples:
      swingbot proof run i1 --gate layout --gate executed
    """
    number = ids.read(incident, "incident")[1]
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        measures_parent_first = http_decisions.run_gates(session.login, incident, gates)
    else:
        require_service()
        from swingbot.service.prove.request_gates import prove_again

        measures_parent_first = not prove_again(session.lab, number, gates, somebody())
    rows = session.documents.document(incident)["gates"]
    if json_:
        say_json({"incident": ids.show("incident", number), "gates": rows})
    elif measures_parent_first:
        click.echo(
            f"{ids.show('incident', number)} is measured against its parent first; its gates then"
            " open automatically"
        )
    else:
        click.echo(text.gates(rows))


@proof.command()
@click.argument("incident", metavar="INCIDENT", shell_complete=ids_of("incidents"))
@gate_option
@with_session_json
def cost(session: CommandContext, incident: str, gates: tuple[str, ...], json_: bool) -> None:
    """Estimate the cost of running the gates now; requests nothing.

    \b
    Example:
      swingbot proof cost i1
    """
    number = ids.read(incident, "incident")[1]
    estimates: Sequence[Mapping[str, Any]]
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        estimates = http_decisions.costs_of_gates(session.login, incident, gates)
    else:
        require_service()
        from swingbot.service.prove.request_gates import foresee_gates

        estimates = [asdict(one) for one in foresee_gates(session.lab, number, gates)]
    if json_:
        say_json(estimates)
        return
    rows = [
        (
            one["gate"],
            *(
                (None, None, one["answer"])
                if one["answer"] is not None
                else (one["builds"], one["boots"], f"about {duration(one['seconds'])}")
            ),
        )
        for one in estimates
    ]
    click.echo(text.table(rows, ("GATE", "BUILDS", "BOOTS", "TIME OR ANSWER")))
