"""`swingbot proof`: the gates between a culprit and its mail."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.core.model import ids
from swingbot.core.proof.gates import GATES, spoken
from swingbot.service.prove.request_gates import foresee_gates, prove_again
from swingbot_db import read

gate_option = click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="GATE",
    help=f"One of {', '.join(GATES)}; several may be given.",
)


@click.group()
def proof() -> None:
    """Proof before a mail: what a culprit has passed, what it failed, what was not looked at and why.

    \b
    Example:
      swingbot proof show i1
      swingbot proof run i1 --gate layout
    """


@proof.command()
@click.argument("incident", metavar="INCIDENT")
@as_json
@pass_session
@guarded
def show(session: CommandContext, incident: str, json_: bool) -> None:
    """Each gate with its answer, its figures, what it was foreseen to cost and its comparison.

    \b
    Example:
      swingbot proof show i1 --json
    """
    number = ids.read(incident, "incident")[1]
    with session.reading() as conn:
        read.incident(conn, number)  # there is one, or a sentence says so
        gates = read.gates(conn, number)
    if json_:
        say_json({"incident": ids.show("incident", number), "gates": gates})
    else:
        click.echo(as_text(gates))


def as_text(gates: list[dict[str, Any]]) -> str:
    """The gates as a table."""
    if not gates:
        return "no gate is open yet: they open when the commit has been measured against its parent; `swingbot proof run` begins that where nothing else does"
    rows = [
        (
            gate["gate"],
            gate["status"],
            gate["comparison"],
            _cost(gate["foreseen"]),
            gate["reason"] or gate["question"],
        )
        for gate in gates
    ]
    return text.table(rows, ("GATE", "STATUS", "COMPARISON", "FORESEEN", "WHY"))


def _cost(foreseen: dict[str, Any] | None) -> str | None:
    if foreseen is None:
        return None
    return f"{foreseen['builds']:.0f} builds, {foreseen['boots']:.0f} boots, {spoken(foreseen['seconds'])}"


@proof.command()
@click.argument("incident", metavar="INCIDENT")
@gate_option
@as_json
@pass_session
@guarded
def run(session: CommandContext, incident: str, gates: tuple[str, ...], json_: bool) -> None:
    """Ask for gates once more, with fresh boots; without --gate for all that proof.gates names. A mail that is drafted stays as it is.

    The culprit of a bisection that was started by hand is measured against its parent first; its gates open after that, and its mail is drafted.

    \b
    Example:
      swingbot proof run i1 --gate layout --gate executed
    """
    number = ids.read(incident, "incident")[1]
    begun = not prove_again(session.lab, number, gates)
    with session.reading() as conn:
        found = read.gates(conn, number)
    if json_:
        say_json({"incident": ids.show("incident", number), "gates": found})
    elif begun:
        click.echo(
            f"{ids.show('incident', number)} is measured against its parent first; its gates open by themselves after that"
        )
    else:
        click.echo(as_text(found))


@proof.command()
@click.argument("incident", metavar="INCIDENT")
@gate_option
@as_json
@pass_session
@guarded
def cost(session: CommandContext, incident: str, gates: tuple[str, ...], json_: bool) -> None:
    """What the gates would cost if they were asked for now; asks for nothing.

    \b
    Example:
      swingbot proof cost i1
    """
    found = foresee_gates(session.lab, ids.read(incident, "incident")[1], gates)
    if json_:
        say_json([asdict(one) for one in found])
        return
    rows = [
        (
            one.gate,
            *(
                (None, None, one.answer)
                if one.answer is not None
                else (one.builds, one.boots, f"about {spoken(one.seconds)}")
            ),
        )
        for one in found
    ]
    click.echo(text.table(rows, ("GATE", "BUILDS", "BOOTS", "COST OR ANSWER")))
