"""`swingbot bisect run`: `git bisect run` for noisy numbers, without service or database."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.app.commands.context import as_json


@click.command(short_help="Find the commit that changed the number printed by a command.")
@click.argument("range_", metavar="GOOD..BAD")
@click.argument("command", metavar="-- CMD...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=".",
    help="Repository that contains the range (default: current directory).",
)
@click.option(
    "--checkout",
    is_flag=True,
    help="Run CMD in a separate work tree with the commit checked out; yours stays untouched.",
)
@click.option(
    "--lower-is-better",
    is_flag=True,
    help="Numbers are times or costs. Affects wording only; both directions are detected.",
)
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Take the number from lines that match: the first group, or the whole match.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Timeout of CMD; 0: none (default: 10 times the longest boot).",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of CMDs to run in parallel; they must not disturb each other.",
)
@click.option(
    "--min-effect",
    type=click.FloatRange(0.001, 1000),
    default=1.0,
    show_default=True,
    metavar="PCT",
    help="Smallest change of interest, in percent.",
)
@click.option(
    "--noise",
    type=click.FloatRange(0, 100),
    metavar="PCT",
    help="Known standard deviation between boots, in percent (default: estimated).",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.99,
    show_default=True,
    metavar="P",
    help="Probability required to name a commit.",
)
@click.option(
    "--boots-max",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    metavar="N",
    help="Maximum number of boots.",
)
@click.option("--first-parent", is_flag=True, help="Do not search merged branches.")
@click.option(
    "--paths",
    multiple=True,
    metavar="GLOB",
    help="Prefer commits that touch these files; may be repeated.",
)
@click.option(
    "--layouts",
    type=click.Choice(("program", "kernel", "cmd")),
    help="Check each step in other code layouts: of programs or of the kernel that CMD links"
    " (--checkout), or as CMD builds them by SWINGBOT_LAYOUT (0, 1, ...).",
)
@click.option(
    "--image",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that CMD builds and measures: a layout counts only where it is another file.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Directory of the journal (default: inside .git).",
)
@click.option("--restart", is_flag=True, help="Discard an earlier bisection of this range.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 3 if a metric got worse, 4 if the answer is unclear.",
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
    """Find the commit between GOOD and BAD that changed the numbers printed by CMD, even if noisy.

    CMD runs once per boot with SWINGBOT_COMMIT set, and prints one number per run, each on its own
    line. Exit status 125: this commit cannot be tested; 126 and above: stop; any other except 0:
    this boot failed. After an interruption, run the same command to resume.

    \b
    Example:
      swingbot bisect run v1.0..main --checkout -- sh -c 'make -s >&2 && ./bench --runs 3'
    """
    # Importing scipy is slow; only this command pays for it.
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
