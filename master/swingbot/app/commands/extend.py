"""`swingbot extend`: add boots or rows to a comparison or experiment."""

from __future__ import annotations

from typing import Any

import click

from swingbot.app.commands.context import CommandContext, as_json, guarded, pass_session, say_json
from swingbot.app.commands.cost import confirm, cost_json, cost_lines
from swingbot.app.commands.experiment_file import Options
from swingbot.app.commands.requests import (
    answer,
    dry_run_option,
    exit_code_option,
    wait_option,
    yes_option,
)
from swingbot.core.model import ids
from swingbot.service.ports import RequestError
from swingbot.service.table.extend import Extension, ExtensionRequest, plan_extension
from swingbot.service.table.extend import extend as extend_it


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
@dry_run_option
@yes_option
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
    dry_run: bool,
    yes: bool,
    wait_: bool,
    exit_code: bool,
    json_: bool,
) -> None:
    """Boot each row of a comparison or experiment BOOTS more times and evaluate it again.

    An added row is compared over the new boots only, which all rows share. The command prints the
    cost first; on a terminal it asks for confirmation before it queues anything.

    \b
    Examples:
      swingbot extend e3 --boots 4
      swingbot extend e3 --boots 4 --dry-run
      swingbot extend e3 --boots 4 --variant v2=v2.patch --wait
    """
    kind, number = ids.read(id_)
    if kind not in ("comparison", "experiment"):
        raise RequestError(
            f"{id_} cannot be extended; give the id of a comparison (c5) or experiment (e6)"
        )
    request = ExtensionRequest(
        number=number,
        boots=boots,
        named=Options(variants=variants).named(),
        experiment=kind == "experiment",
        trusted=trusted,
    )
    planned = plan_extension(session.lab, request)
    if dry_run and json_:
        say_json(_plan_json(id_, planned))
        return
    for line in _plan_lines(id_, planned):
        click.echo(line, err=not dry_run)
    if dry_run:
        return
    confirm(yes=yes or json_)
    extend_it(session.lab, request)
    answer(
        session,
        id_,
        wait_=wait_ or exit_code,
        exit_code=exit_code,
        json_=json_,
        more={"plan": _plan_json(id_, planned)} if json_ else None,
    )


def _plan_lines(id_: str, planned: Extension) -> list[str]:
    added = [f"  added: {arm.name}" for arm in planned.added]
    look, stated = planned.look.number, planned.look.stated
    lines = [
        f"{id_} will have {planned.boots} boots of each of its {planned.rows} rows; look {look}",
        *added,
    ]
    if look > stated:
        times = "one look" if stated == 1 else f"{stated} looks"
        lines.append(
            f"its request stated {times}: look {look} may withdraw changes and narrow intervals,"
            " but claims no new change of a row that was judged before"
        )
    return [*lines, *cost_lines(planned.cost)]


def _plan_json(id_: str, planned: Extension) -> dict[str, Any]:
    return {
        "id": id_,
        "boots_each": planned.boots,
        "rows": planned.rows,
        "added": [arm.name for arm in planned.added],
        "look": planned.look.number,
        "looks_stated": planned.look.stated,
        "cost": cost_json(planned.cost),
    }
