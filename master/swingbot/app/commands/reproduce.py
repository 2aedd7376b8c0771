"""`swingbot reproduce`: create a kit that reproduces reported numbers without swingbot."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.app.reproduction import NAME, IncompleteReproduction, Reproductions
from swingbot.core.reproduce import boot_ids, members
from swingbot_jobs.terminal import say_json


@click.command()
@click.argument("id_", metavar="ID")
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
    reproductions = Reproductions(
        session.engine, ArtifactDirectory(session.settings.artifacts), session.placed
    )
    kit = reproductions.kit(id_, kernels=not without_kernels, testbox=testbox)
    if kit.missing and not incomplete:
        click.echo(
            f"swingbot: {IncompleteReproduction(kit.id, kit.missing)}; use --incomplete to write"
            " the kit anyway",
            err=True,
        )
        raise SystemExit(1)
    if out.name.endswith((".tar.gz", ".tgz")):
        size = reproductions.write(kit, out)
    else:
        reproductions.unpack(kit, out)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    boots = boot_ids(kit)
    if json_:
        files = [member.path for member in members(kit)]
        say_json(
            {
                kit.kind: kit.id,
                "out": str(out),
                "size": size,
                "boots": boots,
                "files": files,
                "missing": list(kit.missing),
            }
        )
    else:
        inside = (
            "./reproduce.sh there"
            if not out.name.endswith("gz")
            else f"{kit.directory}/reproduce.sh in it"
        )
        click.echo(
            f"{out}: {len(members(kit))} files, {size / 1e6:.1f} MB; {inside} makes {len(boots)}"
            " boots and compares"
        )
    raise SystemExit(0)


__all__ = ["NAME", "reproduce"]
