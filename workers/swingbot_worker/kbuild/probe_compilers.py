"""`swingbot-worker compilers`: list the compilers of this host as its worker announces them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import click

from swingbot_jobs.contract.compiler import (
    Compiler,
    is_compiler,
    order_of,
    programs,
    to_announcement,
)
from swingbot_jobs.terminal import say_json
from swingbot_worker import process
from swingbot_worker.kbuild.recipe import ENVIRONMENT

_SECONDS = 60.0


def probe(path: str = ENVIRONMENT["PATH"]) -> list[Compiler]:
    """Return every gcc, gcc-N, clang and clang-N on `path`, gcc first, then by version.

    The list includes compilers that do not run, or whose linker or binary utilities are not
    installed. Their `problem` names what is missing.
    """
    return [_probed(name, path) for name in sorted(_names(path), key=order_of)]


def _names(path: str) -> set[str]:
    return {
        name for name in _programs_on(path) if is_compiler(name) and shutil.which(name, path=path)
    }


def _programs_on(path: str) -> Iterator[str]:
    for directory in path.split(":"):
        if os.path.isdir(directory):
            yield from os.listdir(directory)


def _probed(name: str, path: str) -> Compiler:
    answer = process.output(
        [name, "--version"], timeout=_SECONDS, env={**ENVIRONMENT, "PATH": path}
    )
    version = answer.text.partition("\n")[0].strip()[:500]
    if answer.rc != 0 or not version:
        problem = f"`{name} --version` failed; reinstall package {name}"
        return Compiler(name=name, version=version or "unknown", problem=problem)
    return Compiler(name=name, version=version, problem=_missing(name, path))


def _missing(name: str, path: str) -> str | None:
    absent = {
        program: package
        for program, package in programs(name).items()
        if shutil.which(program, path=path) is None
    }
    if not absent:
        return None
    packages = " ".join(sorted(set(absent.values())))
    return f"{', '.join(sorted(absent))} not found; install package {packages}"


@click.command("compilers", epilog="Example:  swingbot-worker compilers --json")
@click.option("--json", "as_json", is_flag=True, help="Print the announcement as JSON.")
def command(as_json: bool) -> None:
    """List the compilers of this host and whether they build kernels.

    Exit status: 0 at least one builds kernels, 1 none does.
    """
    compilers = probe()
    if as_json:
        say_json(to_announcement(compilers))
    else:
        for one in compilers:
            click.echo(
                f"{one.name:<10} {one.version}" + (f"  ({one.problem})" if one.problem else "")
            )
        if not compilers:
            click.echo("no gcc or clang on this host; install package gcc", err=True)
    raise SystemExit(0 if any(one.problem is None for one in compilers) else 1)
