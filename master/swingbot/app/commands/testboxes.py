"""`swingbot testbox`: the measured machines, their noise, and taking them out of work."""

from __future__ import annotations

from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import Session, as_json, guarded, pass_session, say_json
from swingbot.service import boot_anchors
from swingbot_db import read

reason_option = click.option("--reason", default="by hand", show_default=True, help="Why; shown wherever the testbox is.")


@click.group()
def testbox() -> None:
    """Testboxes: what they are, how noisy, and whether they may work.

    \b
    Example:
      swingbot testbox show vm-icount
    """


@testbox.command("list")
@as_json
@pass_session
@guarded
def list_(session: Session, json_: bool) -> None:
    """All testboxes, and what is wrong with them."""
    with session.reading() as conn:
        rows = read.list_testboxes(conn)
    if json_:
        say_json(rows)
    else:
        cells = [(r["name"], r["tbox_group"], r["state"], r["boots"], r["reason"] or r["label"]) for r in rows]
        click.echo(text.table(cells, ("NAME", "GROUP", "STATE", "BOOTS", "REASON OR LABEL")))


@testbox.command()
@click.argument("name")
@as_json
@pass_session
@guarded
def show(session: Session, name: str, json_: bool) -> None:
    """A testbox with its noise record: standard deviations in per cent, of how many degrees of freedom.

    \b
    Example:
      swingbot testbox show vm-icount --json
    """
    with session.reading() as conn:
        facts = read.testbox(conn, name)
    if json_:
        say_json(facts)
        return
    click.echo(f"{facts['name']}  {facts['state']}" + (f": {facts['reason']}" if facts["reason"] else "") + (f"  [{facts['label']}]" if facts["label"] else ""))
    click.echo(f"{facts['boots']} boots, {facts['boots_not_up']} of them did not come up; {facts['queued']} in the queue\n")
    parts = ("run", "boot", "boot_mean", "pair", "day", "layout")
    rows = [(r["metric"], r["unit_job"], *(_part(r[p]) for p in parts), r["boots"], r["wild_boots"]) for r in facts["noise"]]
    click.echo(text.table(rows, ("METRIC", "UNIT JOB", *(p.upper().replace("_", " ") for p in parts), "BOOTS", "WILD")))
    for anchor in facts["anchors"]:
        click.echo(f"anchor {anchor['id']}  {anchor['at']}  {anchor['status']}  {anchor['reason'] or 'as before'}")


def _part(spread: dict[str, Any]) -> str | None:
    return None if spread["sd"] is None else f"{100 * spread['sd']:.3g} ({spread['df']:.0f})"


@testbox.command()
@click.argument("name")
@reason_option
@pass_session
@guarded
def quarantine(session: Session, name: str, reason: str) -> None:
    """Its numbers are not to be trusted: its orders wait until `resume`."""
    boot_anchors.quarantine(session.lab, name, reason)
    click.echo(f"testbox {name} is quarantined; `swingbot testbox resume {name}` when it is fit")


@testbox.command()
@click.argument("name")
@reason_option
@pass_session
@guarded
def drain(session: Session, name: str, reason: str) -> None:
    """What runs there ends; nothing new begins until `resume`."""
    boot_anchors.drain(session.lab, name, reason)
    click.echo(f"testbox {name} is drained; `swingbot testbox resume {name}` lets it work again")


@testbox.command()
@click.argument("name")
@pass_session
@guarded
def resume(session: Session, name: str) -> None:
    """Let it work again, as it is now: earlier boots of its anchor are no measure any more."""
    boot_anchors.resume(session.lab, name)
    click.echo(f"testbox {name} is active")
