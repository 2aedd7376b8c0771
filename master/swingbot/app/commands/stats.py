"""`swingbot stats`: the verdicts of swingbot for any numbers."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import click

from swingbot.app.commands import text
from swingbot.app.commands.context import as_json, guarded, say_json
from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.stats.findings import look
from swingbot.core.stats.findings_text import percent, tell
from swingbot.core.stats.history_file import draw_history, parse_history
from swingbot.core.stats.parse import (
    BadSamples,
    Sides,
    form_of,
    in_turns,
    parse_boots,
    parse_file,
    parse_perf,
)
from swingbot.core.stats.rules import CLASSES, rule_for
from swingbot.core.text.numbers import count, levels
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
    "--base-perf",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="Output of perf stat [-r N] in one boot of the base; once for each boot.",
)
@click.option(
    "--head-perf",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="The same for the head.",
)
@click.option("--event", help="Which counter of perf stat, such as cycles or seconds-elapsed.")
@click.option(
    "--repetitions",
    type=click.IntRange(2, 1_000_000),
    help="N of perf stat -r N where its output does not tell (-x and -j).",
)
@click.option(
    "--order",
    help="In which order the boots ran: b or h for each, such as bhhbbhhb. Default: the sides took turns.",
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
    base_perf: tuple[str, ...],
    head_perf: tuple[str, ...],
    event: str | None,
    repetitions: int | None,
    order: str | None,
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
    side, boot and value, or a line a boot with the columns base and head. A column time (base_time and head_time), or {"runs": [1, 2],
    "time": 3} in JSON, tells when a boot ran: then a drift is looked for in that order, and sides that ran in blocks are recognised.

    \b
    Examples:
      swingbot stats compare --base '100,101;99,102;101,100;100,99' --head '90,91;92,90;91,93;90,92'
      swingbot stats compare --file runs.csv --class time --paired --json
      swingbot stats compare --base-perf a1 --base-perf a2 --head-perf b1 --head-perf b2 --event cycles --lower-is-better
    """
    _check(min_effect, alpha)
    if base_perf or head_perf or event or repetitions:
        if base is not None or head is not None or path is not None:
            raise RequestError(
                "--base-perf and --head-perf do not go with --base, --head or --file"
            )
        sides = _perf_sides(base_perf, head_perf, event, repetitions)
    else:
        sides = _sides(base, head, path)
    sides = _in_order(sides, order)
    rule = rule_for(
        klass,
        "lower" if lower_is_better or klass == "time" else "higher",
        min_effect,
        paired=paired,
        alpha=alpha,
    )
    row = compare(*sides, replace(rule, trend_alpha=0.0) if unordered else rule)
    known = all(boot.at is not None for side in sides for boot in side)
    if json_:
        say_json(row.verdict_json() | {"order": "given" if known else "assumed in turns"})
    else:
        click.echo("\n".join(_words(row)))
        if not known and not unordered and not paired:
            click.echo("  assumed: boots of base and head took turns (--order or times tell)")
    if exit_code:
        sys.exit({"worse": 3, "unclear": 4, "invalid": 4}.get(row.verdict, 0))


@stats.command("history")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True, dir_okay=False))
@click.option(
    "--min-effect",
    type=float,
    default=0.0,
    show_default=True,
    help="Leave out steps that are smaller than so many per cent.",
)
@click.option("--no-picture", is_flag=True, help="Only the findings.")
@as_json
@guarded
def stats_history(path: str, min_effect: float, no_picture: bool, json_: bool) -> None:
    """Find steps, creep and changes of noise in a history of numbers.

    FILE is a CSV or TSV table with the columns x (a commit, a date, a number) and value, or a JSON list of objects with these
    keys; - is stdin. Optional columns: time (a number; points are sorted by it), run (lines of one x are its runs and are
    averaged), anchor (what one unchanged kernel gave beside this point: shows whether the machine moved).

    \b
    Examples:
      swingbot stats history throughput.csv
      swingbot stats history --json --min-effect 1 - < throughput.json
    """
    if not 0 <= min_effect <= 1e6:
        raise RequestError(f"--min-effect must be 0 or more, got {min_effect:g}")
    content = _content(path)
    try:
        points = parse_history(content, form_of(path, content))
    except ValueError as error:
        raise RequestError(str(error)) from None
    values = [point.value for point in points]
    anchors = [point.anchor for point in points if point.anchor is not None]
    found = look(values, anchors or None)
    shown = replace(found, changes=tuple(c for c in found.changes if abs(c.pct) >= min_effect))
    if json_:
        say_json({"x": [point.x for point in points], **shown.to_json()})
        return
    if not no_picture:
        width = shutil.get_terminal_size((100, 24)).columns
        click.echo(draw_history(values, shown, width=width) + "\n")
    click.echo("\n".join(tell(shown, [point.x for point in points])))


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
        content = _content(path)
        return parse_file(content, form_of(path, content))
    except ValueError as error:
        raise RequestError(str(error)) from None


def _content(path: str) -> str:
    """The text of a file or of stdin (-). Raises RequestError."""
    try:
        raw = sys.stdin.buffer.read(LARGEST_FILE + 1) if path == "-" else Path(path).read_bytes()
        if len(raw) > LARGEST_FILE:
            raise RequestError(f"the file is larger than {LARGEST_FILE >> 20} MiB")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError("the file is not valid UTF-8 text") from None
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from None


def _perf_sides(
    base: tuple[str, ...], head: tuple[str, ...], event: str | None, repetitions: int | None
) -> Sides:
    if not base or not head:
        raise RequestError("give --base-perf and --head-perf, once for each boot")
    sides = []
    for paths in (base, head):
        texts = []
        for path in paths:
            with Path(path).open("rb") as file:
                texts.append(file.read(LARGEST_FILE).decode("utf-8", "replace"))
        try:
            sides.append(parse_perf(texts, event, repetitions))
        except BadSamples as error:
            raise RequestError(str(error)) from None
    return sides[0], sides[1]


def _in_order(sides: Sides, order: str | None) -> Sides:
    if order is None:
        return sides
    try:
        return in_turns(sides, order)
    except BadSamples as error:
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
        lines.append(f"  95 % interval {percent(low)} .. {percent(high)} %{_points(row)}")
    if row.level:
        lines.append(f"  level: {row.level}")
    return [*lines, *([f"  {row.reason}"] if row.reason else [])]


def _headline(row: ComparisonRow) -> str:
    """`18.0% worse`; other verdicts first, with the measured change behind."""
    if row.verdict in ("worse", "better"):
        return text.change(row)
    return f"{row.verdict}" + (
        f" ({percent(row.change_pct)} %)" if row.change_pct is not None else ""
    )


def _side(side: Side) -> str:
    within = (
        f", +- {text.number(side.stddev_within)} within boots"
        if side.stddev_within is not None
        else ""
    )
    between = f" +- {text.number(side.stddev)} between boots" if side.stddev is not None else ""
    return f"{between}{within} ({count(side.boots, 'boot')}, {count(side.runs, 'run')})"


def _points(row: ComparisonRow) -> str:
    bounds = row.points.interval if row.points else None
    return f" ({bounds[0]:+.3g} .. {bounds[1]:+.3g} points)" if bounds else ""
