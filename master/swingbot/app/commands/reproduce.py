"""`swingbot reproduce`: create a kit that reproduces reported numbers without swingbot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from swingbot.app.commands.completion import TESTBOXES, ids_of
from swingbot.app.commands.context import CommandContext, require_service, with_session_json
from swingbot.app.kit_file import IncompleteReproduction, is_tarball
from swingbot.core.model import ids
from swingbot.service.ports import RequestError
from swingbot_jobs.terminal import say_json

if TYPE_CHECKING:
    from swingbot.app.remote.login import Login


@click.command()
@click.argument(
    "id_",
    metavar="ID",
    shell_complete=ids_of("comparisons", "experiments", "bisections", "reports"),
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Output: a file that ends in .tar.gz, or a new directory.",
)
@click.option(
    "--without-kernels",
    is_flag=True,
    help="Omit the kernel images; build.sh in the kit builds them.",
)
@click.option(
    "--testbox",
    shell_complete=TESTBOXES,
    help="Testbox whose boots are used (default: the first virtual one; not for reports).",
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="Write an incomplete kit; README lists what is missing.",
)
@with_session_json
def reproduce(
    session: CommandContext,
    id_: str,
    out: Path,
    without_kernels: bool,
    testbox: str | None,
    incomplete: bool,
    json_: bool,
) -> None:
    """Create a kit that reproduces reported numbers: kernels, job, QEMU command line and a script.

    ID is a report, a comparison or an experiment. The script needs QEMU, tar, awk and sha256sum; it
    boots each kernel as it was booted here and compares each number with the reported one. The web
    service offers the same kit at /report/ID/reproduce.tar.gz, /comparison/ID/... and
    /experiment/ID/...

    \b
    Examples:
      swingbot reproduce r4 --out /tmp/r4
      swingbot reproduce e3 --out e3.tar.gz
      swingbot reproduce c5 --out /tmp/c5 --testbox vm-icount
      cd /tmp/r4 && ./reproduce.sh

    Exit status: 0 written, 1 incomplete or not writable, 2 usage error.
    """
    if session.login is not None:
        facts = _fetched(session.login, id_, out, without_kernels, testbox, incomplete)
    else:
        require_service()
        facts = _made_here(session, id_, out, without_kernels, testbox, incomplete)
    packed = is_tarball(out)
    files = [out] if packed else [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    kind = ids.read(id_)[0]
    if json_:
        say_json(
            {
                kind: facts[kind],
                "out": str(out),
                "size": size,
                "boots": facts["boots"],
                "files": [file["path"] for file in facts["files"]],
                "missing": facts["missing"],
            }
        )
    else:
        inside = f"{facts['directory']}/reproduce.sh in it" if packed else "./reproduce.sh there"
        click.echo(
            f"{out}: {len(facts['files'])} files, {size / 1e6:.1f} MB; {inside} makes"
            f" {len(facts['boots'])} boots and compares"
        )
    raise SystemExit(0)


def _fetched(
    login: Login, id_: str, out: Path, without_kernels: bool, testbox: str | None, incomplete: bool
) -> dict[str, Any]:
    from swingbot.app.remote.http_kit import fetch_kit

    if incomplete:
        raise RequestError("--incomplete works on the service's own host only")
    try:
        return fetch_kit(login, id_, out, kernels=not without_kernels, testbox=testbox)
    except IncompleteReproduction as error:
        click.echo(f"swingbot: {error}; on its host, --incomplete writes the kit anyway", err=True)
        raise SystemExit(1) from None


def _made_here(
    session: CommandContext,
    id_: str,
    out: Path,
    without_kernels: bool,
    testbox: str | None,
    incomplete: bool,
) -> dict[str, Any]:
    """Write the kit, and return what `reproduce.json` says of it."""
    from swingbot.adapters.artifacts import ArtifactDirectory
    from swingbot.app.reproduction import Reproductions
    from swingbot.web.pages.reproduction import facts

    store = ArtifactDirectory(session.settings.artifacts)
    reproductions = Reproductions(session.engine, store, session.placed)
    kit = reproductions.kit(id_, kernels=not without_kernels, testbox=testbox)
    if kit.missing and not incomplete:
        click.echo(
            f"swingbot: {IncompleteReproduction(kit.id, kit.missing)}; use --incomplete to write"
            " the kit anyway",
            err=True,
        )
        raise SystemExit(1)
    if is_tarball(out):
        reproductions.write(kit, out)
    else:
        reproductions.unpack(kit, out)
    return facts(kit)
