"""`swingbot-worker program`: build unpackaged benchmark programs, list what jobs need."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from swingbot_jobs import codec
from swingbot_jobs.terminal import fail, say_json, tell
from swingbot_worker import InfraError
from swingbot_worker.program.listing import JobNeeds, job_needs
from swingbot_worker.site import from_environment

BUILD_EXAMPLE = """\b
Examples:
  git clone https://github.com/antonblanchard/will-it-scale
  swingbot-worker program build will-it-scale will-it-scale
  swingbot-worker program build netperf netperf.tar.gz

Exit status: 0 built, 1 refused or not built, 2 invalid usage or a tool is missing."""
LIST_EXAMPLE = """\b
Example:
  swingbot-worker program list

Exit status: 0 every job can run, 1 some cannot, 2 invalid usage or a damaged file."""
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("program")
def command() -> None:
    """Build benchmark programs, and list those that jobs need.

    Only programs that are not packaged have to be built.
    """


@command.command("build", epilog=BUILD_EXAMPLE)
@click.argument("program")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@AS_JSON
def build_program(program: str, source: Path, as_json: bool) -> None:
    """Build PROGRAM from SOURCE and install it for boots.

    SOURCE is a tar archive or a directory; nothing is downloaded. The build runs behind the walls
    of kernel builds (swingbot-worker walls). On a host without walls it runs unprivileged, with
    limits, and the output says so.
    """
    from swingbot_worker.program import build

    try:
        built = build.build(program, source, from_environment(), tell)
    except build.ProgramBuildFailed as error:
        for line in error.lines:
            click.echo(f"  {line}", err=True)
        fail(1, str(error))
    except InfraError as error:
        fail(2, str(error))
    except OSError as error:
        fail(2, f"{error.filename or 'The build'}: {error.strerror}; nothing was changed.")
    if as_json:
        say_json(codec.plain(built))
    else:
        count = len(built.binaries)
        click.echo(f"{built.version}: {count} binaries in {built.directory}, built {built.walls}")


@command.command("list", epilog=LIST_EXAMPLE)
@click.argument("files", nargs=-1, metavar="[JOB_FILE]...", type=click.Path(path_type=Path))
@AS_JSON
def list_programs(files: tuple[Path, ...], as_json: bool) -> None:
    """List the programs that each job file needs.

    The default is each shipped job file. For each missing program, prints how to install it.
    """
    try:
        jobs = job_needs(from_environment(), files)
    except InfraError as error:
        fail(2, str(error))
    if as_json:
        say_json({"jobs": [job.to_json() for job in jobs]})
    else:
        click.echo("\n".join(_lines(jobs)))
    sys.exit(0 if all(job.runs for job in jobs) else 1)


def _lines(jobs: list[JobNeeds]) -> list[str]:
    """Return one line per job and program, followed by advice for each missing program."""
    wide = max((len(job.job) for job in jobs), default=0)
    lines = [
        f"{need.state:<9} {job.job:<{wide}}  {need.program}"
        + (f"  {need.detail}" if need.state != "missing" else "")
        for job in jobs
        for need in job.needs
        if need.program != "perf" or need.state == "missing"
    ]
    missing: dict[str, list[str]] = {}
    for job in jobs:
        for need in job.needs:
            if need.state == "missing":
                missing.setdefault(need.program, []).append(need.detail)
    return [*lines, *(f"\n{program}: {details[0]}" for program, details in missing.items())]
