"""`swingbot incident`: inspect culprits with all their effects, and decide about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import TREES, ids_of
from swingbot.app.commands.context import (
    CommandContext,
    check_decision,
    require_service,
    somebody,
    with_session_json,
)
from swingbot.core.incident.decide import Act, IncidentDecision
from swingbot.core.model import ids
from swingbot.core.report.parts.why import why_lines
from swingbot_jobs.terminal import say_json

reason_option = click.option(
    "--reason",
    metavar="TEXT",
    help="Reason, in one sentence; it is recorded and quoted in a retraction.",
)
_INCIDENTS = ids_of("incidents")
_ID = click.argument("id_", metavar="ID", shell_complete=_INCIDENTS)


@click.group()
def incident() -> None:
    """Inspect incidents and decide about them.

    Each decision is recorded with its author; repeating a decision has no effect.
    """


@incident.command("list")
@click.option("--status", help="Show only these, such as open,expected.")
@click.option("--tree", shell_complete=TREES, help="Show only incidents of this tree.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@with_session_json
def list_(
    session: CommandContext, status: str | None, tree: str | None, limit: int, json_: bool
) -> None:
    """List incidents, latest first.

    \b
    Example:
      swingbot incident list --status open
    """
    filters = {name: value for name, value in (("status", status), ("tree", tree)) if value}
    rows = session.documents.listing("incidents", filters, limit)
    if json_:
        say_json(rows)
        return
    click.echo(text.incidents(rows))


@incident.command("show")
@_ID
@with_session_json
def show(session: CommandContext, id_: str, json_: bool) -> None:
    """Show a culprit, its effects, mails and history.

    \b
    Example:
      swingbot incident show i3
    """
    ids.read(id_, "incident")
    facts = session.documents.document(id_)
    if json_:
        say_json(facts)
    else:
        click.echo("\n".join(incident_lines(facts)))


def incident_lines(facts: text.Facts) -> list[str]:
    """Format an incident as text."""
    culprit = facts["culprit"]
    named = f"{culprit['commit'][:12]} {culprit['subject']}"
    lines = [f"{facts['id']} is {text.incident_status(facts)}: {named}"]
    lines += [f"  by {culprit['author']}"] if culprit["author"] else []
    if facts["fixed_by"]:
        check = (
            f"checked by {facts['fix_check']}"
            if facts["fix_check"]
            else "to be checked at the first tip that contains it"
        )
        lines += [f"  fixed by {facts['fixed_by'][:12]}, {check}"]
    lines += ["", "significant impact on"] if facts["impact"] else []
    shown = [
        (
            one["unit_job"],
            one["metric"],
            place["testbox"],
            place["tree"],
            place["words"] + (", opposite direction elsewhere" if one["split"] else ""),
        )
        for one in facts["impact"]
        for place in one["places"]
    ]
    lines += (
        text.table(shown, ("TEST", "METRIC", "TESTBOX", "TREE", "CHANGE")).splitlines()
        if shown
        else []
    )
    lines += ["", *beside] if (beside := why_lines(facts.get("why", ()))) else []
    sightings = [
        (
            s["bisection"],
            s["tree"],
            s["commit"][:12],
            s["metric"],
            s["testbox"],
            s["comparison"],
            s["report"],
        )
        for s in facts["sightings"]
    ]
    lines += (
        [
            "",
            *text.table(
                sightings,
                ("FOUND BY", "TREE", "COMMIT", "METRIC", "TESTBOX", "MEASURED BY", "REPORT"),
            ).splitlines(),
        ]
        if sightings
        else []
    )
    mails = [
        (r["id"], r["kind"], r["state"], r["withdrawn"] or r["subject"])
        for r in facts["report_list"]
    ]
    lines += (
        ["", *text.table(mails, ("MAIL", "KIND", "STATE", "SUBJECT")).splitlines()] if mails else []
    )
    lines += ["", *(event_line(event) for event in facts["history"])] if facts["history"] else []
    return lines


def event_line(event: text.Facts) -> str:
    """Format one line of an incident's history."""
    about = ", ".join(
        f"{key} {_short(value)}"
        for key, value in event["detail"].items()
        if key not in ("was", "sightings")
    )
    return (
        f"{event['at']}  {event['act']} by {event['who']}"
        + (f" ({about})" if about else "")
        + (f": {event['reason']}" if event["reason"] else "")
    )


def _short(value: Any) -> str:
    words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return words[:12] if len(words) == 40 and " " not in words else words


def _decide(session: CommandContext, id_: str, decision: IncidentDecision) -> str:
    """Apply a decision; return the incident to look at. Raises BadId, RequestError."""
    number = ids.read(id_, "incident")[1]
    check_decision(decision)
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        return http_decisions.decide(session.login, id_, decision)
    require_service()
    from swingbot.service.incident import keep

    lab = session.lab
    done = keep.carry_out(lab.transaction, lab.tools.git, number, decision, somebody())
    return ids.show("incident", done.id)


