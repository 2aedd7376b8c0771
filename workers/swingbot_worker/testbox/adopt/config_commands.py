"""`swingbot-worker config TESTBOX`: propose options for the machine's drivers, by trying them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from swingbot_jobs.contract.kconfig import FRAGMENTS, joined, missing
from swingbot_jobs.terminal import fail, say_json, tell
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.yaml_lines import LineError
from swingbot_worker import InfraError
from swingbot_worker.kbuild import source
from swingbot_worker.kbuild.configure import configuration_of
from swingbot_worker.site import Site, from_environment
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.adopt import driver_options, survey
from swingbot_worker.testbox.kernel_check import configured, repo_and_commit
from swingbot_worker.testbox.ssh.link import Link

EXAMPLE: Final = """\b
Example:
  swingbot-worker config rack1 --kernel /srv/linux.git@v6.12 \\
      >workers/kconfig/fragments/rack1.config

Exit status: 0 every line stuck, or none is needed, 1 some did not stick, 2 not reached, or
invalid usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFragment:
    """Lines for a fragment that the kernel took, and what it did not take.

    `taken` and `lost` are pairs of an option without CONFIG_ and a driver; `unknown` are drivers
    that are no module of that kernel; `base` is the configuration that they were tried over.
    """

    base: str
    taken: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


def propose(name: str, repo: str, commit: str, site: Site) -> ProposedFragment:
    """Return the options for what the idle system of testbox `name` uses. Raises InfraError."""
    testbox = select_driver.testbox_of(name, site)
    if not isinstance(testbox.driver, SshDriver):
        raise InfraError(f"Testbox {name} has no idle system: its driver is not ssh.")
    if not testbox.kconfig:
        raise InfraError(f"{name}.yaml names no kconfig to add to, such as server-x86_64.")
    # Refuses links that lead out of the directory; the copy below would follow them.
    configuration_of(site, testbox.kconfig)
    link = Link(name, testbox.driver)
    link.check_files()
    text = link.run(driver_options.QUESTION)
    if "drivers all" not in text:
        raise survey.no_shell(name, text)
    with tempfile.TemporaryDirectory(prefix="swingbot-config-") as work:
        trial = replace(site, workers=Path(work, "workers"))
        shutil.copytree(site.kconfig, trial.kconfig)
        full = source.resolve(repo, commit)
        config = configured(trial, Path(work, "base"), repo, full, testbox.kconfig)
        by_module = driver_options.options_by_module(
            source.object_lines(source.find(repo, full, site.cache))
        )
        wanted, unknown = driver_options.missing(
            driver_options.drivers(text), by_module, config, driver_options.modules_used(text)
        )
        lost: list[str] = []
        if wanted:
            options = [option for option, _ in wanted]
            lines = "".join(f"CONFIG_{option}=y\n" for option in options)
            (trial.kconfig / FRAGMENTS / "proposed.config").write_text(lines)
            over = joined(testbox.kconfig, "proposed")
            config = configured(trial, Path(work, "over"), repo, full, over)
            lost = missing(options, config)
    return ProposedFragment(
        base=testbox.kconfig,
        taken=tuple(pair for pair in wanted if pair[0] not in lost),
        lost=tuple(pair for pair in wanted if pair[0] in lost),
        unknown=tuple(unknown),
    )


@click.command("config", epilog=EXAMPLE)
@click.argument("name", metavar="TESTBOX")
@click.option(
    "--kernel",
    "repo_commit",
    required=True,
    metavar="REPO@COMMIT",
    help="Kernel to configure.",
)
@click.option("--json", "as_json", is_flag=True, help='Print {"base", "taken", "lost", "unknown"}.')
def command(name: str, repo_commit: str, as_json: bool) -> None:
    """Propose a fragment with the drivers that TESTBOX uses.

    Asks its idle system which drivers have a device, finds the options that build them in the
    kernel's makefiles, and configures the kernel with those that its configuration lacks. Prints
    the lines that stuck; the others go to stderr. Builds nothing.
    """
    repo, commit = repo_and_commit(repo_commit)
    if not repo:
        fail(2, "--kernel needs a repository and a commit, such as /srv/linux.git@v6.12")
    try:
        found = propose(name, repo, commit, from_environment())
    except (InfraError, LineError, OSError, ValueError) as error:
        fail(2, str(error))
    if as_json:
        pairs = {"taken": dict(found.taken), "lost": dict(found.lost)}
        say_json({"base": found.base, **pairs, "unknown": list(found.unknown)})
    else:
        click.echo(f"# {name}: drivers of its idle system that {found.base} lacks, at {commit}")
        for option, driver in found.taken:
            click.echo(f"# {driver}\nCONFIG_{option}=y")
    for option, driver in found.lost:
        tell(f"-> CONFIG_{option}=y ({driver}) did not stick: a dependency of it is off")
    if found.unknown:
        tell(f"no module of this kernel: {', '.join(found.unknown)}")
    sys.exit(1 if found.lost else 0)
