"""`swingbot-worker walls`: test the walls on this host."""

from __future__ import annotations

import sys

import click

from swingbot_jobs import codec
from swingbot_jobs.terminal import fail, say_json
from swingbot_worker import InfraError
from swingbot_worker.walls.limits import MIB, limits_of
from swingbot_worker.walls.probe import missing, probe
from swingbot_worker.walls.trials import trials

EXAMPLE = """\b
Example:
  swingbot-worker walls

Exit status: 0 all walls work, 1 some do not, 2 invalid usage or setting."""


@click.command("walls", epilog=EXAMPLE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Test the walls around kernel builds on this host.

    For each wall, prints whether it works, and the reason if it does not. Then tries each limit by
    its effect, with small limits: allocates, fills, forks and connects, and prints what happened.
    """
    try:
        result, limits = probe(), limits_of()
        tried = [] if result.sandbox is None else trials(result.sandbox)
    except InfraError as error:
        fail(2, str(error))
    lacking = missing(result.walls)
    failed = bool(lacking) or not all(trial.held for trial in tried)
    if result.sandbox is not None:
        limits = result.sandbox.limits
    facts = {
        "walls": codec.plain(result.walls),
        "trials": codec.plain(tried),
        "complete": result.complete and not failed,
        "builds": ["trusted", "untrusted"] if not failed else ["trusted"],
        "limits": {
            "memory_mb": limits.memory // MIB,
            "disk_mb": limits.disk // MIB,
            "processes": limits.processes,
            "log_mb": limits.log // MIB,
        },
    }
    if as_json:
        say_json(facts)
    else:
        for wall in result.walls:
            click.echo(f"{'stands' if wall.stands else 'MISSING':<8} {wall.name:<10} {wall.why}")
        for trial in tried:
            word = "held" if trial.held else "FAILED"
            click.echo(f"{word:<8} {trial.wall:<10} a program {trial.attempt}: {trial.saw}")
        click.echo(
            f"limits   {limits.memory // MIB} MB of memory, {limits.disk // MIB} MB of disk, "
            f"{limits.processes} processes, {limits.log // MIB} MB of log"
        )
        click.echo(
            "This host builds kernels of any trust level."
            if not failed
            else "This host builds only trusted kernels, behind the walls that stand."
            if result.sandbox is not None
            else "This host builds only trusted kernels, without walls."
        )
    sys.exit(1 if failed else 0)
