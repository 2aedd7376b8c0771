"""`swingbot parse`: print the samples in the raw output of a program."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.app.commands.context import CommandContext, with_session
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_file
from swingbot_jobs.terminal import say_json


@click.command("parse")
@click.argument("program")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@with_session
def parse_(session: CommandContext, program: str, file: Path) -> None:
    """Parse the raw output of a PROGRAM and print its samples as JSON.

    \b
    Example:
      swingbot parse netperf ./netperf.out
    """
    say_json(
        parse_file(program, file, load_programs(Path(session.settings.paths.jobs) / "programs"))
    )
