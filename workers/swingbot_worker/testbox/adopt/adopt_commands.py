"""`swingbot-worker adopt HOST`: write the testbox file of a machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from swingbot_jobs import codec
from swingbot_jobs.terminal import fail, say_json, tell
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import NAME, load
from swingbot_jobs.yaml_lines import LineError
from swingbot_worker import InfraError
from swingbot_worker.site import Site, from_environment
from swingbot_worker.testbox.adopt import proof_boot
from swingbot_worker.testbox.adopt.adoption import (
    BMC_USER,
    AdoptionInput,
    NotReady,
    adopt,
    differences,
    driver_for,
    name_of,
    others_in,
    unlike_twins,
)
from swingbot_worker.testbox.adopt.proof_boot import ProofBoot
from swingbot_worker.testbox.adopt.testbox_text import Adoption, text_of, to_do
from swingbot_worker.testbox.check import as_text
from swingbot_worker.testbox.kernel_check import refusals

EXAMPLE = """\b
Examples:
  swingbot-worker adopt rack1.lab.example.org --key /etc/swingbot/testbox-key \\
      --known-hosts /etc/swingbot/known_hosts --out workers/testboxes/rack1.yaml
  swingbot-worker adopt rack1 --key K --known-hosts H --bmc rack1-bmc >rack1.yaml
  swingbot-worker adopt rack1 --key K --known-hosts H --out workers/testboxes/rack1.yaml \\
      --kernel /tmp/kernel/bzImage

