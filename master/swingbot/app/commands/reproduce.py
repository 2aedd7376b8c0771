"""`swingbot reproduce`: a report's numbers on a machine that has nothing of ours."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.adapters.artifacts import Artifacts
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.app.reproduction import NAME, IncompleteReproduction, Reproductions
from swingbot.core.model import ids
from swingbot.core.reproduce import members


@click.command()
@click.argument("id_", metavar="ID")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="A file that ends in .tar.gz, or a directory that is not there yet.",
)
@click.option(
    "--without-kernels",
    is_flag=True,
    help="Leave out both kernel images; build.sh in it makes them.",
)
@click.option(
    "--incomplete",
    is_flag=True,
    help="Write what there is although something is missing; README names it.",
)
@as_json
@pass_session
@guarded
def reproduce(
    session: CommandContext,
    id_: str,
    out: Path,
    without_kernels: bool,
    incomplete: bool,
    json_: bool,
) -> None:
    """Everything to see a report's numbers elsewhere: both kernels, the job, QEMU's command, and a script that runs it all.

    ID is a report. The script needs QEMU, tar, awk and sha256sum; it boots both kernels as they were booted for the report and prints
    each number beside the reported one. The web service has the same at /report/ID/reproduce.tar.gz.

    \b
    Examples:
      swingbot reproduce r4 --out /tmp/r4
      swingbot reproduce r4 --out r4.tar.gz
      cd /tmp/r4 && ./reproduce.sh

    Exit status: 0 written, 1 something is missing or could not be written, 2 wrong usage.
    """
    ids.read(id_, "report")
    made = Reproductions(session.engine, Artifacts(session.settings.artifacts), session.placed)
    kit = made.kit(id_, kernels=not without_kernels)
    if kit.missing and not incomplete:
        click.echo(
            f"swingbot: {IncompleteReproduction(kit.report, kit.missing)}; --incomplete writes what there is",
            err=True,
        )
        raise SystemExit(1)
    if out.name.endswith((".tar.gz", ".tgz")):
        size = made.write(kit, out)
    else:
        made.unpack(kit, out)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if json_:
        files = [member.path for member in members(kit)]
        say_json(
            {
                "report": kit.report,
                "out": str(out),
                "size": size,
                "boots": [boot.id for boot in kit.boots],
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
            f"{out}: {len(members(kit))} files, {size / 1e6:.1f} MB; {inside} makes {len(kit.boots)} boots and compares"
        )
    raise SystemExit(0)


__all__ = ["NAME", "reproduce"]
