"""`swingbot here`: measure the commits of this checkout without a lab."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from swingbot.app import here_packages
from swingbot.app.commands.completion import JOBS
from swingbot.app.commands.context import CommandContext, guarded, job_path, read_jobs
from swingbot.app.commands.requests import (
    answer,
    dirty_option,
    dry_run_option,
    note,
    shown_plan,
    yes_option,
)
from swingbot.app.remote.checkout import Checkout
from swingbot.app.settings import load
from swingbot.service.ports import GitError, RequestError
from swingbot.service.table.kernels import KernelRequest, NamedKernel, ends_of, short
from swingbot.service.table.request import TableRequest
from swingbot_jobs import extras

if TYPE_CHECKING:
    from swingbot.core.model.records import JobFile

_TREE: Final = "here"
_JOBS: Final = ("vm-page-fault.yaml", "vm-hackbench.yaml")


@click.command()
@click.argument("range_", metavar="[A..B]", required=False)
@click.option(
    "--job",
    "jobs",
    shell_complete=JOBS,
    multiple=True,
    metavar="FILE",
    help=f"Job file: a path or the name of a shipped job (default: {', '.join(_JOBS)}).",
)
@dirty_option
@dry_run_option
@yes_option
@guarded
def here(range_: str | None, jobs: tuple[str, ...], dirty: bool, dry_run: bool, yes: bool) -> None:
    """Build and measure two commits of this checkout on this machine, without a lab.

    Compares HEAD with the commit where it left its upstream branch (without one: its parent), or B
    with A. The command starts a service and stops it when it ends; the kernels boot in the built-in
    emulator vm-icount, which counts instructions: path length only. The first kernel takes minutes,
    later ones take seconds.

    \b
    Examples:
      swingbot here HEAD..HEAD --dirty
      swingbot here v6.12..HEAD --job vm-netperf.yaml
    """
    _check_installed()
    from swingbot.app import here as service

    checkout = Checkout.around(Path.cwd(), note)
    if checkout is None:
        raise RequestError("this is not a git checkout: run it in a kernel tree")
    names = list(ends_of(range_) if range_ else checkout.recent())
    ends = [_resolved(checkout, name) for name in names]
    if ends[1] == checkout.resolve("HEAD") and (changed := checkout.changed()):
        if dirty:
            names[1], ends[1] = f"{names[1]}+changes", checkout.with_changes(ends[1])
        else:
            note(f"uncommitted changes, such as {changed[0]}, are measured with --dirty only")
    environ = service.environment(os.environ)
    settings = load(environ=environ)
    files = read_jobs(jobs or _JOBS, settings.paths.jobs)
    paths = [job_path(name, settings.paths.jobs).absolute() for name in jobs or _JOBS]
    if programs := service.missing_programs(paths, environ):
        raise RequestError("\n".join(programs))
    for name, commit in zip(names, ends, strict=True):
        note(f"{name}: {checkout.described(commit)}")
    note("starting the service")
    with service.running(settings.state, environ):
        session = CommandContext(settings, here=True)
        note("fetching both commits; the first time, with all commits before them")
        _fetch(session, checkout, ends, files)
        _cancel_open(session)  # left by a command that was killed, or the watch's own
        try:
            _measure(session, names, ends, files, dry_run=dry_run, yes=yes)
        finally:
            _cancel_open(session)


def _check_installed() -> None:
    """Raise RequestError with all that is missing on this machine, and how to install it."""
    said = []
    if lacking := extras.missing(("master", "worker")):
        said.append(extras.advice("swingbot here", lacking))
    if packages := here_packages.missing_packages():
        said.append(
            "swingbot here needs Debian packages; as root: apt-get install"
            f" --no-install-recommends {' '.join(packages)}"
        )
    if said:
        raise RequestError("\n".join(said))


def _measure(
    session: CommandContext,
    names: Sequence[str],
    ends: Sequence[str],
    files: Sequence[JobFile],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    from swingbot.app.database_tables import ask

    def go_on(plan: dict[str, Any], lines: list[str]) -> bool:
        return shown_plan(plan, lines, {"dry_run": dry_run, "yes": yes, "json_": False})

    kernels = KernelRequest(
        base=ends[0],
        base_name=short(names[0]),
        rows=[NamedKernel(name=short(names[1]), ref=ends[1])],
    )
    request = TableRequest(kernels=kernels, tree=_TREE, job_files=files)
    asked = ask(session.lab, request, go_on)
    if asked is not None:
        answer(session, asked.id, wait_=True, exit_code=False, json_=False)


def _fetch(
    session: CommandContext, checkout: Checkout, ends: Sequence[str], files: Sequence[JobFile]
) -> None:
    """Fetch both commits into a tree of the service. No file matches the paths of this tree, so the
    service compares no change of its branch unasked.
    """
    from swingbot.app.here import BRANCH, TESTBOX, lend
    from swingbot.service.watch.trees import NewTree, add_tree, poll_tree

    lab, build, place = session.lab, session.settings.build, session.settings.state / "here.git"
    with lab.transaction("read tree") as tx:
        tree = tx.trees.named(_TREE)
    if tree is None:
        lend(checkout.path, ends[0], place)
        new = NewTree(
            name=_TREE,
            url=str(place),
            branch=BRANCH,
            base=ends[0],
            job_files=files,
            testboxes=[TESTBOX],
            paths=["/"],
            kconfig=build.kconfig,
            compiler=build.compiler,
        )
        tree = add_tree(lab, new)
        poll_tree(lab.transaction, lab.tools.git, tree)
    for commit in ends:
        lend(checkout.path, commit, place)
        try:
            lab.tools.git.fetch_branch(_TREE, str(place), BRANCH)
            lab.tools.git.keep(commit)
        except GitError as error:
            raise RequestError(str(error)) from None


def _cancel_open(session: CommandContext) -> None:
    """Cancel all open tables. Boots that they have made are kept, and used by later tables."""
    from swingbot.service.table.changes import compare_changes

    with session.lab.transaction("cancel what is open") as tx:
        compare_changes(session.lab, tx)  # else the loop opens them after this
        for table in tx.comparisons.open():
            tx.comparisons.set_status(table.id, "cancelled", "`swingbot here` does not wait for it")


def _resolved(checkout: Checkout, name: str) -> str:
    if (commit := checkout.resolve(name)) is None:
        raise RequestError(f"{checkout.path} has no commit {name!r}")
    return commit
