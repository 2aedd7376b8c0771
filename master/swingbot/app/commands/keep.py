"""`swingbot backup`, `restore`, `retention`: back up, restore and prune the service's data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.app.keep.backup_directory import BackupDirectory
from swingbot.app.keep.progress import amount
from swingbot.app.settings import with_place
from swingbot.core.keep.generation import BadBackup
from swingbot.core.keep.retention import ClassTotal

P = ParamSpec("P")
R = TypeVar("R")


def with_keep_errors(run: Callable[P, R]) -> Callable[P, R]:
    """Turn errors of backup and restore into one sentence and an exit status, like `guarded`."""

    @functools.wraps(run)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        from swingbot.app.keep.backup import KeepError
        from swingbot.app.keep.process import DidNotStart
        from swingbot.app.postgres import PostgresError
        from swingbot_db.dump import DumpError
        from swingbot_db.migrate import SchemaError

        try:
            return run(*args, **kwargs)
        except BadBackup as error:
            click.echo(f"swingbot: {error}", err=True)
            raise SystemExit(2) from None
        except (KeepError, DumpError, SchemaError, DidNotStart, PostgresError) as error:
            click.echo(f"swingbot: {error}", err=True)
            raise SystemExit(1) from None

    return wrapper


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    default=7,
    show_default=True,
    help="Number of generations to keep; older ones are deleted once this one is complete.",
)
@click.option(
    "--link",
    is_flag=True,
    help="Hard-link raw results instead of copying: fast, but no protection against disk failure.",
)
@click.option(
    "--verify",
    "verify_",
    is_flag=True,
    help="Only verify the latest generation, or --generation: read it and compare every sha256.",
)
@click.option("--generation", metavar="NAME", help="Generation to verify.")
@click.option("--list", "list_", is_flag=True, help="Only list the generations in DIR.")
@as_json
@pass_session
@guarded
@with_keep_errors
def backup(
    session: CommandContext,
    directory: Path,
    keep: int,
    link: bool,
    verify_: bool,
    generation: str | None,
    list_: bool,
    json_: bool,
) -> None:
    """Copy database, raw results, git mirror and mails to DIR while the service runs.

    Each call creates a generation; raw results, mails and git objects are copied only once. Secrets
    are not copied; docs/operations.md explains why.

    \b
    Examples:
      swingbot backup /mnt/backup/swingbot
      swingbot backup /mnt/backup/swingbot --verify
    """
    backups = BackupDirectory(directory)
    if list_:
        _list(backups, json_)
    elif verify_:
        _verify(backups, generation, json_)
    elif generation is not None:
        raise BadBackup(
            "--generation requires --verify; a new generation is named after the current time"
        )
    else:
        from swingbot.app.keep.backup import backup as make

        name, manifest = make(
            session.settings,
            session.engine,
            directory,
            _quiet if json_ else click.echo,
            keep=keep,
            link=link,
        )
        if json_:
            say_json(
                {
                    "generation": name,
                    "taken_at": manifest.taken_at,
                    "artifacts": manifest.artifacts,
                    "bytes": manifest.artifact_bytes,
                }
            )
        else:
            click.echo(
                f"generation {name} is complete; it does not contain the settings file and"
                f" secrets ({', '.join(manifest.secrets) or 'none'}): store them elsewhere"
            )


def _list(backups: BackupDirectory, json_: bool) -> None:
    backups.check()
    generations = [(name, backups.manifest(name)) for name in backups.names()]
    if json_:
        say_json(
            [
                {
                    "generation": name,
                    "taken_at": manifest.taken_at,
                    "revision": manifest.revision,
                    "artifacts": manifest.artifacts,
                }
                for name, manifest in generations
            ]
        )
        return
    for name, manifest in generations:
        rows = sum(table.rows for table in manifest.tables)
        click.echo(
            f"{name}  schema {manifest.revision}  {rows} rows  {manifest.artifacts} artifacts"
            f" ({amount(manifest.artifact_bytes)})  {len(manifest.letters)} mails "
            f" {len(manifest.refs)} refs"
        )


def _verify(backups: BackupDirectory, generation: str | None, json_: bool) -> None:
    from swingbot.app.keep.verify import verify

    name = backups.choose(generation)
    problems = verify(backups, name, _quiet if json_ else click.echo)
    if json_:
        say_json({"generation": name, "problems": problems})
    else:
        for problem in problems:
            click.echo(f"  {problem}")
        click.echo(
            f"generation {name}: {'complete' if not problems else f'{len(problems)} problems'}"
        )
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
@click.option("--generation", metavar="NAME", help="Generation to restore (default: the latest).")
@click.option("--unchecked", is_flag=True, help="Skip the comparison of every sha256.")
@as_json
@pass_session
@guarded
@with_keep_errors
def restore(
    session: CommandContext,
    directory: Path,
    state: Path,
    generation: str | None,
    unchecked: bool,
    json_: bool,
) -> None:
    """Restore a backup into a new state directory and a new database.

    Starts nothing. Mail stays stopped until `swingbot report resume`.

    \b
    Examples:
      swingbot restore /mnt/backup/swingbot --state /srv/swingbot
      swingbot up --state /srv/swingbot
    """
    from swingbot.app.keep.restore import restore as make

    done = make(
        with_place(session.settings, state, None),
        directory,
        generation,
        _quiet if json_ else click.echo,
        check=not unchecked,
    )
    if json_:
        say_json(done)
        return
    changed = done["changed"]
    click.echo(
        f"restored generation {done['generation']}: {changed['attempts']} running attempts will be"
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
@as_json
@pass_session
@guarded
@with_keep_errors
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
