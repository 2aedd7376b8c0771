"""`swingbot raw` and `swingbot reparse`: what was kept, brought here; and history read again by today's parsers."""

from __future__ import annotations

from pathlib import Path

import click

from swingbot.adapters.artifacts import Artifacts
from swingbot.app.commands.context import Session, as_json, guarded, pass_session, say_json
from swingbot.app.raw_export import Export
from swingbot.app.raw_sources import Broken, Gone, Here, Source, There
from swingbot_jobs.program import load_programs


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory to write to; what is there and whole is kept.")
@click.option("--without-kernels", is_flag=True, help="Leave out configuration, System.map, build log and image of each kernel.")
@as_json
@pass_session
@guarded
def raw(session: Session, id_: str, out: Path, without_kernels: bool, json_: bool) -> None:
    """Bring the raw results of both sides of a comparison, or of a bisection, incident, report, order or boot.

    Every file as it came, checked against its sha256, a directory a run under LKP's result root names, and tables that R and
    pandas read; README says what lies where. Call it again to go on after a break. ID may be an address of a web service.

    \b
    Examples:
      swingbot raw c5 --out /tmp/c5
      swingbot raw http://lab.example.org:8010/raw/c5/ --out /tmp/c5
    """
    source: Source = There(id_) if "://" in id_ else Here(session.engine, Artifacts(session.settings.artifacts), id_)
    export = Export(source, out, load_programs(Path(session.settings.paths.jobs) / "programs"), _say)
    try:
        export.run(kernels=not without_kernels)
    except (Broken, Gone) as error:
        raise click.ClickException(str(error)) from None
    if json_:
        counts = {"files": export.fetched + export.kept, "fetched": export.fetched, "kept": export.kept, "bytes_fetched": export.bytes}
        say_json({"out": str(out), **counts, "runs": export.runs, "samples": export.samples, "missing": export.notes})
    else:
        click.echo(
            f"{export.fetched + export.kept} files ({export.kept} were there), {export.runs} runs and {export.samples} samples in {out}; see README there"
        )
    if export.notes:
        _say(f"swingbot: {len(export.notes)} things could not be brought, README says which; the first: {export.notes[0]}")
        raise SystemExit(1)
