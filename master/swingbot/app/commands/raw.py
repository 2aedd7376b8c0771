"""`swingbot raw`: download raw results. `swingbot reparse`: parse stored results again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from swingbot.app.commands import text
from swingbot.app.commands.completion import ids_of
from swingbot.app.commands.context import CommandContext, require_service, with_session_json
from swingbot.app.limits import OUTPUT_BYTES
from swingbot.app.raw_export import Export, RawResults
from swingbot.core.model import ids
from swingbot.service.result import reparse as reparse_runs
from swingbot.service.result.reparse import Reparsed
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.terminal import say_json

_SAY_SECONDS: Final = 2.0


def _size(context: click.Context, option: click.Parameter, given: str) -> int:
    """Return bytes; K, M, G and T are powers of 1024. Raises BadParameter."""
    match = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", given, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"{given!r} is not a size; write it as 500M or 20G")
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.argument("id_", metavar="ID", shell_complete=ids_of())
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Output directory; complete files in it are kept.",
)
@click.option(
    "--without-kernels",
    is_flag=True,
    help="Omit the configuration, System.map, build log and image of each kernel.",
)
@click.option(
    "--max-size",
    callback=_size,
    default=f"{OUTPUT_BYTES >> 30}G",
    show_default=True,
    metavar="SIZE",
    help="Write at most SIZE, such as 500M or 20G.",
)
@with_session_json
def raw(
    session: CommandContext,
    id_: str,
    out: Path,
    without_kernels: bool,
    max_size: int,
    json_: bool,
) -> None:
    """Fetch the raw results of a comparison, experiment, bisection, incident, report, order or
    boot.

    Writes every file unmodified and checked against its sha256, one directory per run named like
    LKP's result roots, and tables for R and pandas; README describes the layout. Says how much it
    will write before it begins. After an interruption, run the command again. Over HTTP, /raw/ID/
    of the web service has the same files.

    \b
    Example:
      swingbot raw c5 --out /tmp/c5
    """
    programs = load_programs(Path(session.settings.paths.jobs) / "programs")
    export = Export(_source(session, programs), out, programs, _say, max_size)
    export.run(id_, kernels=not without_kernels)
    if json_:
        counts = {
            "files": export.fetched + export.kept,
            "fetched": export.fetched,
            "kept": export.kept,
            "bytes_fetched": export.bytes,
        }
        say_json(
            {
                "out": str(out),
                **counts,
                "runs": export.runs,
                "samples": export.samples,
                "missing": export.notes,
            }
        )
    else:
        click.echo(
            f"{export.fetched + export.kept} files ({export.kept} already present), {export.runs}"
            f" runs and {export.samples} samples in {out}; see README there"
        )
    if export.notes:
        _say(
            f"swingbot: {len(export.notes)} items could not be fetched, see README; the first:"
            f" {export.notes[0]}"
        )
        raise SystemExit(1)


def _source(session: CommandContext, programs: Mapping[str, Program]) -> RawResults:
    if session.login is not None:
        from swingbot.app.remote.http_raw import HttpRaw

        return HttpRaw(session.login)
    require_service()
    from swingbot.adapters.artifacts import ArtifactDirectory
    from swingbot.app.database_raw import DatabaseRaw

    store = ArtifactDirectory(session.settings.artifacts)
    return DatabaseRaw(session.engine, store, programs)


@click.command()
@click.option("--program", metavar="P", help="Parse only runs of this program or monitor.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--again", is_flag=True, help="Include runs already parsed by the current parser.")
@with_session_json
def reparse(
    session: CommandContext, program: str | None, dry_run: bool, again: bool, json_: bool
) -> None:
    """Parse stored raw results again after a parser was fixed, and report what changed.

    The values of a boot are replaced atomically. Repeating the command does nothing, because each
    run records its parser. Verdicts based on old values are not changed; the output lists them.

    \b
    Example:
      swingbot reparse --program netperf --dry-run
    """
    ticker = Ticker(_say)
    request = reparse_runs.ReparseRequest(program=program, dry_run=dry_run, again=again)
    done = reparse_runs.reparse(session.lab, request, ticker.tell)
    facts = reparse_facts(done, program=program, dry_run=dry_run)
    if json_:
        say_json(facts)
    else:
        click.echo(reparse_text(facts))
    if done.lost:
        raise SystemExit(1)


class Ticker:
    """Prints progress and the estimated remaining time every two seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._began = self._said = time.monotonic()

    def tell(self, done: Reparsed) -> None:
        now = time.monotonic()
        if now - self._said >= _SAY_SECONDS and done.total:
            self._said = now
            remaining = (done.total - done.boots) * (now - self._began) / max(1, done.boots)
            self._say(
                f"{done.boots} of {done.total} boots, {100 * done.boots / done.total:.0f} %, about"
                f" {remaining:.0f} s left; {done.changed} runs changed"
            )


