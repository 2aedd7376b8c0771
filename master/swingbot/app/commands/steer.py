"""`swingbot bisect log`, `replay`, `skip`, `hint`, ...: inspect and steer a bisection."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from swingbot.app import limits
from swingbot.app.commands import text
from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import (
    CommandContext,
    person,
    require_service,
    with_session,
    with_session_json,
)
from swingbot.app.commands.requests import dry_run_option, shown_plan, yes_option
from swingbot.app.documents import Facts
from swingbot.core.bisect.tell import journal, logbook
from swingbot.core.model import ids
from swingbot.core.text.numbers import count
from swingbot.service.bisect import steer as steering
from swingbot.service.ports import RequestError
from swingbot_jobs.terminal import say_json

if TYPE_CHECKING:
    from swingbot.app.remote.http_bisections import HttpBisections
    from swingbot.app.remote.login import Login
    from swingbot.service.ports import Lab

why_option = click.option("--why", metavar="TEXT", help="Reason, recorded in the log.")
undo_option = click.option("--undo", is_flag=True, help="Undo an earlier skip.")


def _number(id_: str) -> int:
    return ids.read(id_, "bisection")[1]


def _lab(session: CommandContext) -> Lab:
    require_service()
    return session.lab


def _elsewhere(login: Login) -> HttpBisections:
    from swingbot.app.remote.checkout import Checkout
    from swingbot.app.remote.http_bisections import HttpBisections

    return HttpBisections(login, Checkout.around(Path.cwd()))


@click.command("log")
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@with_session_json
def log_(session: CommandContext, id_: str, json_: bool) -> None:
    """Print the input and the decision of every step of a bisection.

    Lines that start with # are comments; `replay` reads the others.

    \b
    Example:
      swingbot bisect log b2 > b2.log
    """
    click.echo(session.documents.bisection_log(id_, people=not json_), nl=False)


@click.command()
@click.argument("what", metavar="FILE|ID")
@with_session_json
def replay(session: CommandContext, what: str, json_: bool) -> None:
    """Replay a log and check that every decision is the same.

    The wording of the reasons is not compared. If a decision differs, prints the first difference;
    exit status 1. Decisions of another engine are printed and not checked; exit status 3.

    \b
    Examples:
      swingbot bisect replay b2.log
      swingbot bisect replay b2
    """
    try:
        steps = _steps(session, what)
        done = journal.replay(steps)
    except journal.JournalError as error:
        raise RequestError(f"{what}: {error}") from None
    if json_:
        difference = done.difference and {
            "step": done.difference.step,
            "recorded": done.difference.recorded,
            "now": done.difference.now,
        }
        say_json(
            {
                "steps": done.steps,
                "same": done.difference is None if done.steps else None,
                "difference": difference,
                "engine": journal.ENGINE,
                "recorded_by": sorted({s.engine for s in steps}),
            }
        )
    else:
        click.echo("\n".join(_replayed(done, len(steps))))
    if done.difference is not None:
        sys.exit(1)
    if done.foreign:
        sys.exit(3)


def _replayed(done: journal.Replay, steps: int) -> Iterator[str]:
    if done.foreign:
        yield from map(logbook.decided, done.foreign)
        why = logbook.by_another(done.foreign[-1])
        yield f"{count(len(done.foreign), 'step')} of {steps}: {why}"
    if done.difference is not None:
        yield f"the decision of step {done.difference.step} of {steps} differs"
        yield f"  recorded {done.difference.recorded}"
        yield f"  now      {done.difference.now}"
    elif done.steps:
        yield f"replayed {count(done.steps, 'step')}: every decision is the same"


def _steps(session: CommandContext, what: str) -> list[journal.JournalStep]:
    path = Path(what)
    if what != "-" and not path.is_file():
        recorded = session.documents.bisection_log(what, people=False)
        return logbook.read(recorded.split("\n"))
    if what != "-" and path.stat().st_size > limits.JOURNAL_BYTES:
        raise RequestError(
            f"{what} is larger than {limits.JOURNAL_BYTES >> 30} GiB, the limit for a log"
        )
    content = sys.stdin.buffer.read() if what == "-" else path.read_bytes()
    try:
        return logbook.read(content.decode().split("\n"))
    except UnicodeDecodeError:
        name = "stdin" if what == "-" else what
        raise RequestError(
            f"{name} is not valid UTF-8 text; give the output of `swingbot bisect log ID`"
        ) from None


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@click.argument("commits", nargs=-1, required=True, metavar="COMMIT|A..B...")
@why_option
@undo_option
@with_session
def skip(
    session: CommandContext, id_: str, commits: tuple[str, ...], why: str | None, undo: bool
) -> None:
    """Never measure these commits. They remain suspects, together with their neighbours.

    A..B means the commits after A up to and including B.

    \b
    Example:
      swingbot bisect skip b2 3f2a91c --why 'hangs in the boot of this testbox'
    """
    number = _number(id_)
    if session.login is not None:
        done = _elsewhere(session.login).skip(id_, commits, why, undo=undo)
    else:
        lab = _lab(session)
        who = person()
        done = steering.skip(
            lab.transaction, lab.tools.git, number, commits, who=who, why=why, undo=undo
        )
    effect = "may be measured again" if undo else "will not be measured"
    click.echo(
        f"{id_}: {', '.join(commit[:12] for commit in done)} {effect}, from the next step on"
    )


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@click.argument("commits", nargs=-1, required=True, metavar="COMMIT|A..B...")
@click.option(
    "--factor",
    type=float,
    default=10.0,
    show_default=True,
    help="Factor on the prior probability; below 1: less likely; 1: undo a hint.",
)
@why_option
@with_session
def hint(
    session: CommandContext, id_: str, commits: tuple[str, ...], factor: float, why: str | None
) -> None:
    """Mark commits as more likely culprits (or less likely, with a factor below 1).

    A correct hint of 10 saves about three boots if the signal is clear; a wrong one costs as many.
    A hint never decides the result, because boots outweigh it.

    \b
    Example:
      swingbot bisect hint b2 3f2a91c --factor 10 --why 'changes the batch size'
    """
    number = _number(id_)
    if session.login is not None:
        done = _elsewhere(session.login).hint(id_, commits, factor, why)
    else:
        lab = _lab(session)
        who = person()
        done = steering.hint(
            lab.transaction, lab.tools.git, number, commits, factor, who=who, why=why
        )
    click.echo(
        f"{id_}: {', '.join(commit[:12] for commit in done)} weighted {factor:g} times as likely,"
        " from the next step on"
    )


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@click.option(
    "--boots", type=int, required=True, metavar="N", help="Number of additional boots allowed."
)
@why_option
@dry_run_option
@yes_option
@with_session_json
def resume(session: CommandContext, /, id_: str, boots: int, **given: Any) -> None:
    """Resume a bisection that ended without an answer. All observations still count.

    Prints the plan and its cost first; on a terminal it asks for confirmation.

    \b
    Example:
      swingbot bisect resume b2 --boots 100
    """
    _number(id_)

    def go_on(plan: Facts, lines: list[str]) -> bool:
        return shown_plan(plan, lines, given)

    if session.login is not None:
        asked = _elsewhere(session.login).resume(id_, boots, given["why"], go_on)
    else:
        lab = _lab(session)
        from swingbot.app.database_bisections import resume as resume_here
        from swingbot.service.bisect.resume import ResumeRequest

        request = ResumeRequest(id=id_, boots=boots, by=person(), why=given["why"])
        asked = resume_here(lab, request, go_on)
    if asked is not None and given["json_"]:
        say_json(asked.plan)
    elif asked is not None:
        click.echo(
            f"{id_} is running again with a limit of {asked.plan['most_boots']} boots in total "
            f" (swingbot wait {id_})"
        )


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@with_session_json
def explain(session: CommandContext, id_: str, json_: bool) -> None:
    """Explain the current suspects and why, the next step, and what would change the result.

    \b
    Example:
      swingbot bisect explain b2
    """
    facts = session.documents.explanation(id_)
    if json_:
        say_json(facts)
    else:
        click.echo("\n".join(facts["text"]))


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of("bisections"))
@click.option("--ascii", "ascii_", is_flag=True, help="Use only ASCII characters.")
@click.option(
    "--all", "everything", is_flag=True, help="Show every commit, including unmeasured ones."
)
@click.option(
    "--width",
    type=click.IntRange(48, 500),
    help="Width in columns (default: width of the terminal).",
)
@with_session
def visualize(
    session: CommandContext, id_: str, ascii_: bool, everything: bool, width: int | None
) -> None:
    """Plot the probability of each commit, with its boots, mean, deviation, skips and hints.

    \b
    Example:
      swingbot bisect visualize b2 --width 120
    """
    _number(id_)
    facts = session.documents.document(id_)
    click.echo(text.bisection_head(facts))
    click.echo(
        text.bisection_picture(
            facts,
            width=width or shutil.get_terminal_size((100, 24)).columns,
            ascii=ascii_ or None,
            everything=everything,
        )
    )
