"""`swingbot testbox`: list, check, drain and quarantine testboxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from swingbot.app import check_testbox
from swingbot.app.commands import text
from swingbot.app.commands.completion import TESTBOXES
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.app.commands.requests import dry_run_option
from swingbot.app.keep.testbox_here import testbox_here
from swingbot.core.model.comparison_row import folded
from swingbot.core.model.testbox_state import TIME_USES
from swingbot.core.text.numbers import duration
from swingbot.service.lab import set_testboxes
from swingbot_db import read
from swingbot_jobs.terminal import say_json

reason_option = click.option(
    "--reason", default="by hand", show_default=True, help="Reason; shown with the testbox."
)


@click.group()
def testbox() -> None:
    """List, check, drain and quarantine testboxes.

    \b
    Example:
      swingbot testbox show vm-icount
    """


@testbox.command("list")
@with_session_json
def list_(session: CommandContext, json_: bool) -> None:
    """List all testboxes with their state and problems."""
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
@click.argument("name", shell_complete=TESTBOXES)
@with_session_json
def show(session: CommandContext, name: str, json_: bool) -> None:
    """Show a testbox, its noise, and what its boots cost.

    Noise is given as standard deviations in percent (degrees of freedom).

    \b
    Example:
      swingbot testbox show vm-icount --json
    """
    with session.reading() as conn:
        facts = testbox_here(session.settings)(conn, name)
    if json_:
        say_json(facts)
        return
    click.echo(
        f"{facts['name']}  {facts['state']}"
        + (f": {facts['reason']}" if facts["reason"] else "")
        + (f"  [{facts['label']}]" if facts["label"] else "")
    )
    click.echo(facts["machine"])
    if lacking := facts["lacking_counters"]:
        click.echo(f"perf-stat: {lacking}")
    click.echo(_now(facts))
    if own := facts["facts"].get("kconfig"):
        click.echo(f"its kernels have the configuration {own}, with a tree's fragments on top")
    if nodes := (facts["facts"].get("cluster") or {}).get("nodes"):
        click.echo(f"cluster of {_members(nodes)}; leased and booted together")
    click.echo(
        f"{facts['boots']} boots, {facts['boots_not_up']} of them failed to come up;"
        f" {facts['queued']} queued"
    )
    click.echo(f"{_time_use(facts['time_use'])}\n")
    parts = ("run", "boot", "boot_mean", "pair", "day", "layout")
    records = folded([record | {"testbox": facts["name"]} for record in facts["noise"]])
    rows = [
        (
            *(r["metric"], r["unit_job"], *(_part(r[p]) for p in parts)),
            *(r["boots"], r["wild_boots"], ", ".join(r["aliases"])),
        )
        for r in records
    ]
    click.echo(
        text.table(
            rows,
            (
                "METRIC",
                "UNIT JOB",
                *(p.upper().replace("_", " ") for p in parts),
                "BOOTS",
                "WILD",
                "ALIASES",
            ),
        )
    )
    for key in ("night", "doctor"):
        if facts[key]:
            click.echo("\n" + "\n".join(_night(facts["name"], key, facts[key])))
    if why := facts["aa_record"]["restricted"]:
        click.echo(f"\nmail  {why}")
    if facts["jobs"]:
        jobs = [(r["job"], r["runs"], _cost(r), r["too_long"] or "") for r in facts["jobs"]]
        click.echo("\n" + text.table(jobs, ("JOB", "RUNS", "A BOOT", "REFUSED")) + "\n")
    for anchor in facts["anchors"]:
        click.echo(
            f"anchor {anchor['id']}  {anchor['at']}  {anchor['status']}"
            f"  {anchor['reason'] or 'unchanged'}"
        )
    for why in facts["left_out"]:
        click.echo(f"left out  {why}")
    for alert in facts["alerts"][:5]:
        click.echo(
            f"alert  {alert['began_at']}  {alert['kind']}: {alert['reason']}"
            + (f" (ended {alert['ended_at']})" if alert["ended_at"] else " (ongoing)")
        )
    if facts["events"]:
        changes = [
            (e["at"], f"{e['was']} -> {e['state']}", e["order"], e["why"])
            for e in facts["events"][:10]
        ]
        click.echo("\n" + text.table(changes, ("CHANGED AT", "FROM -> TO", "FOR", "WHY")))


def _cost(row: dict[str, Any]) -> str:
    return f"{'' if row['measured'] else 'about '}{duration(row['seconds'])}"


def _time_use(use: dict[str, Any] | None) -> str:
    if use is None:
        return "no boot yet"
    parts = ", ".join(f"{words} {duration(use[part])}" for part, words in TIME_USES.items())
    overhead = use["overhead"]
    adds = f" (the service adds {100 * (overhead - 1):.0f} % to its boots)" if overhead else ""
    return f"{duration(use['seconds'])} since {use['since']}: {parts}{adds}"


def _members(nodes: dict[str, str]) -> str:
    return ", ".join(f"{role} {node}" for role, node in sorted(nodes.items(), reverse=True))


def _lost(row: dict[str, Any]) -> str:
    return row["now"]["why"] if row["now"]["state"] == "lost" else ""


def _now(facts: dict[str, Any]) -> str:
    """One line: state, since when, reason, controller and failures."""
    now = facts["now"]
    since = f" since {now['since']}" if now["since"] else ""
    why = f": {now['why']}" if now["why"] and now["why"] != facts["reason"] else ""
    lease = (
        f"; driven by {now['holder']}, whose lease is valid until {now['until']}"
        if now["holder"]
        else ""
    )
    failures = f"; consecutive failed attempts: {now['failures']}" if now["failures"] else ""
    return f"{facts['words']}{since}{why}{lease}{failures}"


def _part(spread: dict[str, Any]) -> str | None:
    return None if spread["sd"] is None else f"{100 * spread['sd']:.3g} ({spread['df']:.0f})"


@testbox.command()
@click.argument("name", shell_complete=TESTBOXES)
@reason_option
@with_session_json
def quarantine(session: CommandContext, name: str, reason: str, json_: bool) -> None:
    """Quarantine a testbox whose results cannot be trusted.

    Its orders wait until `swingbot testbox resume`.
    """
    set_testboxes.quarantine(session.lab.transaction, name, reason)
    _moved(
        session,
        name,
        f"testbox {name} is quarantined; run `swingbot testbox resume {name}` when it is repaired",
        json_,
    )


@testbox.command()
@click.argument("name", shell_complete=TESTBOXES)
@reason_option
@with_session_json
def drain(session: CommandContext, name: str, reason: str, json_: bool) -> None:
    """Drain a testbox. Running boots finish; no new ones start until `resume`."""
    set_testboxes.drain(session.lab.transaction, name, reason)
    _moved(
        session,
        name,
        f"testbox {name} is drained; run `swingbot testbox resume {name}` to use it again",
        json_,
    )


@testbox.command(
    epilog="Exit status: 0 all checks passed; 1 a check failed or could not run; 2 unknown testbox."
)
@click.argument("name", shell_complete=TESTBOXES)
@click.option(
    "--here", is_flag=True, help="Check from this host even if another host drives the testbox."
)
@with_session_json
def check(session: CommandContext, name: str, here: bool, json_: bool) -> None:
    """Check the configuration of a testbox.

    Prints a remedy for each failed check. Runs on the host that drives the testbox.

    \b
    Example:
      swingbot testbox check rack7
    """
    with session.reading() as conn:
        read.testbox(conn, name)  # raises NotFound
        driver = None if here else read.controller(conn, name)
    findings = check_testbox.check(name, driver)
    if json_:
        say_json(findings)
    else:
        click.echo(check_testbox.as_text(name, findings))
    if not all(finding["ok"] for finding in findings):
        raise SystemExit(1)


@testbox.command()
@click.argument("name", shell_complete=TESTBOXES)
@with_session_json
def resume(session: CommandContext, name: str, json_: bool) -> None:
    """Return a testbox to service. Earlier boots of its anchor no longer serve as reference."""
    set_testboxes.resume(session.lab.transaction, name)
    _moved(session, name, f"testbox {name} is active", json_)


def night_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument and the options of a command that asks for a night."""
    for option in (
        with_session_json,
        dry_run_option,
        click.option(
            "--again", is_flag=True, help="Begin another night although there is an answer."
        ),
        click.option(
            "--hours",
            type=click.FloatRange(min=0.1, max=72.0),
            default=8.0,
            show_default=True,
            help="Testbox time that the boots may take.",
        ),
        click.argument("name", shell_complete=TESTBOXES),
    ):
        command = option(command)
    return command


