"""`swingbot backup`, `restore`, `retention`, `forget`: back up, restore and remove data."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, somebody, with_session_json
from swingbot.app.keep.progress import amount
from swingbot.app.settings import with_place
from swingbot.core.keep.retention import ClassTotal
from swingbot.core.text.numbers import count
from swingbot_jobs.terminal import say_json


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--verify",
    "verify_",
    is_flag=True,
    help="Only verify the backup in DIR: read it and compare every sha256.",
)
@with_session_json
def backup(session: CommandContext, directory: Path, verify_: bool, json_: bool) -> None:
    """Copy database, raw results, git mirror and mails to the new DIR while the service runs.

    Secrets are not copied; docs/operations.md explains why, and how to keep many backups in little
    space.

    \b
    Examples:
      swingbot backup /mnt/backup/swingbot-monday
      swingbot backup /mnt/backup/swingbot-monday --verify
    """
    if verify_:
        _verify(directory, json_)
        return
    from swingbot.app.keep.backup import backup as make

    manifest = make(session.settings, session.engine, directory, _quiet if json_ else click.echo)
    if json_:
        say_json({"taken_at": manifest.taken_at, "files": manifest.files, "bytes": manifest.size})
    else:
        click.echo(
            f"the backup is complete: {manifest.files} files, {amount(manifest.size)}; it does not"
            f" contain the settings file and secrets ({', '.join(manifest.secrets) or 'none'}):"
            " store them elsewhere"
        )


def _verify(directory: Path, json_: bool) -> None:
    from swingbot.app.keep.verify import verify

    problems = verify(directory, _quiet if json_ else click.echo)
    if json_:
        say_json({"problems": problems})
    else:
        for problem in problems:
            click.echo(f"  {problem}")
        click.echo(f"{directory}: {count(len(problems), 'problem') if problems else 'intact'}")
    if problems:
        raise SystemExit(1)


def _quiet(line: str) -> None:
    pass


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR"
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="New state directory; must be empty or not exist.",
)
@click.option("--unchecked", is_flag=True, help="Skip the comparison of every sha256.")
@with_session_json
def restore(
    session: CommandContext,
    directory: Path,
    state: Path,
    unchecked: bool,
    json_: bool,
) -> None:
    """Restore a backup into a new state directory and a new database.

    Starts nothing. Mail stays stopped until `swingbot report resume`.

    \b
    Examples:
      swingbot restore /mnt/backup/swingbot-monday --state /srv/swingbot
      swingbot up --state /srv/swingbot
    """
    from swingbot.app.keep.restore import restore as make

    done = make(
        with_place(session.settings, state, None),
        directory,
        _quiet if json_ else click.echo,
        check=not unchecked,
    )
    if json_:
        say_json(done)
        return
    changed = done["changed"]
    click.echo(
        f"restored the backup of {done['taken_at']}: {changed['attempts']} running attempts will be"
        f" repeated; {changed['mails in doubt']} mails may have been sent,"
        f" {changed['mails held']} are held"
    )
    click.echo(
        "mail is stopped: check which mails were sent after the backup, then run"
        " `swingbot report resume`"
    )


@click.command()
@click.option(
    "--dry-run/--prune", default=True, show_default=True, help="Show or delete expired files."
)
@with_session_json
def retention(session: CommandContext, dry_run: bool, json_: bool) -> None:
    """Show raw results by class, which of them have expired, and why the others are kept.

    Section [retention] of the settings defines the rules. Files needed by an open request or an
    incident are kept regardless of age. A deleted file leaves a note, so that its page shows when
    and why it was deleted.

    \b
    Examples:
      swingbot retention
      swingbot retention --prune
    """
    from swingbot.app.keep.retain import retain

    done = retain(session.settings, session.engine, datetime.now(UTC), really=not dry_run)
    if json_:
        classes = {kind: total.to_json() for kind, total in done.totals.items()}
        say_json(
            {
                "dry_run": dry_run,
                "classes": classes,
                "names": done.names,
                "pruned_before": done.pruned_before,
                "freed_bytes": done.freed,
            }
        )
        return
    click.echo(
        text.table(
            [_class_row(kind, total) for kind, total in done.totals.items() if total.files],
            _HEADINGS,
        )
        or "no raw results yet"
    )
    for kind, total in done.totals.items():
        for why, files in sorted(total.stays.items(), key=lambda item: -item[1]):
            click.echo(f"  {kind}: {files} kept, {why}")
    expired = sum(total.goes_size for total in done.totals.values())
    click.echo(f"{count(done.names, 'name')} of metrics expired")
    click.echo(f"{done.pruned_before} files were deleted earlier")
    click.echo(
        f"would free {amount(expired)}; run `swingbot retention --prune` to delete"
        if dry_run
        else f"freed {amount(done.freed)}"
    )


_HEADINGS = ("CLASS", "KEPT FOR", "FILES", "SIZE", "OLDEST", "EXPIRED", "EXPIRED SIZE")


def _class_row(kind: str, total: ClassTotal) -> tuple[str, ...]:
    rule = f"{total.days:g} days" if total.days > 0 else "forever"
    oldest = "" if total.oldest is None else f"{total.oldest:%Y-%m-%d}"
    return (
        kind,
        rule,
        str(total.files),
        amount(total.size),
        oldest,
        str(total.goes),
        amount(total.goes_size),
    )


@click.command("forget")
@click.argument("id_", metavar="ID")
@click.option(
    "--yes", is_flag=True, help="Remove it. Without this option, only show what would be removed."
)
@click.option(
    "--force",
    is_flag=True,
    help="Also remove what a report, an incident or several requests count; they will say so.",
)
@click.option("--reason", default="", help="Reason, shown wherever the data was used.")
@with_session_json
def forget_(
    session: CommandContext, id_: str, yes: bool, force: bool, reason: str, json_: bool
) -> None:
    """Remove everything that a boot (x80) or a kernel (v3) caused: names of metrics, samples, rows,
    files and git objects.

    Connects as the user of db.owner_url. `swingbot token log` keeps a line about it.

    \b
    Examples:
      swingbot forget x80
      swingbot forget x80 --yes --reason "its monitor made up names"
    """
    from swingbot.app.database import owner_url
    from swingbot.app.keep.forget import forget
    from swingbot.app.wiring import connect

    engine = connect(session.settings, owner_url(session.settings))
    done = forget(session.settings, engine, id_, somebody(), reason, really=yes, force=force)
    plan = done.plan
    if json_:
        say_json(
            {
                "id": plan.id,
                "dry_run": not yes,
                "counts": plan.counts,
                "open": plan.open,
                "counted_by": plan.counted_by,
                "shown_on": plan.shown_on,
                "freed_bytes": done.freed,
                "objects": done.objects,
            }
        )
        return
    click.echo(f"{plan.id}: " + ", ".join(f"{n} {name}" for name, n in plan.counts.items()))
    for what, named in (
        ("under way because of it, cancel first", plan.open),
        ("counted by, needs --force", plan.counted_by),
        ("shown as removed on", plan.shown_on),
    ):
        if named:
            click.echo(f"  {what}: {', '.join(named)}")
    click.echo(
        f"removed; freed {amount(done.freed)} and {count(done.objects, 'git object')}"
        if yes
        else f"run `swingbot forget {plan.id} --yes` to remove it"
    )
