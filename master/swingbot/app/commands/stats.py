"""`swingbot stats`: the verdicts of swingbot for any numbers."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import as_json, guarded, say_json
from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.stats.parse import Sides, form_of, parse_boots, parse_file
from swingbot.core.stats.rules import CLASSES, rule_for
from swingbot.core.text.numbers import levels
from swingbot.service.ports import RequestError

LARGEST_FILE = 64 << 20  # bytes


@click.group()
def stats() -> None:
    """Statistics on any numbers."""


@stats.command("compare")
@click.option("--base", help="Runs of the base: commas between runs, semicolons between boots.")
@click.option("--head", help="Runs of the head, likewise.")
@click.option(
    "--file",
    "path",
    type=click.Path(allow_dash=True, exists=True, dir_okay=False),
    help="Both sides from a JSON, CSV or TSV file; - for stdin.",
)
@click.option(
    "--lower-is-better",
    is_flag=True,
    help="Smaller numbers are better; so they are of --class time.",
)
@click.option(
    "--paired", is_flag=True, help="The n-th boot of base belongs to the n-th boot of head."
)
@click.option(
    "--unordered",
    is_flag=True,
    help="The boots are not given in the order they ran: look for no drift.",
)
@click.option(
    "--class",
    "klass",
    type=click.Choice(CLASSES),
    default="kpi",
    show_default=True,
    help="Rules of which class of metric.",
)
@click.option(
    "--min-effect",
    type=float,
    default=1.0,
    show_default=True,
    help="Smallest change in per cent that counts; points for --class share.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.005,
    show_default=True,
    help="How often equal kernels may get a verdict with a direction.",
)
@click.option("--exit-code", is_flag=True, help="3 if it got worse, 4 if unclear or invalid.")
@as_json
@guarded
def stats_compare(
    base: str | None,
    head: str | None,
    path: str | None,
    lower_is_better: bool,
    paired: bool,
    unordered: bool,
    klass: str,
    min_effect: float,
    alpha: float,
    exit_code: bool,
    json_: bool,
) -> None:
    """Compare two sets of numbers as swingbot does.

    A file holds {"base": [[1, 2], [3, 4]], "head": [...]} (a list of runs for each boot), or a table: a line a run with the columns
    side, boot and value, or a line a boot with the columns base and head.

    \b
    Examples:
      swingbot stats compare --base '100,101;99,102;101,100' --head '90,91;92,90;91,93'
      swingbot stats compare --file runs.csv --class time --paired --json
    """
    _check(min_effect, alpha)
    sides = _sides(base, head, path)
    rule = rule_for(
        klass,
        "lower" if lower_is_better or klass == "time" else "higher",
        min_effect,
        paired=paired,
        alpha=alpha,
    )
    row = compare(*sides, replace(rule, trend_alpha=0.0) if unordered else rule)
    if json_:
        say_json(row.verdict_json())
    else:
        click.echo("\n".join(_words(row)))
    if exit_code:
        sys.exit({"worse": 3, "unclear": 4, "invalid": 4}.get(row.verdict, 0))


def _check(min_effect: float, alpha: float) -> None:
    if not 0 <= min_effect <= 1e6:
        raise RequestError(
            f"--min-effect {min_effect:g} is no change in per cent; give a number from 0 up"
        )
    if not 0 < alpha < 0.5:
        raise RequestError(
            f"--alpha {alpha:g} is no error rate; give a number above 0 and below 0.5, such as 0.005 for 1 in 200"
        )


def _sides(base: str | None, head: str | None, path: str | None) -> Sides:
    """The boots of both sides, counted from 1 as people count."""
    if (path is None) == (base is None and head is None) or (
        path is None and (base is None or head is None)
    ):
        raise RequestError("give --base and --head, or --file")
    try:
        if path is None:
            sides = parse_boots(base or ""), parse_boots(head or "")
            return _from_one(sides[0]), _from_one(sides[1])
        raw = sys.stdin.buffer.read(LARGEST_FILE + 1) if path == "-" else Path(path).read_bytes()
        if len(raw) > LARGEST_FILE:
            raise RequestError(f"the file is larger than {LARGEST_FILE >> 20} MiB")
        content = raw.decode("utf-8-sig")
        return parse_file(content, form_of(path, content))
    except UnicodeDecodeError:
        raise RequestError("the file is no text in UTF-8") from None
    except ValueError as error:
        raise RequestError(str(error)) from None


def _from_one(boots: list[BootRuns]) -> list[BootRuns]:
    return [replace(boot, k=boot.k + 1) for boot in boots]


def _words(row: ComparisonRow) -> list[str]:
    """The row for a person: verdict and change, both sides, interval, how the level was made, why."""
    # with the digits that the printed change can be recomputed from
    means = levels(row.base.mean, row.head.mean)
    lines = [
        _headline(row),
        *(
            f"  {name} {mean}{_side(side)}"
            for name, side, mean in zip(("base", "head"), (row.base, row.head), means, strict=True)
        ),
    ]
    if row.interval_pct:
        low, high = row.interval_pct
        lines.append(f"  95 % interval {_bound(low)} .. {_bound(high)} %{_points(row)}")
    if row.level:
        lines.append(f"  level: {row.level}")
    return [*lines, *([f"  {row.reason}"] if row.reason else [])]


def _headline(row: ComparisonRow) -> str:
    """`18.0% worse`; other verdicts first, with the measured change behind."""
    if row.verdict in ("worse", "better"):
        return text.change(row)
    return f"{row.verdict}" + (
        f" ({_bound(row.change_pct)} %)" if row.change_pct is not None else ""
    )


def _side(side: Side) -> str:
    within = (
        f", +- {text.number(side.stddev_within)} within boots"
        if side.stddev_within is not None
        else ""
    )
    between = f" +- {text.number(side.stddev)} between boots" if side.stddev is not None else ""
    return f"{between}{within} ({_many(side.boots, 'boot')}, {_many(side.runs, 'run')})"


def _points(row: ComparisonRow) -> str:
    bounds = row.points.interval if row.points else None
    return f" ({bounds[0]:+.3g} .. {bounds[1]:+.3g} points)" if bounds else ""


def _bound(pct: float) -> str:
    return f"{pct:+.2f}" if abs(pct) < 1e5 else f"{pct:+.4g}" if math.isfinite(pct) else "?"


def _many(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
