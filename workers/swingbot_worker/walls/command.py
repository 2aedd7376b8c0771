"""`swingbot-worker walls`: which walls stand on this host."""

from __future__ import annotations

import json
import sys

import click

from swingbot_worker import InfraError
from swingbot_worker.walls.limits import MIB, limits_of
from swingbot_worker.walls.probe import missing, probe

EXAMPLE = """\b
Example:
  swingbot-worker walls

Exit status: 0 all walls stand, 1 some do not, 2 wrong usage or a wrong setting."""


@click.command("walls", epilog=EXAMPLE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Try the walls that kernel builds run behind on this host; each: does it stand, and how, or why not."""
    try:
        found, limits = probe(), limits_of()
    except InfraError as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    lacking = missing(found.walls)
    facts = {
        "walls": [wall.to_json() for wall in found.walls],
        "complete": not lacking,
        "builds": ["trusted", "untrusted"] if not lacking else ["trusted"],
        "limits": {
            "memory_mb": limits.memory // MIB,
            "disk_mb": limits.disk // MIB,
            "processes": limits.processes,
            "log_mb": limits.log // MIB,
        },
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        for wall in found.walls:
            click.echo(f"{'stands' if wall.stands else 'MISSING':<8} {wall.name:<10} {wall.why}")
        click.echo(
            f"limits   {limits.memory // MIB} MB of memory, {limits.disk // MIB} MB of disk, {limits.processes} processes, {limits.log // MIB} MB of log"
        )
        click.echo(
            "Kernels of any trust are built here."
            if not lacking
            else "Only trusted kernels are built here, without walls."
        )
    sys.exit(1 if lacking else 0)
