"""`swingbot compare`, `experiment` and `extend`: measure kernels in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import click

from swingbot.app.commands.completion import JOBS, METRICS, TESTBOXES, TREES, ids_of
from swingbot.app.commands.context import (
    CommandContext,
    read_jobs,
    read_overrides,
    require_service,
    with_session,
)
from swingbot.app.commands.requests import (
    answer_queued,
    dirty_option,
    note,
    queueing,
    sent_changes,
    shown_plan,
)
from swingbot.app.commands.table_kernels import ReadSeries, kernels_of, rows_of
from swingbot.app.commands.table_options import OPTIONS, Given, Options, in_order, read_file
from swingbot.core.limits import LAYOUTS
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.read import read_series
from swingbot.core.table.layout import DEFAULT_BOOTS, Axis
from swingbot.core.table.request_document import AXES
from swingbot.service.ports import RequestError
from swingbot.service.table.extend import ExtensionRequest
from swingbot.service.table.request import TableRequest

F = TypeVar("F", bound=Callable[..., Any])

_HELP: Final = """

    Rows are the commits given, or those of A..B; then, in the order given, --head, named --variant
    rows and the patches of --series. Compilers, configurations, fragments, layouts, command lines
    and sysctls multiply the rows. A commit is a unique prefix, tag or branch, or `base` or `tip` of
    the tree. Logged in elsewhere, commits of the checkout in this directory are sent along; without
    any kernel, those since HEAD left the tree's branch are meant.
    The command prints the plan and its cost first; on a terminal it asks for confirmation before it
    queues anything.
"""


_COMPLETED: Final = {
    "tree": TREES,
    "job": JOBS,
    "testbox": TESTBOXES,
    "with": METRICS,
}


class InOrder(click.Command):
    """Notes the order in which options were given, across their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        ctx.meta["order"] = [param.name for param in order]
        return super().parse_args(ctx, args)


def _options(*keys: str) -> Callable[[F], F]:
    def add(command: F) -> F:
        for key in reversed(keys):
            option = OPTIONS[key]
            number: click.ParamType[Any] | None = None
            if option.most or option.percent:
                number = click.IntRange(1, option.most) if option.most else click.FLOAT
            command = click.option(
                f"--{key}",
                metavar=option.metavar,
                help=option.help,
                type=number,
                multiple=option.several,
                is_flag=option.flag,
                shell_complete=_COMPLETED.get(key),
            )(command)
        return command

    return add


def _verb(name: str, kind: Literal["asked", "experiment"], text: str) -> click.Command:
    @click.command(name, cls=InOrder, help=text)
    @click.argument("refs", metavar="[A..B | BASE] [HEAD]...", nargs=-1)
    @_options(*OPTIONS)
    @click.option(
        "--file",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read the request from a YAML file; options add to it.",
    )
    @dirty_option
    @queueing
    @with_session
    def verb(session: CommandContext, /, **given: Any) -> None:
        own = in_order(click.get_current_context().meta["order"], given)
        file = read_file(given["file"]) if given["file"] is not None else Options()
        options = Options(given=(*file.given, *own.given))
        try:
            _ask(session, options, kind, given)
        except RequestError as error:
            raise options.located(error) from None

    return verb


compare = _verb(
    "compare",
    "asked",
    f"""Compare kernels in one table, each HEAD with BASE.{_HELP}
    \b
    Examples:
      swingbot compare v6.1 v6.1 --patch my.patch --tree linus --job vm-hackbench.yaml --wait
      swingbot compare v6.1..zone-lock --against above
      swingbot compare v6.1 v2 v3 --against first,v2
      swingbot compare                            # logged in elsewhere, in a checkout of the tree
    """,
)
experiment = _verb(
    "experiment",
    "experiment",
    f"""Measure kernels in one table, each row against its reference.{_HELP}
    \b
    Examples:
      swingbot experiment v6.12..zone-lock --job vm-page-fault.yaml --against above
      swingbot experiment --base v6.1 --series v4.mbx --against base
      swingbot experiment --base v6.1 --variant batch=a.patch --variant zero=b.patch
      swingbot experiment v6.1 fix --compiler gcc-11 --compiler gcc-12
      swingbot experiment --file sweep.yaml --dry-run
    """,
)


