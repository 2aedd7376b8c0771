"""`swingbot-worker check TESTBOX`: check that a testbox has everything it needs."""

from __future__ import annotations

import json
import sys

import click

from swingbot_jobs import codec
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.site import from_environment
from swingbot_worker.testbox import select_driver


def check(testbox: Testbox) -> list[TuningFinding]:
    """Return the findings of the testbox's driver.

    A virtual testbox needs little. Only the operator's program knows a testbox of the driver
    `command`.
    """
    return select_driver.driver_of(testbox).check()


@click.command(
    name="check",
    epilog="""\b
Example:
  swingbot-worker check box1

Exit status: 0 nothing is missing, 1 something is missing, 2 unknown testbox or invalid file.""",
)
@click.argument("name", metavar="TESTBOX")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print the findings as JSON: [{"what", "ok", "found", "do"}].',
)
def command(name: str, as_json: bool) -> None:
    """Check that TESTBOX has everything it needs.

    Checks SSH, console, power, memory and tuning. Changes nothing on the testbox and boots nothing.
    """
    try:
        findings = check(select_driver.testbox_of(name, from_environment()))
    except (InfraError, TestboxError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    click.echo(json.dumps(codec.plain(findings), indent=2) if as_json else as_text(findings))
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


def as_text(found: list[TuningFinding]) -> str:
    """Return one line per finding, followed by the remedy if it is not ok."""
    width = max((len(finding.what) for finding in found), default=0)
    lines = []
    for finding in found:
        lines.append(
            f"{'ok' if finding.ok else 'NO':3} {finding.what:{width}}  {finding.found}".rstrip()
        )
        lines += [f"    -> {finding.do}"] if finding.do and not finding.ok else []
    return "\n".join(lines)
