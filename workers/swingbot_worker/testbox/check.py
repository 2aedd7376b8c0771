"""`swingbot-worker check TESTBOX`: check that a testbox has everything it needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from swingbot_jobs import codec
from swingbot_jobs.contract.kconfig import NoKconfig, load_kconfigs
from swingbot_jobs.language.job_costs import job_costs
from swingbot_jobs.language.job_files import read_all
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.terminal import fail
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.table import TestboxError
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.site import Site, from_environment
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.kernel_check import kernel_findings


def check(testbox: Testbox, site: Site) -> list[TuningFinding]:
    """Return the findings of the testbox's driver.

    A virtual testbox needs little. Only the operator's program knows a testbox of the driver
    `command`.
    """
    return [
        *select_driver.driver_of(testbox).check(),
        *_kconfig(testbox, site),
        *_jobs(testbox, site.jobs),
    ]


def _kconfig(testbox: Testbox, site: Site) -> Iterator[TuningFinding]:
    """Yield whether the configuration exists that the testbox's file names."""
    if not testbox.kconfig:
        return
    try:
        load_kconfigs(site.kconfig).text(testbox.kconfig)
        why = ""
    except NoKconfig as error:
        why = str(error)
    yield TuningFinding(
        what="kernel configuration",
        ok=not why,
        found=why or testbox.kconfig,
        do=f"add it to {site.kconfig}, or correct kconfig in the testbox file" if why else "",
    )


def _jobs(testbox: Testbox, jobs: Path) -> Iterator[TuningFinding]:
    """Yield what a boot of each shipped job costs. One that is too long is the operator's will."""
    longest = testbox.longest_boot_seconds
    for cost in job_costs(read_all(jobs), testbox, load_programs(jobs / "programs")):
        found = f"{cost.runs} runs, about {rounded(cost.seconds)} a boot"
        if longest is not None and cost.seconds > longest:
            found += f"; refused, the limit of this testbox is {rounded(longest)}"
        yield TuningFinding(what=f"cost of {cost.job}", ok=True, found=found)


def rounded(seconds: float) -> str:
    """Return a duration in seconds as text, in minutes from three minutes on."""
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


@click.command(
    name="check",
    epilog="""\b
Examples:
  swingbot-worker check box1
  swingbot-worker check box1 --kernel /srv/linux.git@v6.12

Exit status: 0 nothing is missing, 1 something is missing, 2 unknown testbox or invalid file.""",
)
@click.argument("name", metavar="TESTBOX")
@click.option(
    "--kernel",
    metavar="IMAGE|REPO@COMMIT",
    help="Also check that this kernel has what TESTBOX needs. A commit is configured, not built.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print the findings as JSON: [{"what", "ok", "found", "do"}].',
)
def command(name: str, kernel: str | None, as_json: bool) -> None:
    """Check that TESTBOX has everything it needs.

    Checks SSH, console, power, memory and tuning. Changes nothing on the testbox and boots nothing.
    """
    try:
        site = from_environment()
        testbox = select_driver.testbox_of(name, site)
        of_kernel = kernel_findings(testbox, kernel, site) if kernel else []
        findings = [*check(testbox, site), *of_kernel]
    except (InfraError, TestboxError, OSError) as error:
        fail(2, str(error))
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
