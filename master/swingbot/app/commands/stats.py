"""`swingbot stats`: apply swingbot's statistics to any numbers."""

from __future__ import annotations

import itertools
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from swingbot.app import limits
from swingbot.app.commands.context import as_json, guarded
from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.stats.findings import look, without_small
from swingbot.core.stats.findings_text import percent, tell
from swingbot.core.stats.history_file import draw_history, parse_history
from swingbot.core.stats.parse import (
    BadSamples,
    Sides,
    form_of,
    in_turns,
    lone_zeros,
    lowest_share,
    parse_boots,
    parse_file,
    parse_perf,
)
from swingbot.core.stats.rules import CLASSES, rule_for
from swingbot.core.table.verdict import doubt, in_words
from swingbot.core.text.numbers import count, levels, short
from swingbot.service.ports import RequestError
from swingbot.web.plots.findings_plot import findings_plot
from swingbot_jobs import codec
from swingbot_jobs.terminal import say_json

_LEAST_TURNS: Final = 3  # fewer boots of each side may alternate by chance


@click.group()
def stats() -> None:
    """Compare any numbers and analyse their history."""


@stats.command("compare")
@click.option("--base", help="Runs of the base: runs separated by commas, boots by semicolons.")
@click.option("--head", help="Runs of the head, in the same format.")
@click.option(
    "--file",
    "path",
    type=click.Path(allow_dash=True, exists=True, dir_okay=False),
    help="JSON, CSV or TSV file with both sides; - for stdin.",
)
@click.option(
    "--base-perf",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="Output of perf stat [-r N] in one boot of the base; repeat for each boot.",
)
@click.option(
    "--head-perf",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="The same for the head.",
)
@click.option("--event", help="Counter of perf stat, such as cycles or seconds-elapsed.")
@click.option(
    "--repetitions",
    type=click.IntRange(2, 1_000_000),
    help="N of perf stat -r N, if its output omits N (-x and -j).",
)
@click.option(
    "--order",
    help="Order of the boots, b or h for each, such as bhhbbhhb (default: in such turns).",
)
@click.option(
    "--lower-is-better",
    is_flag=True,
    help="Smaller numbers are better; implied by --class time.",
)
@click.option(
    "--paired", is_flag=True, help="Pair the n-th boot of base with the n-th boot of head."
)
@click.option(
    "--unordered",
    is_flag=True,
    help="The boots are not in the order they ran; do not test for drift.",
)
@click.option(
    "--class",
    "klass",
    type=click.Choice(CLASSES),
    default="kpi",
    show_default=True,
    help="Class of metric whose rules apply.",
)
@click.option(
    "--min-effect",
    type=float,
    default=1.0,
    show_default=True,
    help="Smallest change of interest, in percent (percentage points for --class share).",
)
@click.option(
    "--alpha",
    type=float,
    default=0.005,
    show_default=True,
    help="Error rate: probability of worse or better for equal kernels.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 3 if worse, 4 if unclear or invalid.")
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

    A file contains {"base": [[1, 2], [3, 4]], "head": [...]} (a list of runs per boot), or a table:
    one line per run with the columns side, boot and value, or one line per boot with the columns
    base and head. A column time (base_time and head_time), or {"runs": [1, 2], "time": 3} in JSON,
    gives the time of a boot: boots are then tested for drift in that order, and sides that ran in
    blocks are detected.

    \b
    Examples:
      swingbot stats compare --base '100,101;99,102;101,100;100,99' --head '90,91;92,90;91,93;90,92'
      swingbot stats compare --file runs.csv --class time --paired --json
      swingbot stats compare --base-perf a1 --base-perf a2 --head-perf b1 --head-perf b2 \\
          --event cycles --lower-is-better
    """
    _check(min_effect, alpha)
    if base_perf or head_perf or event or repetitions:
        if base is not None or head is not None or path is not None:
            raise RequestError(
                "--base-perf and --head-perf cannot be combined with --base, --head or --file"
            )
        sides, share = _perf_sides(base_perf, head_perf, event, repetitions)
    else:
        share = 100.0
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
    strict = not unordered and _strict_turns(sides)
    if json_:
        say_json(
            row.verdict_json()
            | {"order": "strict turns" if strict else "given" if known else "assumed in turns"}
            | ({"running_pct": share} if share < 100 else {})
        )
    else:
        click.echo("\n".join([*_words(row), *_doubts(sides, share)]))
        if strict:
            looks = "looks like this change" if row.changed else "may hide or feign a change"
            click.echo(
                "  base and head in strict turns, b h b h: a testbox whose every other boot is slow"
                f" {looks}; boot in turns that mirror, b h h b"
            )
        if not known and not unordered and not paired:
            click.echo(
                "  assumed: boots of base and head in turns that mirror, b h h b (give --order or"
                " times otherwise)"
            )
    if exit_code:
        sys.exit({"worse": 3, "unclear": 4, "invalid": 4}.get(row.verdict, 0))


@stats.command("history")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True, dir_okay=False))
@click.option(
    "--min-effect",
    type=float,
    default=0.0,
    show_default=True,
    help="Omit steps, ramps and creep smaller than this, in percent.",
)
@click.option("--no-picture", is_flag=True, help="Print only the findings.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a picture with levels and steps to FILE.",
)
@as_json
@guarded
def stats_history(
    path: str, min_effect: float, no_picture: bool, svg: str | None, json_: bool
) -> None:
    """Find steps, creep and changes of noise in a history of numbers.

    FILE is a CSV or TSV table with the columns x (a commit, a date, a number) and value, or a JSON
    list of objects with these keys; - is stdin. Optional columns: time (a number; points are sorted
    by it), run (lines with the same x are runs and are averaged), anchor (value of an unchanged
    kernel measured together with this point; shows whether the machine changed). Semicolons between
    the columns and decimal commas are read too.

    \b
    Examples:
      swingbot stats history throughput.csv
      swingbot stats history --svg throughput.svg throughput.csv
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
    findings = look(values, anchors or None, runs=[point.runs for point in points])
    shown = without_small(findings, min_effect)
    if svg is not None:
        title = "stdin" if path == "-" else Path(path).name
        picture = findings_plot(title, [str(point.x) for point in points], values, shown)
        _write(svg, picture)
    if json_:
        say_json({"x": [point.x for point in points], **codec.plain(shown)})
        return
    if not no_picture:
        width = shutil.get_terminal_size((100, 24)).columns
        click.echo(draw_history(values, shown, width=width) + "\n")
    click.echo("\n".join(tell(shown, [point.x for point in points])))


