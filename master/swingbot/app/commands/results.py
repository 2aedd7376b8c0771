"""`swingbot results`, `history`: what was measured, as the pages /results and /metric show it."""

from __future__ import annotations

import click

from swingbot.app.commands import results_text
from swingbot.app.commands.completion import METRICS, TESTBOXES, TREES, UNIT_JOBS
from swingbot.app.commands.context import CommandContext, with_session_json
from swingbot.core.limits import RESULT_KERNELS
from swingbot.service.ports import RequestError
from swingbot.service.report.results_query import SORTS, HistoryQuery, query_of
from swingbot_jobs.terminal import say_json


@click.command()
@click.argument("kernels", metavar="[REFERENCE KERNEL...]", nargs=-1)
@click.option(
    "--tree",
    default="",
    metavar="T",
    shell_complete=TREES,
    help="Tree (default: the only one with results).",
)
@click.option(
    "--testbox",
    multiple=True,
    metavar="ID",
    shell_complete=TESTBOXES,
    help="Only this testbox; repeatable.",
)
@click.option("--test", default="", metavar="TEXT", help="Only unit jobs whose name contains TEXT.")
@click.option(
    "--metric",
    shell_complete=METRICS,
    default="",
    metavar="TEXT",
    help="All metrics whose name contains TEXT, counters too.",
)
@click.option("--verdict", multiple=True, metavar="V", help="Only this verdict; repeatable.")
@click.option("--sort", default=SORTS[0], metavar="ORDER", help=f"{', '.join(SORTS)}.")
@with_session_json
def results(
    session: CommandContext,
    /,
    kernels: tuple[str, ...],
    json_: bool,
    **given: str | tuple[str, ...],
) -> None:
    """Compare kernels by boots that exist, each with the first; nothing is booted.

    A kernel is a variant (v12), a commit or prefix, base, tip, the branch or a release. Without
    kernels, those that have boots are listed.

    \b
    Examples:
      swingbot results v6.1.110 v6.1.112
      swingbot results base tip --tree linus --verdict worse,better --json
    """
    query = query_of(
        [
            *(("kernel", one) for one in kernels),
            *(
                (name, one)
                for name, value in given.items()
                for one in ((value,) if isinstance(value, str) else value)
            ),
        ]
    )
    if len(query.kernels) == 1:
        raise RequestError(
            f"give a kernel to compare {query.kernels[0]} with: 2 to {RESULT_KERNELS} kernels, or"
            " none to list those that have boots"
        )
    facts = session.documents.results(query)
    if "rows" not in facts and (query.kernels or not facts["tree"]):
        names = ", ".join(tree["name"] for tree in facts["trees"]) or "none has results yet"
        raise RequestError(f"name a tree with --tree: {names}")
    if json_:
        say_json(facts)
    elif "rows" in facts:
        click.echo(results_text.compared(facts))
    else:
        click.echo(results_text.measured_kernels(facts))


@click.command()
@click.argument("metric", shell_complete=METRICS)
@click.option(
    "--tree",
    default="",
    metavar="T",
    shell_complete=TREES,
    help="Tree, if several have the metric.",
)
@click.option(
    "--testbox",
    default="",
    metavar="ID",
    shell_complete=TESTBOXES,
    help="Testbox, if several have the metric.",
)
@click.option(
    "--unit-job",
    default="",
    metavar="NAME",
    shell_complete=UNIT_JOBS,
    help="Unit job, if several have the metric.",
)
@click.option("--kconfig", default="", metavar="K", help="Kernels of this configuration.")
@click.option("--compiler", default="", metavar="C", help="Kernels of this compiler.")
@with_session_json
def history(session: CommandContext, /, json_: bool, **given: str) -> None:
    """Show METRIC over all measured commits of a tree, oldest first, and what was found in it.

    \b
    Example:
      swingbot history netperf.Throughput_Mbps --tree linus --testbox vm-icount
    """
    facts = session.documents.history(HistoryQuery(**given))
    if json_:
        say_json(facts)
    else:
        click.echo(results_text.history(facts))
