"""`swingbot backup`, `restore`, `retention`: copies of what must not be lost, the way back, and what may go."""

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


def kept(run: Callable[P, R]) -> Callable[P, R]:
    """Errors of this family as one sentence and an exit status, beside those that every command knows."""

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
    help="Generations that stay; older ones go when this one is whole.",
)
@click.option(
    "--link",
    is_flag=True,
    help="Link raw results instead of copying them: quick, but no help when the disk breaks.",
)
@click.option(
    "--verify",
    "verify_",
    is_flag=True,
    help="Make nothing: read the latest generation, or --generation, again and compare every sha256.",
)
@click.option("--generation", metavar="NAME", help="With --verify: which one.")
@click.option("--list", "list_", is_flag=True, help="Make nothing: list the generations of DIR.")
@as_json
@pass_session
@guarded
@kept
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
    """Copy database, raw results, git mirror and mails to DIR, while the service runs.

    Each call makes a generation; raw results, mails and git objects are copied once. Secrets are not copied: docs/operations.md says why.

    \b
    Example:
      swingbot backup /mnt/backup/swingbot
      swingbot backup /mnt/backup/swingbot --verify
    """
    place = BackupDirectory(directory)
    if list_:
        _list(place, json_)
    elif verify_:
        _verify(place, generation, json_)
    elif generation is not None:
        raise BadBackup(
            "--generation goes with --verify; a new generation gets its name from the clock"
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
                f"generation {name} is whole; not in it, keep them elsewhere: the settings file, and {', '.join(manifest.secrets) or 'no secret'}"
            )


def _list(place: BackupDirectory, json_: bool) -> None:
    place.check()
    found = [(name, place.manifest(name)) for name in place.names()]
    if json_:
        say_json(
            [
                {
                    "generation": name,
                    "taken_at": one.taken_at,
                    "revision": one.revision,
                    "artifacts": one.artifacts,
                }
                for name, one in found
            ]
        )
        return
    for name, one in found:
        rows = sum(table.rows for table in one.tables)
        files = f"{one.artifacts} artifacts ({amount(one.artifact_bytes)})  {len(one.letters)} mails  {len(one.refs)} refs"
        click.echo(f"{name}  schema {one.revision}  {rows} rows  {files}")


def _verify(place: BackupDirectory, generation: str | None, json_: bool) -> None:
    from swingbot.app.keep.verify import verify

    name = place.choose(generation)
    problems = verify(place, name, _quiet if json_ else click.echo)
    if json_:
        say_json({"generation": name, "problems": problems})
    else:
        for problem in problems:
            click.echo(f"  {problem}")
        click.echo(f"generation {name}: {'whole' if not problems else f'{len(problems)} problems'}")
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
    help="The new state directory: empty, or not there yet.",
)
@click.option("--generation", metavar="NAME", help="Which one; default: the latest.")
@click.option("--unchecked", is_flag=True, help="Do not compare every sha256 first.")
@as_json
@pass_session
@guarded
@kept
def restore(
    session: CommandContext,
    directory: Path,
    state: Path,
    generation: str | None,
    unchecked: bool,
    json_: bool,
) -> None:
    """Make a new state directory and a new database out of a backup. Starts nothing; mail is stopped until someone has looked.

    \b
    Example:
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
        f"restored generation {done['generation']}: {changed['attempts']} attempts under way are made again;"
        f" {changed['mails in doubt']} mails may have left and {changed['mails held']} are held"
    )
    click.echo(
        "mail is stopped: look which mails left after the backup, then `swingbot report resume`"
    )


@click.command()
@click.option(
    "--dry-run/--prune", default=True, show_default=True, help="Show what would go, or let it go."
)
@as_json
@pass_session
@guarded
@kept
def retention(session: CommandContext, dry_run: bool, json_: bool) -> None:
    """Show raw results by class, what may go by the rules of section [retention], and what the rest stays for.

    What an open request needs and all that stands behind an incident stays, whatever its age. Of a file that goes a note is left,
    so that its page says when and why.

    \b
    Example:
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
        or "there are no raw results yet"
    )
    for kind, total in done.totals.items():
        for why, files in sorted(total.stays.items(), key=lambda item: -item[1]):
            click.echo(f"  {kind}: {files} stay, {why}")
    going = sum(total.goes_size for total in done.totals.values())
    click.echo(f"{done.pruned_before} files were pruned before")
    click.echo(
        f"would free {amount(going)}; `swingbot retention --prune` does it"
        if dry_run
        else f"freed {amount(done.freed)}"
    )


_HEADINGS = ("CLASS", "KEPT", "FILES", "SIZE", "OLDEST", "GO", "SIZE THAT GOES")


def _class_row(kind: str, total: ClassTotal) -> tuple[str, ...]:
    rule = f"{total.days:g} days" if total.days > 0 else "for ever"
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
