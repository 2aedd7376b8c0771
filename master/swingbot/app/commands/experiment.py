"""`swingbot experiment`: measure N kernels in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from swingbot.app.commands.context import (
    CommandContext,
    as_json,
    guarded,
    pass_session,
    read_jobs,
    read_overrides,
    say_json,
)
from swingbot.app.commands.cost import confirm, cost_json, cost_lines
from swingbot.app.commands.experiment_file import Options, read_file
from swingbot.app.commands.requests import (
    answer,
    dry_run_option,
    exit_code_option,
    job_option,
    looks_option,
    set_option,
    tree_option,
    wait_option,
    yes_option,
)
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReferenceRule
from swingbot.core.table.layout import Axis
from swingbot.core.text.plain import cut
from swingbot.service.ports import RequestError
from swingbot.service.table.experiment import (
    DEFAULT_BOOTS,
    ExperimentRequest,
    Planned,
    plan_experiment,
    request_experiment,
)
from swingbot.service.table.kernels import KernelRequest, NamedKernel

F = TypeVar("F", bound=Callable[..., Any])

AXES: Final = ("compiler", "fragment", "cmdline", "sysctl")
RULES: Final[tuple[ReferenceRule, ...]] = ("above", "first", "base", "pair")
_SHOWN: Final = 12  # rows of a plan listed at most


def _several(*names: str, metavar: str, help: str) -> Callable[[F], F]:
    return click.option(*names, multiple=True, metavar=metavar, help=help)


@click.command()
@click.argument("range_", metavar="[A..B]", required=False)
@click.option("--base", help="Kernel that the others are based on; the first row.")
@_several("--head", "heads", metavar="REF", help="Add a commit, tag or branch as a row.")
@click.option(
    "--series",
    metavar="FILE|DIR",
    type=click.Path(exists=True, path_type=Path),
    help="Add a row for each patch: mbox (also from b4), quilt, or a directory of patches.",
)
@_several(
    "--variant",
    "variants",
    metavar="NAME=FILE[,FILE]|REF",
    help="Add a named row: patches on the base, or a commit.",
)
@_several("--paths", "paths", metavar="GLOB", help="Restrict the range to commits that touch GLOB.")
@_several(
    "--compiler", "compilers", metavar="[NAME=]CC", help="Add rows per compiler: gcc-12, clang-19."
)
@_several("--fragment", "fragments", metavar="NAME=FRAGMENT", help="Add rows per kconfig fragment.")
@_several("--cmdline", "cmdlines", metavar="NAME=WORDS", help="Add rows per command line.")
@_several("--sysctl", "sysctls", metavar="NAME=KEY=VALUE", help="Add rows per sysctl setting.")
@_several("--exclude", "exclude", metavar="AXIS=NAME[,...]", help="Omit a combination.")
@_several(
    "--against",
    "against",
    metavar="RULE[,RULE]",
    help="Reference of each row: above, first, base or pair (base and head under the same"
    " conditions).",
)
@_several(
    "--with",
    "beside",
    metavar="WHAT[,WHAT]",
    help="Additional data: locks, buddyinfo, size, profile, or the name of a metric.",
)
@tree_option
@job_option
@set_option
@_several(
    "--testbox", "testboxes", metavar="ID|GROUP", help="Testboxes to use (default: the tree's)."
)
@click.option(
    "--boots", type=click.IntRange(1, 1000), help=f"Boots per row (default: {DEFAULT_BOOTS})."
)
@looks_option
@click.option("--trusted", is_flag=True, help="Treat the patches as trusted code.")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the experiment from a YAML file; options add to it.",
)
@dry_run_option
@yes_option
@wait_option
@exit_code_option
@as_json
@pass_session
@guarded
def experiment(session: CommandContext, /, **given: Any) -> None:
    """Measure N kernels in one table, each row against its reference.

    Rows are the commits of A..B, or --base with the patches of --series, named --variant rows and
    --head. Compilers, fragments, command lines and sysctls multiply the rows.

    \b
    Examples:
      swingbot experiment v6.12..zone-lock --job vm-page-fault.yaml --against above
      swingbot experiment --base v6.1 --series v4.mbx --against base
      swingbot experiment --base v6.1 --variant batch=a.patch --variant zero=b.patch
      swingbot experiment --base v6.1 --head fix --compiler gcc-11 --compiler gcc-12
      swingbot experiment --file sweep.yaml --dry-run
    """
    options = Options.of(given)
    if given["file"] is not None:
        options = read_file(given["file"]).joined(options)
    request = _request(session, options)
    planned = plan_experiment(session.lab, request)
    dry_run, json_ = given["dry_run"], given["json_"]
    if dry_run and json_:
        say_json(plan_json(planned))
        return
    for line in plan_lines(planned):
        click.echo(line, err=not dry_run)
    if dry_run:
        return
    confirm(yes=given["yes"] or json_)
    number = request_experiment(session.lab, request)
    answer(
        session,
        ids.show("experiment", number),
        wait_=given["wait_"] or given["exit_code"],
        exit_code=given["exit_code"],
        json_=json_,
        more={"plan": plan_json(planned)} if json_ else None,
    )


def _request(session: CommandContext, options: Options) -> ExperimentRequest:
    range_ = _range(options.range)
    return ExperimentRequest(
        kernels=KernelRequest(
            range=range_,
            base=options.base,
            series=options.read_series(),
            named=[*map(_head, options.heads), *options.named()],
            paths=options.paths,
        ),
        tree=options.tree,
        axes=_axes(options),
        exclude=[_pairs("--exclude", given) for given in options.exclude],
        against=[_rule(name) for name in options.against],
        beside=options.beside,
        job_files=read_jobs(options.jobs, session.settings.paths.jobs),
        overrides=read_overrides(options.overrides),
        testboxes=options.testboxes,
        boots=options.boots or DEFAULT_BOOTS,
        looks=options.looks or 1,
        trusted=options.trusted,
    )


def _range(given: str | None) -> tuple[str, str] | None:
    if given is None:
        return None
    first, dots, last = given.partition("..")
    if not dots or not first or not last or last.startswith("."):
        raise RequestError(f"{given}: write the range as A..B; use --head for a single commit")
    return first, last


def _head(ref: str) -> NamedKernel:
    return NamedKernel(name=ref[:12] if len(ref) == 40 else ref, ref=ref)


def _axes(options: Options) -> list[Axis]:
    given: dict[str, Sequence[str]] = {
        "compiler": options.compilers,
        "fragment": options.fragments,
        "cmdline": options.cmdlines,
        "sysctl": options.sysctls,
    }
    return [
        Axis(name=name, values=tuple(_value(name, value) for value in values))
        for name, values in given.items()
        if values
    ]


def _value(axis: str, given: str) -> tuple[str, str]:
    """Return (label, value); a compiler is its own label, all other axes use NAME=VALUE."""
    label, sign, value = given.partition("=")
    if axis == "compiler" and not sign:
        return given, given
    if not sign or not label:
        raise RequestError(f"--{axis} {given}: write it as NAME=VALUE")
    return label, value


def _pairs(option: str, given: str) -> dict[str, str]:
    labels = {}
    for pair in given.split(","):
        axis, sign, label = pair.partition("=")
        if not sign or not axis or not label:
            raise RequestError(f"{option} {given}: write it as AXIS=NAME[,AXIS=NAME]")
        labels[axis] = label
    return labels


def _rule(name: str) -> ReferenceRule:
    for rule in RULES:
        if rule == name:
            return rule
    raise RequestError(f"--against must be one of {', '.join(RULES)}, got {name}")


def plan_lines(planned: Planned) -> list[str]:
    """Format the plan and its cost as text."""
    rows = len(planned.arms)
    lines = [
        f"{rows} rows of tree {planned.tree}, {planned.boots} boots of each,"
        f" against {' and '.join(planned.against)}"
    ]
    for arm in planned.arms[:_SHOWN]:
        about = planned.about.get(arm.axes.get("kernel", ""), "")
        lines.append(f"  {arm.name}  {cut(about, 60)}".rstrip())
    if rows > _SHOWN:
        lines.append(f"  and {rows - _SHOWN} more")
    return [*lines, *cost_lines(planned.cost)]


def plan_json(planned: Planned) -> dict[str, Any]:
    """The plan and its cost as JSON."""
    return {
        "tree": planned.tree,
        "against": list(planned.against),
        "boots_each": planned.boots,
        "rows": [
            {
                "name": arm.name,
                "commit": variant.commit,
                "subject": variant.subject,
                "kconfig": variant.kconfig,
                "compiler": variant.compiler,
                "axes": dict(arm.axes),
                "settings": dict(arm.settings),
            }
            for arm, variant in zip(planned.arms, planned.variants, strict=True)
        ],
        "cost": cost_json(planned.cost),
    }