def _write(path: str, content: str) -> None:
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from None


def _check(min_effect: float, alpha: float) -> None:
    if not 0 <= min_effect <= 1e6:
        raise RequestError(f"--min-effect must be between 0 and 1e6 percent, got {min_effect:g}")
    if not 0 < alpha < 0.5:
        raise RequestError(
            f"--alpha must be between 0 and 0.5, got {alpha:g}; 0.005 is an error rate of 1 in 200"
        )


def _sides(base: str | None, head: str | None, path: str | None) -> Sides:
    """Boots of both sides, numbered from 1."""
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
    """Contents of a file or of stdin (-) as text. Raises RequestError."""
    name = "stdin" if path == "-" else path
    try:
        raw = (
            sys.stdin.buffer.read(limits.STATS_BYTES + 1)
            if path == "-"
            else Path(path).read_bytes()
        )
        if len(raw) > limits.STATS_BYTES:
            raise RequestError(f"{name} is larger than {limits.STATS_BYTES >> 20} MiB, the limit")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(f"{name} is not valid UTF-8 text") from None
    except OSError as error:
        raise RequestError(f"cannot read {name}: {error.strerror}") from None


def _perf_sides(
    base: tuple[str, ...], head: tuple[str, ...], event: str | None, repetitions: int | None
) -> tuple[Sides, float]:
    """Return both sides, and the lowest running share of the event in percent."""
    if not base or not head:
        raise RequestError("give both --base-perf and --head-perf, once for each boot")
    sides, shares = [], []
    for paths in (base, head):
        texts = []
        for path in paths:
            with Path(path).open("rb") as file:
                texts.append(file.read(limits.STATS_BYTES).decode("utf-8", "replace"))
        try:
            sides.append(parse_perf(texts, event, repetitions))
            shares.append(lowest_share(texts, event))
        except BadSamples as error:
            raise RequestError(str(error)) from None
    return (sides[0], sides[1]), min(shares)


def _doubts(sides: Sides, share: float) -> list[str]:
    """Return lines about numbers that may be no measurement."""
    zeros = sum(map(lone_zeros, sides))
    found = {
        f"extrapolated by perf: counted in {share:.4g} % of the time": share < 100,
        f"{count(zeros, 'run')} of 0 far below all others: leave out a run that did nothing": (
            zeros > 0
        ),
    }
    return [f"  {words}" for words, holds in found.items() if holds]


def _strict_turns(sides: Sides) -> bool:
    """Whether the boots are known to have alternated, three of each side at least, so that every
    other boot of the testbox is one of the same side."""
    placed = [(b.at, number) for number, side in enumerate(sides) for b in side if b.at is not None]
    turns = [side for _, side in sorted(placed)]
    many = [turns.count(0), turns.count(1)]
    return (
        len(placed) == sum(map(len, sides))
        and min(many) >= _LEAST_TURNS
        and all(side != after for side, after in itertools.pairwise(turns))
    )


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
    """Format a row as text: verdict and change, both sides, interval, error level, reason."""
    # Enough digits to recompute the printed change.
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
    """Headline such as `18.0% worse`; other verdicts have the measured change beside them."""
    if row.verdict in ("worse", "better") or row.change_pct is None:
        return in_words(row)
    measured = f"{percent(row.change_pct)} %"
    if row.verdict == "unclear":
        return f"{measured}, {doubt(row)}"
    return f"{in_words(row)} ({measured})"


def _side(side: Side) -> str:
    within = (
        f", +- {short(side.stddev_within)} within boots" if side.stddev_within is not None else ""
    )
    between = f" +- {short(side.stddev)} between boots" if side.stddev is not None else ""
    return f"{between}{within} ({count(side.boots, 'boot')}, {count(side.runs, 'run')})"


def _points(row: ComparisonRow) -> str:
    bounds = row.points.interval if row.points else None
    return f" ({bounds[0]:+.3g} .. {bounds[1]:+.3g} points)" if bounds else ""
