"""`swingbot bisect run`: what `git bisect run` would be for noisy numbers. Needs no service, no database and no settings."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.app.commands.context import as_json


@click.command(short_help="Find the commit behind a change of a number that any CMD prints.")
@click.argument("range_", metavar="GOOD..BAD")
@click.argument("command", metavar="-- CMD...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=".",
    help="Repository that holds the range; default: here.",
)
@click.option(
    "--checkout",
    is_flag=True,
    help="Start CMD in a work tree of its own with the commit checked out; yours is not touched.",
)
@click.option(
    "--lower-is-better",
    is_flag=True,
    help="Numbers are times or costs. Only for words: both directions are found.",
)
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Take numbers only from lines where this is found: its first group, or all of it.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End a CMD that takes longer; 0: never. Default: 10 times the longest boot.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="CMDs at once; only if they do not disturb each other.",
)
@click.option(
    "--min-effect",
    type=click.FloatRange(0.001, 1000),
    default=1.0,
    show_default=True,
    metavar="PCT",
    help="Smallest change worth finding.",
)
@click.option(
    "--noise",
    type=click.FloatRange(0, 100),
    metavar="PCT",
    help="Spread between boots if you know it; default: learnt from the boots.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.99,
    show_default=True,
    metavar="P",
    help="Name a commit at this probability.",
)
@click.option(
    "--boots-max",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    metavar="N",
    help="Boots to spend at most.",
)
@click.option("--first-parent", is_flag=True, help="Do not look into merged branches.")
@click.option(
    "--paths", multiple=True, metavar="GLOB", help="Only commits that touch these can be to blame."
)
@click.option(
    "--layouts",
    is_flag=True,
    help="CMD builds a commit in the memory layout that SWINGBOT_LAYOUT (0, 1, ...) names; then each step is checked in others.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the journal is kept; default: inside the .git directory.",
)
@click.option("--restart", is_flag=True, help="Forget an earlier bisection of this range.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--exit-code", is_flag=True, help="3 if something got worse, 4 if the answer is not clear."
)
@as_json
def run(
    range_: str,
    command: tuple[str, ...],
    json_: bool,
    exit_code: bool,
    quiet: bool,
    **options: object,
) -> None:
    """Find the commit between GOOD and BAD that changed the numbers that CMD prints, however noisy they are.

    CMD is started once a boot with SWINGBOT_COMMIT set and prints one number a line, one line a run. Exit status 125: this commit cannot
    be tested; 126, 127 and 128 or more: stop; any other but 0: this boot failed. The same command goes on after an interruption.

    \b
    Example:
      swingbot bisect run v1.0..main --checkout -- sh -c 'make -s >&2 && ./bench --runs 3'
    """
    # scipy takes its time; other commands do not wait for it
    from swingbot.app.bisect_run.session import Invocation, call

    raise SystemExit(
        call(
            Invocation(
                range_=range_,
                command=command,
                json_=json_,
                exit_code=exit_code,
                quiet=quiet,
                **options,  # type: ignore[arg-type]
            )
        )
    )
