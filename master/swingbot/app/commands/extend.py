"""`swingbot extend`: add boots or rows to a comparison or experiment."""

from __future__ import annotations

import click

from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session
from swingbot.app.commands.experiment_file import Options
from swingbot.app.commands.requests import answer, exit_code_option, wait_option
from swingbot.core.model import ids
from swingbot.service.compare.extend import extend as extend_it
from swingbot.service.ports import RequestError


@click.command()
@click.argument("id_", metavar="ID")
@click.option(
    "--boots",
    type=click.IntRange(1, 1000),
    required=True,
    help="Number of boots to add to each row.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME=FILE[,FILE]|REF",
    help="Add a row: patches on the base, or a commit (experiments only).",
)
@click.option("--trusted", is_flag=True, help="Treat the patches as trusted code.")
@wait_option
@exit_code_option
@as_json
@pass_session
@guarded
def extend(
    session: CommandContext,
    id_: str,
    boots: int,
    variants: tuple[str, ...],
    trusted: bool,
    wait_: bool,
    exit_code: bool,
    json_: bool,
) -> None:
    """Boot each row of a comparison or experiment BOOTS more times and evaluate it again.

    An added row is compared over the new boots only, which all rows share.

    \b
    Examples:
      swingbot extend e3 --boots 4
      swingbot extend e3 --boots 4 --variant v2=v2.patch --wait
    """
    kind, number = ids.read(id_)
    if kind not in ("comparison", "experiment"):
        raise RequestError(
            f"{id_} cannot be extended; give the id of a comparison (c5) or experiment (e6)"
        )
    total = extend_it(
        session.lab,
        number,
        boots,
        Options(variants=variants).named(),
        experiment=kind == "experiment",
        trusted=trusted,
    )
    click.echo(f"{id_} will have {total} boots of each row", err=True)
    answer(session, id_, wait_=wait_ or exit_code, exit_code=exit_code, json_=json_)
