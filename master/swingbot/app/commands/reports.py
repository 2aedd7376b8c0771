"""`swingbot report`: read, release, hold and drop reports; stop and resume mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import (
    CommandContext,
    check_decision,
    require_service,
    somebody,
    with_session,
    with_session_json,
)
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportAct
from swingbot.core.moderation.decision import ReportDecision, SwitchDecision
from swingbot_jobs.terminal import print_as_is, say_json


@click.command()
@with_session
def key(session: CommandContext) -> None:
    """Print the operator's key, the first token for the web pages (role operator).

    Use `swingbot token create` to create a token for each person.

    \b
    Example:
      swingbot key
    """
    from swingbot.adapters.artifacts import secret
    from swingbot.web.access.session import operator_key

    click.echo(operator_key(secret(session.settings.secret_file)))


@click.group()
def report() -> None:
    """Read, release and drop reports; stop all mail."""


@report.command("list")
@click.option("--state", help="Show only reports in these states, such as held,draft.")
@with_session_json
def list_(session: CommandContext, state: str | None, json_: bool) -> None:
    """List reports, latest first.

    \b
    Example:
      swingbot report list --state held
    """
    documents = session.documents
    rows = documents.listing("reports", {"state": state} if state else {}, 50)
    if json_:
        say_json(rows)
        return
    click.echo(
        text.table(
            [(r["id"], r["state"], r["kind"], r["subject"]) for r in rows],
            ("ID", "STATE", "KIND", "SUBJECT"),
        )
    )
    mail, by_setting = documents.mail_switch()
    if mail["stopped"] or by_setting:
        click.echo(_stopped(mail, by_setting))


def _stopped(mail: Mapping[str, Any], by_setting: bool) -> str:
    if not mail["stopped"]:
        return (
            "the setting mail.stop stops all mail; no report is sent"
            if by_setting
            else "mail is not stopped"
        )
    return (
        f"mail has been stopped since {mail['at']} by {mail['who']}"
        + (f" ({mail['why']})" if mail["why"] else "")
        + "; no report is sent"
    )


@report.command("show")
@click.argument("id_", metavar="ID", shell_complete=ids_of("reports"))
@click.option(
    "--mail",
    is_flag=True,
    help="Print the complete message with headers, as it was or will be sent.",
)
@with_session_json
def show(session: CommandContext, id_: str, mail: bool, json_: bool) -> None:
    """Show a report: mail, recipients, state and decisions.

    \b
    Example:
      swingbot report show r4 --mail
    """
    ids.read(id_, "report")
    facts = session.documents.document(id_)
    if json_:
        say_json(facts)
    elif mail:
        print_as_is((facts["mail"] or "").replace("\r\n", "\n"))
    else:
        click.echo(
            "\n".join([*_head(facts), "", f"Subject: {facts['subject']}", "", facts["body"]])
        )


def _head(facts: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{facts['id']} is {facts['state']}" + (f": {facts['reason']}" if facts["reason"] else "")
    ]
    lines.append(f"to {_people(facts['to'], facts['cc'])}")
    if facts["restricted"]:
        lines.append(f"to mail.to alone: {facts['restricted']}")
    if facts["dry_run"]:
        lines.append(
            f"{'' if facts['restricted'] else 'dry run; '}would be sent to:"
            f" {_people(facts['would_to'], facts['would_cc']) or 'no recipients'}"
        )
    lines += [
        f"  only the commit names {address}, not MAINTAINERS of the tree's base"
        for address in facts["commit_only"]
    ]
    lines += [f"  not {left['address']}: {left['reason']}" for left in facts["left_out"]]
    lines.append(
        "evidence: " + ", ".join(f"{gate} {word}" for gate, word in facts["evidence"].items())
    )
    if facts["error"]:
        lines.append(
            f"{facts['tries']} attempts; {facts['error']}; next attempt {facts['next_try']}"
        )
    return lines + [
        f"{act['at']} {act['act']} by {act['who']}" + (f": {act['why']}" if act["why"] else "")
        for act in facts["acts"]
    ]


def _people(to: Sequence[str], cc: Sequence[str]) -> str:
    return ", ".join(to) + (f"; cc {', '.join(cc)}" if cc else "")


def _decide(session: CommandContext, id_: str, verb: ReportAct, why: str) -> None:
    click.echo(f"{id_} is {_decided(session, id_, verb, why)}")
    if verb == "release" and (restricted := session.documents.document(id_)["restricted"]):
        click.echo(f"it goes to mail.to alone: {restricted}")


def _decided(session: CommandContext, id_: str, verb: ReportAct, why: str) -> str:
    """Apply a decision; return the state of the report. Raises BadId, RequestError."""
    number = ids.read(id_, "report")[1]
    decision = ReportDecision(act=verb, reason=why)
    check_decision(decision)
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        return http_decisions.decide_report(session.login, id_, decision)
    require_service()
    from swingbot.service.report.decide import decide
    from swingbot_db.store import transactions

    with transactions(session.engine)("decide") as tx:
        return decide(tx.outbox, number, verb, datetime.now(UTC), who=somebody(), why=why)


because = click.option("--reason", "why", default="", help="Reason; recorded with the decision.")


@report.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("reports"))
@because
@with_session
def release(session: CommandContext, id_: str, why: str) -> None:
    """Release a report for sending. A report of unknown delivery status is sent again.

    \b
    Example:
      swingbot report release r4
    """
    _decide(session, id_, "release", why)


@report.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("reports"))
@because
@with_session
def drop(session: CommandContext, id_: str, why: str) -> None:
    """Never send a report.

    \b
    Example:
      swingbot report drop r4 --reason "noise of the testbox"
    """
    _decide(session, id_, "drop", why)


@report.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("reports"))
@because
@with_session
def hold(session: CommandContext, id_: str, why: str) -> None:
    """Hold a report until a person releases it.

    \b
    Example:
      swingbot report hold r4 --reason "asking the maintainer first"
    """
    _decide(session, id_, "hold", why)


@report.command("readdress")
@click.argument("id_", metavar="ID", shell_complete=ids_of("reports"))
@with_session
def readdress_(session: CommandContext, id_: str) -> None:
    """Recompute the recipients of a held report.

    Uses the current settings; useful after a dry run or when a recipient has opted out.

    \b
    Example:
      swingbot report readdress r4
    """
    number = ids.read(id_, "report")[1]
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        http_decisions.readdress_report(session.login, id_)
    else:
        require_service()
        from swingbot.service.report.readdress import readdress

        readdress(session.lab, number, somebody())
    click.echo("\n".join(_head(session.documents.document(id_))))


@report.command()
@with_session_json
def classes(session: CommandContext, json_: bool) -> None:
    """List classes of reports and their records.

    A class is (metric, testbox, gates passed). Its record, the decisions of people, decides
    whether it has earned automatic release.

    \b
    Example:
      swingbot report classes
    """
    records, release = session.documents.report_classes()
    if json_:
        say_json(records)
        return
    rows = [
        (c["metric"], c["testbox"], ", ".join(c["gates"]) or "none", c["reports"], c["words"])
        for c in records
    ]
    click.echo(text.table(rows, ("METRIC", "TESTBOX", "GATES PASSED", "REPORTS", "RECORD")))
    if release != "earned":
        click.echo(f"mail.release is `{release}`; the record is used only with `earned`")


@report.command()
@because
@with_session
def stop(session: CommandContext, why: str) -> None:
    """Stop all mail until `swingbot report resume`. New reports are still drafted and wait.

    \b
    Example:
      swingbot report stop --reason "wrong testbox facts"
    """
    _switch(session, True, why)


@report.command()
@because
@with_session
def resume(session: CommandContext, why: str) -> None:
    """Resume sending mail.

    \b
    Example:
      swingbot report resume
    """
    _switch(session, False, why)


def _switch(session: CommandContext, stopped: bool, why: str) -> None:
    decision = SwitchDecision(stopped=stopped, reason=why)
    check_decision(decision)
    if session.login is not None:
        from swingbot.app.remote import http_decisions

        mail, by_setting = http_decisions.switch_mail(session.login, decision)
    else:
        require_service()
        from swingbot.service.report.decide import switch_mail
        from swingbot_db.store import transactions

        with transactions(session.engine)("switch mail") as tx:
            switch_mail(tx.outbox, stopped, who=somebody(), why=why)
        mail, by_setting = session.documents.mail_switch()
    click.echo(_stopped(mail, by_setting))
    if stopped and mail["sending"]:
        click.echo(f"{', '.join(mail['sending'])} had already been handed to the mail server")
