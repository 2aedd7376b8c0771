"""`swingbot kcidb`: a table for the database of kernel test results that KernelCI keeps."""

from __future__ import annotations

import click

from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import CommandContext, with_session
from swingbot.core.model import ids
from swingbot.core.report.kcidb import ORIGIN, Submitter, kcidb
from swingbot.service.ports import RequestError
from swingbot_jobs.terminal import say_json


def _origin(context: click.Context, option: click.Parameter, given: str) -> str:
    if ORIGIN.fullmatch(given) is None:
        raise click.BadParameter(f"{given!r} is not a name of a-z, 0-9 and _")
    return given


@click.command("kcidb")
@click.argument(
    "id_", metavar="ID", shell_complete=ids_of("comparisons", "experiments", "bisections")
)
@click.option(
    "--origin",
    required=True,
    callback=_origin,
    metavar="NAME",
    help="Name under which KCIDB knows your lab.",
)
@with_session
def kcidb_(session: CommandContext, id_: str, origin: str) -> None:
    """Print a comparison or experiment as KCIDB JSON.

    Checkouts, builds, and as tests boots and the level of each benchmark metric. A test fails if it
    is worse, passes if it is better or the same, and else is DONE. Sends nothing.

    \b
    Example:
      swingbot kcidb c5 --origin mylab >c5.json
    """
    kind, _ = ids.read(id_)
    if kind not in ids.TABLES:
        raise RequestError(f"{id_} is not a table; give a comparison (c5) or experiment (e6)")
    documents = session.documents
    table = documents.document(id_)
    (tree,) = documents.listing("trees", {"name": table["tree"]}, 1)
    say_json(kcidb(Submitter(origin=origin, url=documents.url), table, tree))