@testbox.command()
@night_options
def screen(
    session: CommandContext, name: str, hours: float, again: bool, dry_run: bool, json_: bool
) -> None:
    """Learn in one night of boots what a testbox resolves.

    Prints what it boots and how long that takes, then queues it. Later calls show how far it is
    and, at its end, the answer. `swingbot cancel` ends it.

    \b
    Example:
      swingbot testbox screen rack7 --hours 8
    """
    if not _shown(session, name, "night", again, json_):
        _ask(session, name, "night", hours, dry_run, json_)


@testbox.command()
@night_options
def doctor(
    session: CommandContext, name: str, hours: float, again: bool, dry_run: bool, json_: bool
) -> None:
    """Learn what each item of a testbox's tuning list is worth there.

    Boots with one item off take turns with boots of the whole list. Prints which items it switches
    and how long that takes, then queues it. Later calls show how far it is and, at its end, level,
    spread and boot time without each item, with intervals. `swingbot cancel` ends it.

    \b
    Example:
      swingbot testbox doctor rack7 --dry-run
    """
    if not _shown(session, name, "doctor", again, json_):
        _ask(session, name, "doctor", hours, dry_run, json_)


def _shown(session: CommandContext, name: str, key: str, again: bool, json_: bool) -> bool:
    """Show the last night under this key of the testbox; False if another one is to begin."""
    night = _last_night(session, name, key)
    under_way = night is not None and night["status"] in ("waiting", "running")
    if night is None or (not under_way and (night["status"] != "done" or again)):
        return False
    if json_:
        say_json({key: night, "plan": None})
        return True
    click.echo("\n".join(_night(name, key, night)))
    if under_way:
        with session.reading() as conn:
            eta = read.table(conn, night["id"])["eta_seconds"]
        click.echo(f"over in {duration(eta)}")
    return True