Exit status: 0 the file was written, or matches the machine and the kernel, 1 the machine cannot be
a testbox yet, machine or kernel differ from its file, or the boot failed, 2 not reached, or invalid
usage."""


@click.command("adopt", epilog=EXAMPLE)
@click.argument("host")
@click.option(
    "--key",
    required=True,
    type=click.Path(path_type=Path),
    help="Private key that root of the machine accepts.",
)
@click.option(
    "--known-hosts",
    required=True,
    type=click.Path(path_type=Path),
    help="File with the machine's host key, compared at its own console.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=22,
    show_default=True,
    help="Port of its SSH server.",
)
@click.option(
    "--bmc",
    default="",
    metavar="[USER@]ADDRESS",
    help="Its BMC (default: the address that the machine knows, user swingbot).",
)
@click.option(
    "--bmc-password-file",
    type=click.Path(path_type=Path),
    help="File with that user's password (default: /etc/swingbot/secrets/NAME-bmc).",
)
@click.option(
    "--console",
    default="",
    metavar="COMMAND",
    help="Command that prints its console; words as in a shell (default: try what is there).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Testbox file to write, NAME.yaml; an existing one is kept and compared.",
)
@click.option(
    "--kernel",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Kernel image to boot once from the file in --out, to prove file and configuration.",
)
@click.option("--json", "as_json", is_flag=True, help='Print {"file", "to_do", "differs", "boot"}.')
def command(
    host: str,
    key: Path,
    known_hosts: Path,
    port: int,
    bmc: str,
    bmc_password_file: Path | None,
    console: str,
    out: Path | None,
    kernel: Path | None,
    as_json: bool,
) -> None:
    """Write the testbox file of the machine that answers at HOST.

    Asks the machine's idle system over SSH as root, finds its BMC and its console by trying, and
    proposes a kernel configuration. On the machine it only creates the directory /run/swingbot, and
    writes a line to the kernel log and to each serial line. The file goes to stdout, and what is
    left for you to do to stderr.

    With --kernel the machine leaves its idle system once: it boots that kernel, measures for a
    moment and reboots. What the kernel sees is compared with the file, and what the file does not
    state with the idle system.
    """
    name = name_of(host, out)
    if not NAME.fullmatch(name) or (out is not None and out.suffix != ".yaml"):
        fail(2, "give --out a file NAME.yaml whose NAME has letters, digits, '.', '_' and '-'")
    try:
        paths = {"key": str(key.absolute()), "known_hosts": str(known_hosts.absolute())}
        driver = driver_for(host=host, port=port, **paths)
        user, _, address = bmc.rpartition("@")
        given = AdoptionInput(
            bmc=address,
            bmc_user=user or BMC_USER,
            bmc_password_file=str(bmc_password_file.absolute()) if bmc_password_file else "",
            console=_words(console),
        )
        site = from_environment()
        if kernel is not None:
            _check_place(out, name, site)
        before = _file_before(out, site)
        adoption = adopt(name, driver, given, site, tell)
        _finish(adoption, out, before, site, kernel, as_json)
    except NotReady as error:
        fail(1, str(error))
    except (InfraError, LineError, OSError, ValueError) as error:
        fail(2, str(error))


def _check_place(out: Path | None, name: str, site: Site) -> None:
    """End the command if an order would not find the file."""
    place = site.workers / "testboxes" / f"{name}.yaml"
    if out is None or out.resolve() != place.resolve():
        fail(2, f"--kernel boots from {place}: give --out {place}, or set SWINGBOT_PATHS_WORKERS")


def _file_before(out: Path | None, site: Site) -> Testbox | None:
    """Read the file that exists; None if it can be written. Raises LineError, OSError."""
    if out is None:
        return None
    if not out.parent.is_dir():
        fail(2, f"{out.parent} is not a directory: create it, or give another --out")
    return _testbox(out.read_text("utf-8"), str(out), site) if out.exists() else None


def _testbox(text: str, name: str, site: Site) -> Testbox:
    return load(text, name, tuning.load_all(site.workers / "tuning"))


def _finish(
    adoption: Adoption,
    out: Path | None,
    before: Testbox | None,
    site: Site,
    kernel: Path | None,
    as_json: bool,
) -> None:
    text = text_of(adoption)
    machine = _testbox(text, f"{adoption.name}.yaml", site)
    differs: list[str] = []
    if before is not None:
        differs = differences(before, machine)
        tell(f"{out} exists and is kept" + ("" if differs else ": the machine matches it"))
    elif out is not None:
        with out.open("x", encoding="utf-8") as file:  # not over what has come meanwhile
            file.write(text)
        tell(f"{out} is written; read it, then run swingbot-worker check {adoption.name}")
    others = others_in(site.workers / "testboxes", adoption.name)
    twins = unlike_twins(before or machine, adoption.survey.home.dimms, others)
    sentences = [*to_do(adoption), *twins]
    proof = None
    refused: list[str] = []
    if kernel is not None and differs:
        refused = [f"{kernel} was not booted: make file and machine agree first."]
    elif kernel is not None and not (refused := refusals(before or machine, kernel, site)):
        proof = proof_boot.prove(before or machine, kernel, adoption.survey.facts, site, tell)
    sentences += refused
    if as_json:
        boot = codec.plain(proof) if proof else None
        say_json({"file": text, "to_do": sentences, "differs": differs, "boot": boot})
    else:
        if out is None:
            click.echo(text, nl=False)
        for sentence in (*differs, *sentences):
            tell(f"-> {sentence}")
        if proof is not None:
            _show(proof, adoption.name, kernel)
    sys.exit(1 if differs or refused or (proof is not None and not proof.proven) else 0)


def _show(proof: ProofBoot, name: str, kernel: Path | None) -> None:
    """Print what the boot showed."""
    if proof.findings:
        click.echo(as_text(list(proof.findings)))
    if proof.proven:
        tell(f"{kernel} proves {name}.yaml: commit the file")
    elif proof.status == "up":
        tell(f"-> {kernel} does not prove {name}.yaml yet; the boot's files are in {proof.files}")
    else:
        tell(
            f"-> the boot ended as {proof.status}: {proof.reason} (its files are in {proof.files})"
        )


def _words(console: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(console))
    except ValueError as error:
        raise ValueError(f"--console {console}: {error}") from None
