"""`swingbot-worker bloat`: compare two builds, or any two ELF files, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import click

from swingbot_jobs.kernel_diff import (
    FILE,
    BadRecord,
    ComparedBuild,
    KernelRecord,
    bloat,
    bloat_text,
    change_text,
    kernel_change,
    of_classes,
    read_record,
    symbol_table,
)
from swingbot_jobs.terminal import fail

EXAMPLE = """\b
Examples:
  swingbot-worker bloat /tmp/base /tmp/head
      compares two --out directories of `swingbot-worker build`, or two object directories
  swingbot-worker bloat -t vmlinux.old vmlinux.new
      compares two ELF files and prints the table of the kernel's scripts/bloat-o-meter

Exit status: 0 compared, 2 invalid usage or nothing to compare."""
_CLASSES = {"all": ("tdbr", "Function"), "text": ("t", "Function"), "data": ("dbr", "Data")}


@click.command("bloat", epilog=EXAMPLE)
@click.argument("base", type=click.Path(exists=True, path_type=Path))
@click.argument("head", type=click.Path(exists=True, path_type=Path))
@click.option("-t", "kind", flag_value="text", help="Compare functions only (two files).")
@click.option("-d", "kind", flag_value="data", help="Compare data only (two files).")
@click.option(
    "--most",
    default=40,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Maximum number of rows per table (two directories).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(base: Path, head: Path, kind: str | None, most: int, as_json: bool) -> None:
    """Compare two kernels function by function.

    Lists the functions that grew, shrank or changed their code.
    """
    if base.is_dir() != head.is_dir():
        fail(2, "give two directories or two files")
    try:
        if base.is_dir():
            facts = kernel_change(_side(base), _side(head))
            click.echo(
                json.dumps(facts, indent=2, sort_keys=True) if as_json else change_text(facts, most)
            )
            return
        classes, title = _CLASSES[kind or "all"]
        table = bloat(_sizes(base, classes), _sizes(head, classes))
    except BadRecord as error:
        fail(2, f"{FILE}: {error}")
    click.echo(
        json.dumps(table.to_json(), indent=2, sort_keys=True)
        if as_json
        else bloat_text(table, title),
        nl=as_json,
    )


def _side(directory: Path) -> ComparedBuild:
    config = next(
        (path for path in (directory / "config", directory / ".config") if path.is_file()), None
    )
    return ComparedBuild(
        record=_record(directory), config=config.read_text(errors="replace") if config else None
    )


def _record(directory: Path) -> KernelRecord:
    """Read the record of a build, or make one from the current content of an object directory."""
    from swingbot_worker.kbuild import functions
    from swingbot_worker.kbuild.elf import NotAnObject

    record = directory / FILE
    if not record.is_file() and not (directory / "vmlinux").is_file():
        fail(
            2,
            f"{directory} has neither {FILE} nor a vmlinux: give the --out directory of a build, "
            "or an object directory of kbuild",
        )
    try:
        if record.is_file():
            return read_record(record.read_bytes())
        return read_record(
            functions.build_record(
                functions.source_of(directory),
                directory,
                functions.compiler_of(directory),
            )
        )
    except (NotAnObject, OSError) as error:
        fail(2, str(error))


def _sizes(file: Path, classes: str) -> dict[str, int]:
    from swingbot_worker.kbuild.elf import NotAnObject, read_elf

    try:
        return of_classes(symbol_table(read_elf(file).letters()), classes)
    except (NotAnObject, OSError) as error:
        fail(2, str(error))
