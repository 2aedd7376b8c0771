"""`swingbot testbox`: the measured machines, their noise, and taking them out of work."""

from __future__ import annotations

from typing import Any

import click

from swingbot.app import check_testbox
from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.service.lab import set_testboxes
from swingbot_db import read

reason_option = click.option(
    "--reason", default="by hand", show_default=True, help="Why; shown wherever the testbox is."
)


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
def list_(session: CommandContext, json_: bool) -> None:
    """All testboxes, and what is wrong with them."""
    with session.reading() as conn:
        rows = read.list_testboxes(conn)
    if json_:
        say_json(rows)
    else:
        cells = [
            (
                r["name"],
                r["tbox_group"],
                r["words"],
                r["boots"],
                r["reason"] or _lost(r) or r["label"],
            )
            for r in rows
        ]
        click.echo(text.table(cells, ("NAME", "GROUP", "STATE", "BOOTS", "REASON OR LABEL")))


@testbox.command()
@click.argument("name")
@as_json
@pass_session
@guarded
def show(session: CommandContext, name: str, json_: bool) -> None:
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
    click.echo(
        f"{facts['name']}  {facts['state']}"
        + (f": {facts['reason']}" if facts["reason"] else "")
        + (f"  [{facts['label']}]" if facts["label"] else "")
    )
    click.echo(_now(facts))
    if nodes := (facts["facts"].get("cluster") or {}).get("nodes"):
        click.echo(
            f"cluster of {', '.join(f'{role} {node}' for role, node in sorted(nodes.items(), reverse=True))}; leased and booted together"
        )
    click.echo(
        f"{facts['boots']} boots, {facts['boots_not_up']} of them did not come up; {facts['queued']} in the queue\n"
    )
    parts = ("run", "boot", "boot_mean", "pair", "day", "layout")
    rows = [
        (r["metric"], r["unit_job"], *(_part(r[p]) for p in parts), r["boots"], r["wild_boots"])
        for r in facts["noise"]
    ]
    click.echo(
        text.table(
            rows,
            ("METRIC", "UNIT JOB", *(p.upper().replace("_", " ") for p in parts), "BOOTS", "WILD"),
        )
    )
    for anchor in facts["anchors"]:
        click.echo(
            f"anchor {anchor['id']}  {anchor['at']}  {anchor['status']}  {anchor['reason'] or 'as before'}"
        )
    for alert in facts["alerts"][:5]:
        click.echo(
            f"alert  {alert['began_at']}  {alert['kind']}: {alert['reason']}"
            + (f" (over {alert['ended_at']})" if alert["ended_at"] else " (it lasts)")
        )
    if facts["events"]:
        changes = [
            (e["at"], f"{e['was']} -> {e['state']}", e["order"], e["why"])
            for e in facts["events"][:10]
        ]
        click.echo("\n" + text.table(changes, ("CHANGED AT", "FROM -> TO", "FOR", "WHY")))


def _lost(row: dict[str, Any]) -> str:
    return row["now"]["why"] if row["now"]["state"] == "lost" else ""


def _now(facts: dict[str, Any]) -> str:
    """What it does, since when, why, and for whom: one line."""
    now = facts["now"]
    since = f" since {now['since']}" if now["since"] else ""
    why = f": {now['why']}" if now["why"] and now["why"] != facts["reason"] else ""
    held = (
        f"; driven by {now['holder']}, whose lease holds until {now['until']}"
        if now["holder"]
        else ""
    )
    failures = (
        f"; attempts in a row that were lost to it: {now['failures']}" if now["failures"] else ""
    )
    return f"{facts['words']}{since}{why}{held}{failures}"


def _part(spread: dict[str, Any]) -> str | None:
    return None if spread["sd"] is None else f"{100 * spread['sd']:.3g} ({spread['df']:.0f})"


@testbox.command()
@click.argument("name")
@reason_option
@as_json
@pass_session
@guarded
def quarantine(session: CommandContext, name: str, reason: str, json_: bool) -> None:
    """Its numbers are not to be trusted: its orders wait until `resume`."""
    set_testboxes.quarantine(session.lab, name, reason)
    _moved(
        session,
        name,
        f"testbox {name} is quarantined; `swingbot testbox resume {name}` when it is fit",
        json_,
    )


@testbox.command()
@click.argument("name")
@reason_option
@as_json
@pass_session
@guarded
def drain(session: CommandContext, name: str, reason: str, json_: bool) -> None:
    """What runs there ends; nothing new begins until `resume`."""
    set_testboxes.drain(session.lab, name, reason)
    _moved(
        session,
        name,
        f"testbox {name} is drained; `swingbot testbox resume {name}` lets it work again",
        json_,
    )


@testbox.command(
    epilog="Exit status: 0 it has all that it needs; 1 something is missing, or it could not be checked; 2 there is no such testbox."
)
@click.argument("name")
@click.option("--here", is_flag=True, help="Check from this host, whichever drives the testbox.")
@as_json
@pass_session
@guarded
def check(session: CommandContext, name: str, here: bool, json_: bool) -> None:
    """Whether it has all that it needs, and what to do for each thing that is missing. Its controller host looks.

    \b
    Example:
      swingbot testbox check rack7
    """
    with session.reading() as conn:
        read.testbox(conn, name)  # raises NotFound
        driver = None if here else read.controller(conn, name)
    found = check_testbox.check(name, driver)
    if json_:
        say_json(found)
    else:
        click.echo(check_testbox.as_text(name, found))
    if not all(finding["ok"] for finding in found):
        raise SystemExit(1)


@testbox.command()
@click.argument("name")
@as_json
@pass_session
@guarded
def resume(session: CommandContext, name: str, json_: bool) -> None:
    """Let it work again, as it is now: earlier boots of its anchor are no measure any more."""
    set_testboxes.resume(session.lab, name)
    _moved(session, name, f"testbox {name} is active", json_)


def _moved(session: CommandContext, name: str, told: str, json_: bool) -> None:
    """Say that it is done: the testbox as it is now, or in a sentence."""
    if json_:
        with session.reading() as conn:
            say_json(read.testbox(conn, name))
    else:
        click.echo(told)