def _ask(
    session: CommandContext, name: str, key: str, hours: float, dry_run: bool, json_: bool
) -> None:
    """Plan a night and, without `dry_run`, queue it."""
    from swingbot.core.plan.tuning_worth import by_reason  # with numpy, as the next two
    from swingbot.service.lab import screen_testbox
    from swingbot.service.lab.doctor_testbox import plan_doctor

    lab, plan_it = session.lab, plan_doctor if key == "doctor" else screen_testbox.plan_night
    with lab.transaction("plan night") as tx:
        asked = plan_it(lab.catalogue.testboxes, tx, name, hours)
    with session.reading() as conn:
        kernel = (asked.build_key, name, asked.kernel.spec)
        first = read.LabQueue.load(conn).left_with("anchor", {kernel: 1})
    plan, skipped = asked.plan, by_reason(asked.skipped)
    boots = plan.arms * plan.boots
    eta = None if first is None else first + (boots - 1) * plan.boot_seconds
    night = None
    if not dry_run:
        screen_testbox.begin_night(lab.transaction, lab.catalogue.testboxes, asked)
        night = _last_night(session, name, key)
    if json_:
        document = {
            "commit": asked.commit,
            "boots": boots,
            "boot_seconds": plan.boot_seconds,
            "seconds": plan.seconds,
            "eta_seconds": eta,
            "full_boot_seconds": plan.full_boot_seconds,
            "runtime_share": plan.runtime_share,
            "unit_jobs": [job.name for job in plan.unit_jobs],
        }
        if key == "doctor":
            document |= {"items": list(asked.items), "skipped": skipped}
        say_json({key: night, "plan": document})
        return
    turns = not asked.items and screen_testbox.two_ways(lab.catalogue.testboxes.present[name])
    shorter = plan.boot_seconds < plan.full_boot_seconds
    click.echo(
        f"{boots} boots of {asked.commit[:12]} on {name}, {duration(plan.boot_seconds)} each:"
        f" {duration(plan.seconds)}"
        + (", in turns by kexec and reboot" if turns else "")
        + (
            f", {plan.boots} with the whole tuning list and {plan.boots} without each of"
            f" {', '.join(asked.items)}"
            if asked.items
            else ""
        )
        + "".join(f"\nnot switched: {why}" for why in skipped)
        + f"\n{len(plan.unit_jobs)} unit jobs"
        + (
            f", runs shortened so that the night holds them: a boot with the full jobs takes"
            f" {duration(plan.full_boot_seconds)}"
            if shorter
            else ", as its anchor runs them"
        )
        + f"\nover in {duration(eta)}"
        + ("" if eta is None else ", after what is queued now; later requests go first")
    )
    if night is not None:
        verb = asked.purpose.value
        click.echo(
            f"{night['id']} is queued: `swingbot testbox {verb} {name}` shows it,"
            f" `swingbot cancel {night['id']}` ends it"
        )


def _last_night(session: CommandContext, name: str, key: str) -> dict[str, Any] | None:
    with session.reading() as conn:
        night: dict[str, Any] | None = read.testbox(conn, name)[key]
    return night


def _night(name: str, key: str, night: dict[str, Any]) -> list[str]:
    """What is known of the last night of a testbox under this key, in lines."""
    head = f"{key} {night['id']} of {night['created_at']}: "
    if night["status"] in ("waiting", "running"):
        return [
            f"{head}{night['status']}, {night['done']} of {night['boots']} boots are over;"
            f" `swingbot cancel {night['id']}` ends it"
        ]
    answer = night["answer"]
    if not answer:
        return [f"{head}{night['status']}: {night['reason'] or 'no reason given'}"]
    lines = [f"{head}{answer['boots']} of {night['boots']} boots came up"]
    if key == "doctor":
        lines += [
            f"  without {item['item']}: {item['problem'] or item['words']}"
            for item in answer["items"]
        ]
        return lines + [f"  not switched: {why}" for why in answer["skipped"]]
    lines += [f"  {metric['unit_job']}: {metric['words']}" for metric in answer["metrics"]]
    if not answer["metrics"]:
        lines.append("  no run gave a headline metric: `swingbot show` names what failed")
    lines += [f"  suspicious: {why}" for why in answer["suspicious"]]
    return lines


def _moved(session: CommandContext, name: str, message: str, json_: bool) -> None:
    """Print the new state of the testbox: as JSON, or as `message`."""
    if json_:
        with session.reading() as conn:
            say_json(read.testbox(conn, name))
    else:
        click.echo(message)
