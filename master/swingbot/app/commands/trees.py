"""`swingbot tree`: manage watched branches of git trees."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import JOBS, METRICS, TESTBOXES, TREES
from swingbot.app.commands.context import CommandContext, read_jobs, with_session, with_session_json
from swingbot.core.plan.branch_patches import said, tally
from swingbot.core.table.verdict import in_words
from swingbot.service.ports import RequestError
from swingbot.service.watch.trees import (
    NewTree,
    add_tree,
    known_tree,
    poll_tree,
    trust_of_new_tree,
)
from swingbot_db import read
from swingbot_jobs import codec
from swingbot_jobs.contract.trust import LEVELS, Trust
from swingbot_jobs.language.job_files import read_suite
from swingbot_jobs.printable import printable
from swingbot_jobs.terminal import say_json


@click.group()
def tree() -> None:
    """Watch branches of git trees.

    \b
    Example:
      swingbot tree add linus /srv/linux.git --branch master --base v6.1 --job vm-netperf.yaml
    """


@tree.command()
@click.argument("name")
@click.argument("url")
@click.option("--branch", required=True, help="Branch to watch.")
@click.option(
    "--base",
    required=True,
    help="Commit, tag or branch on which the branch is based; base..tip is compared first.",
)
@click.option(
    "--job",
    "jobs",
    shell_complete=JOBS,
    multiple=True,
    metavar="FILE",
    help="Job file: a path or the name of a shipped job; may be repeated.",
)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    help="Add the job files of jobs/suites/NAME.yaml; may be repeated.",
)
@click.option(
    "--testbox",
    "testboxes",
    shell_complete=TESTBOXES,
    multiple=True,
    metavar="ID|GROUP",
    help="Testboxes to use (default: watch.testbox).",
)
@click.option(
    "--paths",
    multiple=True,
    metavar="GLOB",
    help="Consider only changes of these paths, such as 'mm/*'; may be repeated.",
)
@click.option(
    "--kconfig",
    metavar="NAME",
    help="Kernel configuration, such as vm-x86_64+align64 (default: build.kconfig).",
)
@click.option(
    "--compiler",
    metavar="CC",
    help="Compiler, such as clang-19; see `swingbot compilers` (default: build.compiler).",
)
@click.option(
    "--min-effect",
    type=float,
    metavar="PCT",
    help="Smallest change of interest in percent, of the benchmarks' metrics (default: each"
    " program's).",
)
@click.option(
    "--trust",
    type=click.Choice(LEVELS),
    help="Trust in the code of the tree; required for a URL (default for a path: trusted); see"
    " docs/walls.md.",
)
@with_session_json
def add(
    session: CommandContext,
    name: str,
    url: str,
    branch: str,
    base: str,
    jobs: tuple[str, ...],
    suites: tuple[str, ...],
    testboxes: tuple[str, ...],
    paths: tuple[str, ...],
    kconfig: str | None,
    compiler: str | None,
    min_effect: float | None,
    trust: Trust | None,
    json_: bool,
) -> None:
    """Measure BASE..tip of a branch immediately, then watch it.

    \b
    Example:
      swingbot tree add mm /srv/linux.git --branch mm-unstable --base v6.1 --job vm-netperf.yaml
      swingbot tree add next https://example.org/linux.git --branch master --base v6.1 \\
        --job vm-netperf.yaml --trust untrusted
    """
    settings = session.settings
    url = str(Path(url).absolute()) if url.startswith(("./", "../")) else url
    listed = [file for suite in suites for file in read_suite(suite, Path(settings.paths.jobs))]
    files = tuple(dict.fromkeys([*jobs, *listed]))
    try:
        level = trust_of_new_tree(session.lab.transaction, name, url, trust)
    except RequestError as error:
        raise RequestError(f"{error}; {_with_trust()}") from None
    click.echo(
        f"fetching {branch} of {url} (minutes for a complete kernel history, seconds for an"
        " update)",
        err=True,
    )
    added = add_tree(
        session.lab,
        NewTree(
            name=name,
            url=url,
            branch=branch,
            base=base,
            job_files=read_jobs(files, settings.paths.jobs),
            testboxes=testboxes,
            paths=paths,
            kconfig=kconfig or settings.build.kconfig,
            compiler=compiler or settings.build.compiler,
            trust=level,
            min_effect_pct=min_effect,
        ),
    )
    problem = poll_tree(
        session.lab.transaction, session.lab.tools.git, known_tree(session.lab.transaction, name)
    )
    if problem is not None:
        raise RequestError(problem)
    with session.reading() as conn:
        facts = read.tree(conn, added.name)
    if json_:
        say_json(facts)
    else:
        click.echo(
            f"watching tree {added.name}: {added.base_commit[:12]}.."
            f"{(facts['tip_commit'] or '')[:12]} on {', '.join(added.testboxes)}"
        )


def _with_trust() -> str:
    """Return the command line of this call with a level, to be typed by the operator."""
    context = click.get_current_context()
    words = ["swingbot", "tree", "add", context.params["name"], context.params["url"]]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if not isinstance(parameter, click.Option) or not value:
            continue
        option = parameter.opts[-1]
        if parameter.is_flag:
            words.append(option)
        else:
            for one in value if parameter.multiple else (value,):
                words += [option, str(one)]
    return f"type: {printable(shlex.join(words))} --trust untrusted (or trusted)"


@tree.command("list")
@with_session_json
def list_(session: CommandContext, json_: bool) -> None:
    """List watched trees and their problems."""
    with session.reading() as conn:
        rows = read.list_trees(conn, {"state": "watched"})
    if json_:
        say_json(rows)
    else:
        heads = ("NAME", "BRANCH", "BASE", "TIP", "URL", "PROBLEM")
        click.echo(
            text.table(
                [
                    (
                        r["name"],
                        r["branch"],
                        r["base_commit"][:12],
                        (r["tip_commit"] or "")[:12],
                        r["url"],
                        r["problem"],
                    )
                    for r in rows
                ],
                heads,
            )
        )


@tree.command()
@click.argument("name", shell_complete=TREES)
@click.option("--all", "all_", is_flag=True, help="Include unchanged patches.")
@with_session_json
def show(session: CommandContext, name: str, all_: bool, json_: bool) -> None:
    """Show the patches of a branch and their effects.

    \b
    Example:
      swingbot tree show mm --all
    """
    with session.reading() as conn:
        facts = read.tree(conn, name)
    if json_:
        say_json(facts)
        return
    patches = facts["patches"]
    click.echo(
        f"tree {facts['name']}, branch {facts['branch']}, tip"
        f" {(facts['tip_commit'] or 'not polled')[:12]}"
    )
    click.echo(tally([patch["state"] for patch in patches]))
    shown = [
        patch
        for patch in patches
        if patch["costs"]
        or patch["incidents"]
        or (patch["state"] != "below" and (all_ or patch["state"] != "same"))
    ]
    heads = ("NO", "STATE", "COMMIT", "INCIDENT", "EFFECT", "SUBJECT")
    if shown:
        click.echo(text.table([line for patch in shown for line in _lines(patch)], heads))


def _lines(patch: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """Rows of a patch: one for each metric that was measured, at least one."""
    incidents = ", ".join(
        f"{one['id']} {one['status']}{' (new version)' * (one['part'] == 'version')}"
        for one in patch["incidents"]
    )
    costs = [_cost(cost) for cost in patch["costs"]] or [""]
    first = (
        patch["number"],
        said(patch["state"]),
        patch["commit"][:12],
        incidents,
        costs[0],
        printable(patch["subject"], " "),  # untrusted text
    )
    return [first, *(("", "", "", "", cost, "") for cost in costs[1:])]


def _cost(cost: Mapping[str, Any]) -> str:
    low, high = cost["interval_pct"] or (None, None)
    between = f" ({low:+.1f} .. {high:+.1f} %)" if low is not None and high is not None else ""
    return (
        f"{cost['metric']}: {in_words(cost)}{between},"
        f" {cost['boots']} boots per kernel, {cost['comparison']}"
    )


@tree.command()
@click.argument("name", shell_complete=TREES)
@click.option("--metric", shell_complete=METRICS, help="Show only this metric.")
@click.option("--testbox", shell_complete=TESTBOXES, help="Show only this testbox.")
@with_session_json
def history(
    session: CommandContext, name: str, metric: str | None, testbox: str | None, json_: bool
) -> None:
    """Find steps, creep and changes of noise in a branch.

    Runs the analysis of `swingbot stats history` for each headline metric on each testbox.

    \b
    Examples:
      swingbot tree history linus
      swingbot tree history linus --metric netperf.Throughput_Mbps --json
    """
    from swingbot.core.stats.findings import look, with_searches
    from swingbot.core.stats.findings_text import tell
    from swingbot.core.stats.tip_spreads import tip_spread

    with session.reading() as conn:
        rows = [
            row
            for row in read.levels(conn, name)
            if metric in (None, row["metric"]) and testbox in (None, row["testbox"])
        ]
    findings = []
    for row in rows:
        levels = row["levels"]
        spreads = [tip_spread(one["mean"], one["stddev"], one["boots"]) for one in levels]
        commits = {at: one["commit"] for at, one in enumerate(levels)}
        found = look([one["mean"] for one in levels], spreads=spreads)
        findings.append(with_searches(found, commits, row.pop("searches")))
    if json_:
        say_json(
            [{**row, "findings": codec.plain(s)} for row, s in zip(rows, findings, strict=True)]
        )
        return
    if not rows:
        click.echo(f"no tip of {name} has been measured")
    for row, one in zip(rows, findings, strict=True):
        click.echo(f"{row['metric']} of {row['unit_job']} on {row['testbox']}")
        tips = [level["commit"][:12] for level in row["levels"]]
        click.echo("\n".join(f"  {line}" for line in tell(one, tips)))


@tree.command()
@click.argument("name", shell_complete=TREES)
@with_session_json
def poll(session: CommandContext, name: str, json_: bool) -> None:
    """Poll a branch now. Otherwise it is polled every `watch.poll_seconds`."""
    problem = poll_tree(
        session.lab.transaction, session.lab.tools.git, known_tree(session.lab.transaction, name)
    )
    if problem is not None:
        raise RequestError(problem)
    with session.reading() as conn:
        facts = read.tree(conn, name)
    if json_:
        say_json(facts)
    else:
        click.echo(f"tip of tree {name} is {facts['tip_commit'][:12]}")


@tree.command()
@click.argument("name", shell_complete=TREES)
@with_session
def remove(session: CommandContext, name: str) -> None:
    """Stop watching a tree. Its results are kept; running work continues."""
    watched = known_tree(session.lab.transaction, name)
    with session.lab.transaction("remove tree") as tx:
        tx.trees.remove(watched.id)
    click.echo(f"tree {name} is no longer watched; its results are kept")