def _said(facts: text.Facts, json_: bool, words: str) -> None:
    """Print the current state of the incident."""
    if json_:
        say_json(facts)
        return
    click.echo(f"{facts['id']} is {text.incident_status(facts)}{words}")
    for mail in facts["report_list"]:
        if mail["withdrawn"]:
            click.echo(f"  {mail['id']} was withdrawn: {mail['withdrawn']}")


def _command(name: Act, help_: str, words: str = "") -> Callable[..., None]:
    """Create a command that records one decision about an incident."""

    @incident.command(name, help=help_)
    @_ID
    @reason_option
    @with_session_json
    def run(session: CommandContext, id_: str, reason: str | None, json_: bool) -> None:
        done = _decide(session, id_, IncidentDecision(act=name, reason=reason))
        _said(session.documents.document(done), json_, words)

    return run


close = _command(
    "close",
    "Close the incident: no further mails. `reopen` undoes this."
    "\n\n\b\nExample:\n  swingbot incident close i3 --reason 'the driver is gone'",
)
reopen = _command(
    "reopen",
    "Reopen after close, expected, invalid or fixed. Sent mails are not sent again."
    "\n\n\b\nExample:\n  swingbot incident reopen i3",
)
expected = _command(
    "expected",
    "Accept the change: later tips are compared with the new level."
    "\n\n\b\nExample:\n  swingbot incident expected i3 --reason 'traded for latency'",
    "; later tips are compared with the new level",
)
invalid = _command(
    "invalid",
    "Mark the finding as wrong. If its mail was sent, a retraction is drafted."
    "\n\n\b\nExample:\n  swingbot incident invalid i3 --reason 'the testbox overheated'",
)


@incident.command("fixed-by")
@_ID
@click.argument("commit")
@reason_option
@with_session_json
def fixed_by(
    session: CommandContext, id_: str, commit: str, reason: str | None, json_: bool
) -> None:
    """Record COMMIT as the fix.

    The first tip that contains COMMIT is measured against the culprit's parent; if the metric has
    recovered, the incident becomes fixed. COMMIT is a commit of the tree, or the 40-digit id of one
    that the tree does not contain yet.

    \b
    Example:
      swingbot incident fixed-by i3 4f1c09aa81d2
    """
    done = _decide(session, id_, IncidentDecision(act="fixed-by", reason=reason, commit=commit))
    facts = session.documents.document(done)
    checked = f"; {str(facts['fixed_by'])[:12]} will be checked at the first tip that contains it"
    _said(facts, json_, "" if facts["status"] == "fixed" else checked)


@incident.command("merge")
@click.argument("ids_", nargs=-1, required=True, metavar="ID...", shell_complete=_INCIDENTS)
@click.option(
    "--into",
    required=True,
    metavar="ID",
    shell_complete=_INCIDENTS,
    help="Incident to keep; the others are merged into it.",
)
@reason_option
@with_session_json
def merge(
    session: CommandContext, ids_: tuple[str, ...], into: str, reason: str | None, json_: bool
) -> None:
    """Merge incidents into one.

    Sent mails are not sent again; unsent mails of the merged incidents are withdrawn.

    \b
    Example:
      swingbot incident merge i4 i5 --into i3
    """
    done = _decide(session, into, IncidentDecision(act="merge", reason=reason, others=ids_))
    _said(session.documents.document(done), json_, f" and includes {', '.join(ids_)}")


@incident.command("duplicate")
@_ID
@click.argument("of", metavar="OF", shell_complete=_INCIDENTS)
@reason_option
@with_session_json
def duplicate(session: CommandContext, id_: str, of: str, reason: str | None, json_: bool) -> None:
    """Mark ID as a duplicate of OF, like `merge ID --into OF`.

    \b
    Example:
      swingbot incident duplicate i4 i3
    """
    ids.read(id_, "incident")
    _decide(session, of, IncidentDecision(act="merge", reason=reason, others=(id_,)))
    _said(session.documents.document(id_), json_, "")


@incident.command("split")
@_ID
@click.option(
    "--bisection",
    metavar="ID",
    help="Split off the culprit found by this bisection (default: undo the merge of a duplicate).",
)
@reason_option
@with_session_json
def split(
    session: CommandContext, id_: str, bisection: str | None, reason: str | None, json_: bool
) -> None:
    """Split an incident in two, or undo a merge.

    \b
    Examples:
      swingbot incident split i3 --bisection b7
      swingbot incident split i4
    """
    done = _decide(session, id_, IncidentDecision(act="split", reason=reason, bisection=bisection))
    _said(session.documents.document(done), json_, " and is a separate incident")