def reparse_facts(done: Reparsed, *, program: str | None, dry_run: bool) -> dict[str, Any]:
    """Result as JSON: counts, changed metrics, and the first 1000 changed runs with values."""
    return {
        "program": program,
        "dry_run": dry_run,
        "boots": done.boots,
        "runs_read": done.runs,
        "runs_current": done.current,
        "runs_changed": done.changed,
        "runs_new": done.new,
        "boots_unreadable": done.lost,
        "metrics": [
            {
                "metric": name,
                **{kind: done.metrics[name][kind] for kind in ("added", "gone", "changed")},
            }
            for name in sorted(done.metrics)
        ],
        "statuses": [
            {"old": old, "new": new, "runs": count}
            for (old, new), count in sorted(done.statuses.items())
        ],
        "changes": [
            {
                "boot": ids.show("boot", change.boot),
                "unit_job": change.unit_job,
                "run": change.number,
                "status": {"old": change.old_status, "new": change.new_status},
                "reason": change.reason,
                "metrics": {
                    name: {"kind": reread.kind, "old": list(reread.old), "new": list(reread.new)}
                    for name, reread in change.metrics.items()
                },
            }
            for change in done.listed
        ],
        "changes_left_out": done.changed - len(done.listed),
        "unreadable": [
            {"boot": ids.show("boot", boot), "reason": why} for boot, why in done.unreadable
        ],
        "comparisons": [ids.show("comparison", number) for number in done.comparisons],
        "bisections": [ids.show("bisection", number) for number in done.bisections],
    }


def reparse_text(facts: Mapping[str, Any]) -> str:
    """Result as text."""
    would = "would change" if facts["dry_run"] else "changed"
    lines = [
        f"parsed {facts['runs_read']} runs of {facts['boots']} boots again; skipped"
        f" {facts['runs_current']} runs already parsed by the current parser;"
        f" {facts['runs_changed']} runs {would}"
    ]
    lines += [f"{row['runs']} runs: {row['old']} -> {row['new']}" for row in facts["statuses"]]
    if facts["metrics"]:
        rows = [
            (
                row["metric"],
                row["added"],
                row["gone"],
                row["changed"],
                _example(facts, row["metric"]),
            )
            for row in facts["metrics"]
        ]
        lines.append(text.table(rows, ("METRIC", "ADDED", "REMOVED", "CHANGED", "FIRST")))
    lines += [
        f"{row['boot']} keeps its old values: {row['reason']}" for row in facts["unreadable"][:20]
    ]
    requests = [*facts["comparisons"], *facts["bisections"]]
    if requests:
        lines.append(
            "based on old values and not changed:"
            f" {', '.join(requests[:50])}{' and more' if len(requests) > 50 else ''}"
        )
    return "\n".join(lines)


def _example(facts: Mapping[str, Any], metric: str) -> str:
    """Describe the first change of a metric: boot, run, old and new values."""
    for change in facts["changes"]:
        if metric in change["metrics"]:
            values = change["metrics"][metric]
            place = f"{change['boot']} {change['unit_job']} run {change['run']}"
            return f"{place}: {_values(values['old'])} -> {_values(values['new'])}"
    return "see --json"


def _values(values: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.15g}" for value in values[:3])
    return (shown + (", ..." if len(values) > 3 else "")) or "none"
