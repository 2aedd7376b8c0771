"""`swingbot-worker check BOX`: has a testbox what it needs, and what is there to do where it has not."""

from __future__ import annotations

import json
import sys

import click

from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.site import from_environment
from swingbot_worker.testbox import select_driver


def check(box: Testbox) -> list[TuningFinding]:
    """What was looked at; a virtual testbox needs little, one that an operator's program drives is known to that program alone."""
    return select_driver.driver_of(box).check()


@click.command(
    name="check",
    epilog="Example:  swingbot-worker check box1   "
    "Exit status: 0 it has all it needs, 1 something is missing, 2 there is no such testbox or its file is wrong.",
)
@click.argument("name", metavar="BOX")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print the findings as JSON: [{"what", "ok", "found", "do"}].',
)
def command(name: str, as_json: bool) -> None:
    """Look whether testbox BOX of this worker has all that it needs: reach, console, power, memory, tuning. Changes nothing on it and boots nothing."""
    try:
        found = check(select_driver.box_of(name, from_environment()))
    except (InfraError, TestboxError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    click.echo(
        json.dumps([finding.to_json() for finding in found], indent=2)
        if as_json
        else as_text(found)
    )
    sys.exit(0 if all(finding.ok for finding in found) else 1)


def as_text(found: list[TuningFinding]) -> str:
    """One line for each finding, and below those that are not as they should be what to do."""
    width = max((len(finding.what) for finding in found), default=0)
    lines = []
    for finding in found:
        lines.append(
            f"{'ok' if finding.ok else 'NO':3} {finding.what:{width}}  {finding.found}".rstrip()
        )
        lines += [f"    -> {finding.do}"] if finding.do and not finding.ok else []
    return "\n".join(lines)
