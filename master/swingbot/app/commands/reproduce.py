"""`swingbot reproduce`: reported numbers on a machine that has nothing of ours."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.adapters.artifacts import Artifacts
from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.app.reproduction import NAME, IncompleteReproduction, Reproductions
from swingbot.core.reproduce import boot_ids, kind_of, members


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
    help="Leave out the kernel images; build.sh in it makes them.",
)
@click.option(
    "--testbox",
    help="Testbox whose boots to take (default: the first virtual one; not for reports).",
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
    testbox: str | None,
    incomplete: bool,
    json_: bool,
) -> None:
    """Everything to see reported numbers elsewhere: the kernels, the job, QEMU's command, and a script that runs it all.

    ID is a report, a comparison or an experiment. The script needs QEMU, tar, awk and sha256sum; it boots each kernel as it was booted here
    and compares each number with the reported one. The web service has the same at /report/ID/reproduce.tar.gz, /comparison/ID/... and
    /experiment/ID/...

    \b
    Examples:
      swingbot reproduce r4 --out /tmp/r4
      swingbot reproduce e3 --out e3.tar.gz
      swingbot reproduce c5 --out /tmp/c5 --testbox vm-icount
      cd /tmp/r4 && ./reproduce.sh

    Exit status: 0 written, 1 something is missing or could not be written, 2 wrong usage.
    """
    made = Reproductions(session.engine, Artifacts(session.settings.artifacts), session.placed)
    kit = made.kit(id_, kernels=not without_kernels, testbox=testbox)
    if kit.missing and not incomplete:
        click.echo(
            f"swingbot: {IncompleteReproduction(kit.id, kit.missing)}; --incomplete writes what there is",
            err=True,
        )
        raise SystemExit(1)
    if out.name.endswith((".tar.gz", ".tgz")):
        size = made.write(kit, out)
    else:
        made.unpack(kit, out)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    boots = boot_ids(kit)
    if json_:
        files = [member.path for member in members(kit)]
        say_json(
            {
                kind_of(kit): kit.id,
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
            f"{out}: {len(members(kit))} files, {size / 1e6:.1f} MB; {inside} makes {len(boots)} boots and compares"
        )
    raise SystemExit(0)


__all__ = ["NAME", "reproduce"]
