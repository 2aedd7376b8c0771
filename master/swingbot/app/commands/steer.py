"""`swingbot bisect log | replay | skip | hint | resume | explain | visualize`: reading and steering a bisection."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.core.bisect import explain_text, journal, logbook
from swingbot.core.model import ids
from swingbot.service.bisect import steer as steering
from swingbot.service.bisect.explain import explain_bisection
from swingbot.service.bisect.journal import engine
from swingbot.service.ports import RequestError
from swingbot_db import read

_LARGEST_LOG: Final = 1 << 30
why_option = click.option("--why", metavar="TEXT", help="The reason, for whoever reads the log.")
undo_option = click.option("--undo", is_flag=True, help="Take the skip back.")


def person() -> str:
    """Who gives the advice: SWINGBOT_USER, or the name this host knows them by."""
    try:
        name = os.environ.get("SWINGBOT_USER") or getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return "".join(c for c in name if c.isprintable())[:80] or "somebody"


def _number(id_: str) -> int:
    return ids.read(id_, "bisection")[1]


@click.command("log")
@click.argument("id_", metavar="ID")
@as_json
@pass_session
@guarded
def log_(session: CommandContext, id_: str, json_: bool) -> None:
    """Print all that a bisection was shown and decided, step by step. Lines with # are for people; `replay` reads the others.

    \b
    Example:
      swingbot bisect log b2 > b2.log
    """
    click.echo(
        logbook.written(steering.logbook(session.lab, _number(id_)), people=not json_), nl=False
    )


@click.command()
@click.argument("what", metavar="FILE|ID")
@as_json
@pass_session
@guarded
def replay(session: CommandContext, what: str, json_: bool) -> None:
    """Decide every step of a log again: are the decisions the same, byte for byte? Exit status 1 and the first difference if not.

    \b
    Example:
      swingbot bisect replay b2.log
      swingbot bisect replay b2
    """
    try:
        steps = _steps(session, what)
        done = journal.replay(steps)
    except journal.JournalError as error:
        raise RequestError(f"{what}: {error}") from None
    others = sorted({entry.engine for entry in steps} - {engine()})
    if json_:
        found = done.difference and {
            "step": done.difference.step,
            "recorded": done.difference.recorded,
            "now": done.difference.now,
        }
        say_json(
            {
                "steps": done.steps,
                "same": done.difference is None,
                "difference": found,
                "engine": engine(),
                "recorded_by": sorted({s.engine for s in steps}),
            }
        )
    elif done.difference is None:
        click.echo(f"{done.steps} steps, decided again: the same, byte for byte")
    else:
        click.echo(
            f"step {done.difference.step} of {len(steps)} is decided differently\n  recorded {done.difference.recorded}\n  now      {done.difference.now}"
        )
    if others and not json_:
        click.echo(f"  (recorded by engine {', '.join(others)}; this is {engine()})")
    if done.difference is not None:
        sys.exit(1)


def _steps(session: CommandContext, what: str) -> list[journal.JournalStep]:
    path = Path(what)
    if what != "-" and not path.is_file():
        steps = list(steering.logbook(session.lab, _number(what)).steps)
        if not steps:
            raise RequestError(
                f"{what} has made no step yet, or it is older than journals: there is nothing to decide again"
            )
        return steps
    if what != "-" and path.stat().st_size > _LARGEST_LOG:
        raise RequestError(f"{what} is larger than any log")
    content = sys.stdin.buffer.read() if what == "-" else path.read_bytes()
    try:
        return logbook.read(content.decode().split("\n"))
    except UnicodeDecodeError:
        raise RequestError(
            f"{what}: not text; give what `swingbot bisect log ID` printed"
        ) from None


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("commits", nargs=-1, required=True, metavar="COMMIT|A..B...")
@why_option
@undo_option
@pass_session
@guarded
def skip(
    session: CommandContext, id_: str, commits: tuple[str, ...], why: str | None, undo: bool
) -> None:
    """Never measure these commits. They stay among the suspects, together with their neighbours.

    A..B stands for the commits after A up to and with B.

    \b
    Example:
      swingbot bisect skip b2 3f2a91c --why 'hangs in the boot of this box'
    """
    done = steering.skip(session.lab, _number(id_), commits, who=person(), why=why, undo=undo)
    word = "will be measured again where that tells something" if undo else "will not be measured"
    click.echo(f"{id_}: {', '.join(commit[:12] for commit in done)} {word}, from the next step on")


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("commits", nargs=-1, required=True, metavar="COMMIT|A..B...")
@click.option(
    "--factor",
    type=float,
    default=10.0,
    show_default=True,
    help="Times as likely as before any boot; below 1 less likely, 1 takes a hint back.",
)
@why_option
@pass_session
@guarded
def hint(
    session: CommandContext, id_: str, commits: tuple[str, ...], factor: float, why: str | None
) -> None:
    """Say that you suspect these commits (or, with a factor below 1, that you do not).

    A right hint of 10 saves about three boots of a good signal; a wrong one costs as many. It never decides: boots outweigh it.

    \b
    Example:
      swingbot bisect hint b2 3f2a91c --factor 10 --why 'changes the batch size'
    """
    done = steering.hint(session.lab, _number(id_), commits, factor, who=person(), why=why)
    click.echo(
        f"{id_}: {', '.join(commit[:12] for commit in done)} counts {factor:g} times as likely, from the next step on"
    )


@click.command()
@click.argument("id_", metavar="ID")
@click.option(
    "--boots", type=int, required=True, metavar="N", help="How many more boots it may spend."
)
@why_option
@pass_session
@guarded
def resume(session: CommandContext, id_: str, boots: int, why: str | None) -> None:
    """Go on with a bisection that ended without an answer: everything observed still counts.

    \b
    Example:
      swingbot bisect resume b2 --boots 100
    """
    allowed = steering.resume(session.lab, _number(id_), boots, who=person(), why=why)
    click.echo(
        f"{id_} is running again; it may spend up to {allowed} boots in all  (swingbot wait {id_})"
    )


@click.command()
@click.argument("id_", metavar="ID")
@as_json
@pass_session
@guarded
def explain(session: CommandContext, id_: str, json_: bool) -> None:
    """Say in words what is believed and why, what comes next, and what would change the mind.

    \b
    Example:
      swingbot bisect explain b2
    """
    found = explain_bisection(session.lab, _number(id_))
    told = explain_text.told(
        found.explanation, found.state, found.commits, found.unit, text.seconds
    )
    if json_:
        say_json(
            {
                "id": id_,
                "text": told,
                **journal.plain(found.explanation),
                "action": journal.decision(found.explanation.action),
            }
        )
    else:
        click.echo("\n".join(told))


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--ascii", "ascii_", is_flag=True, help="Only characters of ASCII.")
@click.option(
    "--all", "everything", is_flag=True, help="A line for every commit, also where nobody looked."
)
@click.option("--width", type=click.IntRange(48, 500), help="Columns; default: the terminal's.")
@pass_session
@guarded
def visualize(
    session: CommandContext, id_: str, ascii_: bool, everything: bool, width: int | None
) -> None:
    """Draw the probability of each commit, with its boots, their mean and spread, skips and hints.

    \b
    Example:
      swingbot bisect visualize b2 --width 120
    """
    with session.reading() as conn:
        facts = read.bisection(conn, _number(id_))
    click.echo(text.bisection_head(facts))
    click.echo(
        text.bisection_picture(
            facts,
            width=width or shutil.get_terminal_size((100, 24)).columns,
            ascii=ascii_ or None,
            everything=everything,
        )
    )
