"""`swingbot-worker build` and `boot`: execute an order file by hand, without the service."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import click
import yaml

from swingbot_jobs.contract.orders import ContractError, Document, check_order
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.printable import printable
from swingbot_jobs.terminal import fail, tell
from swingbot_worker import InfraError
from swingbot_worker.order import BootOrder, BuildOrder
from swingbot_worker.outcome import Outcome
from swingbot_worker.site import Site, from_environment

GOOD = ("built", "up")
NOT_ACCEPTED = 100  # lines of a configuration that are printed

# \b prevents click from refilling the lines.
BUILD_EXAMPLE = """\b
Examples:
  swingbot-worker build --order order.yaml --out /tmp/kernel
  swingbot-worker build --repo ~/linux --commit v6.1 --out /tmp/kernel

Exit status: 0 built, 1 not built, 2 invalid usage or order."""
BOOT_EXAMPLE = """\b
Example:
  swingbot-worker boot --order order.yaml --out /tmp/boot

Exit status: 0 the kernel came up, 1 it did not, 2 invalid usage or order."""

ORDER = click.option(
    "--order",
    "order_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Order file, JSON or YAML.",
)
OUT = click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the result files and outcome.json.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
VERBOSE = click.option(
    "--verbose", "-v", is_flag=True, help="Show progress on stderr even if it is not a terminal."
)


@click.command(epilog=BUILD_EXAMPLE)
@ORDER
@OUT
@click.option("--repo", help="Git repository to build from, path or URL (without --order).")
@click.option("--commit", help="Commit, tag or branch to build (without --order).")
@click.option(
    "--kconfig",
    default="vm-x86_64",
    show_default=True,
    help=(
        "Kernel configuration, workers/kconfig/<name>.config; NAME+trace merges the fragment trace "
        "over it (without --order)."
    ),
)
@click.option(
    "--compiler",
    default="gcc",
    show_default=True,
    help=(
        "Compiler, such as gcc, gcc-12 or clang-19; `swingbot-worker compilers` lists them "
        "(without --order)."
    ),
)
@click.option(
    "--layout",
    default=0,
    show_default=True,
    help=(
        "Code layout: 0 is the default, others place the same code at other addresses (without "
        "--order)."
    ),
)
@click.option(
    "--untrusted",
    is_flag=True,
    help=(
        "Build untrusted code, only inside the sandbox that `swingbot-worker walls` checks "
        "(without --order)."
    ),
)
@AS_JSON
@VERBOSE
def build(
    order_file: Path | None,
    out: Path,
    repo: str | None,
    commit: str | None,
    kconfig: str,
    compiler: str,
    layout: int,
    untrusted: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Build one kernel.

    Writes bzImage, config, System.map, build.log, objects.json and outcome.json to --out.
    """
    from swingbot_worker import kbuild

    site = _site()
    if order_file is not None:
        if repo or commit:
            fail(2, "give either --order or --repo and --commit")
        order = _read_order(order_file, "build")
    elif repo and commit:
        try:
            trust: Trust = "untrusted" if untrusted else "trusted"
            order = kbuild.order_by_hand(
                site,
                repo=repo,
                commit=commit,
                kconfig=kconfig,
                compiler=compiler,
                layout=layout,
                trust=trust,
            )
        except InfraError as error:
            fail(2, str(error))
    else:
        fail(2, "give --order FILE, or --repo and --commit")
    progress = tell if verbose or sys.stderr.isatty() else None
    outcome = kbuild.build(BuildOrder.from_json(order), out, site, progress=progress)
    for line in kbuild.not_accepted(out / "build.log")[:NOT_ACCEPTED]:
        click.echo(printable(line), err=True)
    _finish(outcome, out, as_json)


@click.command(epilog=BOOT_EXAMPLE)
@ORDER
@OUT
@click.option(
    "--image",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Kernel image to boot instead of the one in the order.",
)
@AS_JSON
def boot(order_file: Path | None, out: Path, image: Path | None, as_json: bool) -> None:
    """Boot one kernel on a testbox and run its unit jobs.

    Writes the logs, results.tar and outcome.json to --out.
    """
    if order_file is None:
        fail(2, "give --order FILE")
    document = _read_order(order_file, "boot")
    if image is not None:
        document["kernel"] = {
            "build_key": document["kernel"]["build_key"],
            "image": str(image.absolute()),
        }
    order, site = BootOrder.from_json(document), _site()
    from swingbot_worker import testbox
    from swingbot_worker.testbox.samples import sample_table

    outcome: Outcome = testbox.boot(order, out, site)
    if not as_json:
        click.echo(sample_table(order.unit_jobs, out, site, outcome.get("facts")))
    _finish(outcome, out, as_json)


def _site() -> Site:
    try:
        return from_environment()
    except InfraError as error:
        fail(2, str(error))


def _read_order(path: Path, kind: str) -> Document:
    try:
        order = check_order(yaml.safe_load(path.read_text()))  # JSON is YAML
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ContractError) as error:
        fail(2, f"{path}: {' '.join(str(error).split())}")
    if order["kind"] != kind:
        fail(2, f"{path} is a {order['kind']} order; use `swingbot-worker {order['kind']}`")
    return order


def _finish(outcome: Outcome, out: Path, as_json: bool) -> NoReturn:
    text = json.dumps(outcome, indent=2, sort_keys=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "outcome.json").write_text(text + "\n")
    if as_json:
        click.echo(text)
    else:
        click.echo(f"{outcome['status']} in {outcome['seconds']:.1f} s: {out / 'outcome.json'}")
    if outcome["status"] not in GOOD:
        click.echo(outcome["reason"], err=True)
        for line in outcome.get("kernel_build", {}).get("errors", []):
            click.echo(f"  {line}", err=True)
    sys.exit(0 if outcome["status"] in GOOD else 1)