def _ask(
    session: CommandContext,
    options: Options,
    kind: Literal["asked", "experiment"],
    given: dict[str, Any],
) -> None:
    def go_on(plan: dict[str, Any], lines: list[str]) -> bool:
        return shown_plan(plan, lines, given)

    if session.login is not None:
        from swingbot.app.remote.checkout import Checkout
        from swingbot.app.remote.http_tables import HttpTables, with_sources

        request = request_of(options, given["refs"], kind, read=with_sources)
        tables = HttpTables(session.login, Checkout.around(Path.cwd(), note), note)
        asked = tables.ask(request, options.texts("job"), go_on, dirty=given["dirty"])
    else:
        require_service()
        from swingbot.app.database_tables import ask

        jobs = read_jobs(options.texts("job"), session.settings.paths.jobs)
        request = request_of(options, given["refs"], kind, job_files=jobs)
        sent = sent_changes(session, request.kernels.refs, dirty=given["dirty"])
        asked = ask(session.lab, replace(request, sent=sent), go_on)
    if asked is not None:
        answer_queued(session, asked, given)


def request_of(
    options: Options,
    refs: Sequence[str],
    kind: Literal["asked", "experiment"],
    *,
    job_files: Sequence[JobFile] = (),
    read: ReadSeries = read_series,
) -> TableRequest:
    """Return the request that options make; `read` reads patches. Raises RequestError."""
    return TableRequest(
        kernels=kernels_of(options, refs, read),
        tree=options.last("tree"),
        axes=list(_axes(options)),
        exclude=[_excluded(given) for given in options.all("exclude")],
        against=options.texts("against"),
        columns=options.texts("with"),
        job_files=job_files,
        overrides=read_overrides(options.texts("set")),
        testboxes=options.texts("testbox"),
        boots=options.number("boots") or DEFAULT_BOOTS,
        min_effect_pct=options.percent("min-effect"),
        looks=options.number("looks") or 1,
        private_to=options.texts("private-to") or None,
        mail=options.last("mail") is not None,
        vouched=options.last("trusted") is not None,
        kind=kind,
    )


def _axes(options: Options) -> Iterator[Axis]:
    for name in AXES:
        if values := [_value(given) for given in options.all(name)]:
            yield Axis(name=name, values=tuple(values))


def _value(given: Given) -> tuple[str, str]:
    """Return (label, value); a compiler or a configuration is its own label, `3` of a layout has
    label `layout3`, all other axes use NAME=VALUE.
    """
    label, sign, value = given.text.partition("=")
    if given.key == "layout":
        number = value if sign else given.text
        if not (number.isascii() and number.isdigit() and int(number) <= LAYOUTS):
            raise given.wrong(f"layouts are numbered from 0, the usual one, to {LAYOUTS}")
        return (label if sign else f"layout{number}", number)
    if given.key in ("compiler", "kconfig") and not sign:
        return given.text, given.text
    if not sign or not label:
        raise given.wrong("write it as NAME=VALUE")
    return label, value


def _excluded(given: Given) -> dict[str, str]:
    labels = {}
    for pair in given.text.split(","):
        axis, sign, label = pair.partition("=")
        if not sign or not axis or not label:
            raise given.wrong("write it as AXIS=NAME[,AXIS=NAME]")
        labels[axis] = label
    return labels


@click.command(cls=InOrder)
@click.argument("id_", metavar="ID", shell_complete=ids_of("comparisons", "experiments"))
@_options("boots", "head", "variant", "series", "trusted")
@queueing
@with_session
def extend(session: CommandContext, /, **given: Any) -> None:
    """Boot each row of a table BOOTS more times and evaluate it again.

    An added row is compared over the new boots only, which all rows share. The command prints the
    cost first; on a terminal it asks for confirmation before it queues anything.

    \b
    Examples:
      swingbot extend c3 --boots 4
      swingbot extend e3 --boots 4 --dry-run
      swingbot extend e3 --boots 4 --variant v2=v2.patch --wait
    """
    options = in_order(click.get_current_context().meta["order"], given)
    boots = options.number("boots")
    if boots is None:
        raise RequestError("give --boots: how many boots each row gets in addition")
    request = ExtensionRequest(
        id=given["id_"],
        boots=boots,
        rows=rows_of(options),
        vouched=options.last("trusted") is not None,
    )

    def go_on(plan: dict[str, Any], lines: list[str]) -> bool:
        return shown_plan(plan, lines, given)

    if session.login is not None:
        from swingbot.app.remote.http_tables import HttpTables

        asked = HttpTables(session.login).extend(request, go_on)
    else:
        require_service()
        from swingbot.app.database_tables import extend as extend_here

        asked = extend_here(session.lab, request, go_on)
    if asked is not None:
        answer_queued(session, asked, given)
