"""A sheet of numbers in the formats that kernel developers paste.

These are a mail's table, LKP's table, `perf stat` before and after, and a commit message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow, without_aliases
from swingbot.core.report.formats.sheet import Part, Sheet
from swingbot.core.report.parts.comparison_table import grid
from swingbot.core.report.parts.lkp_monitors import monitor_rows
from swingbot.core.report.parts.lkp_table import LkpGroup, lkp_lines, lkp_table
from swingbot.core.report.report_facts import Commit
from swingbot.core.text.plain import clean, cut, wrap
from swingbot_jobs.reading.perf_table import perf_table

_LONGEST_SUBJECT = 300  # LKP has no limit, but a subject of 10 kB would bury its table
_LONGEST_COMMAND = 400
_MOST_ROWS = 4  # in a commit message; a mail has all rows


class NothingToShow(ValueError):
    """The sheet lacks the numbers for this format; the message says which."""


def as_mail(sheet: Sheet) -> str:
    """Return all benchmark metrics, by testbox. Raises NothingToShow."""
    if not sheet.rows:
        raise NothingToShow(
            f"{sheet.id} has no rows yet; `swingbot wait {sheet.id}` waits for them"
        )
    lines = [*_commits(sheet), "sd is the standard deviation between boots."]
    for part in sheet.parts.values():
        rows = without_aliases(part)
        lines += [
            "",
            *wrap(f"On {_testbox(rows[0])}, {cut(rows[0].unit_job, 120)}:", "  ", ""),
            *grid([row.metric for row in rows], rows, ("before", "after")),
        ]
        for verdict, words in (
            ("unclear", "Unclear (too noisy or too few boots)"),
            ("invalid", "Not comparable"),
        ):
            names = [cut(row.metric, 80) for row in rows if row.verdict == verdict]
            lines += wrap(f"{words}: {', '.join(names)}.", "  ") if names else []
    return _text(lines)


def as_lkp(sheet: Sheet) -> str:
    """Return one LKP table per testbox and unit job: the benchmark's rows, then changed monitors.

    Raises NothingToShow.
    """
    tables = []
    base, head = (cut(commit.subject, _LONGEST_SUBJECT) for commit in (sheet.base, sheet.head))
    for (testbox, unit_job), rows in sheet.parts.items():
        axes = (("tbox_group", testbox), ("testcase", unit_job))
        group = LkpGroup(
            base=sheet.base.sha,
            base_subject=base,
            head=sheet.head.sha,
            head_subject=head,
            axes=axes,
        )
        lines = lkp_table(group, without_aliases(rows))
        if lines:
            lines += _lkp_monitors(sheet, (testbox, unit_job))
        tables.append("".join(f"{line}\n" for line in lines))
    output = "\n".join(table for table in tables if table)
    if not output:
        raise NothingToShow(f"{sheet.id} has no metric with runs on both sides")
    return output


def _lkp_monitors(sheet: Sheet, part: Part) -> list[str]:
    """Return the monitors' rows, and a count of those that did not fit."""
    values = sheet.monitors.get(part, {})
    shown = monitor_rows(values)
    lines = lkp_lines((metric, *values[metric]) for metric in shown.metrics)
    if shown.more:
        hidden = ", ".join(f"{more} of {cut(family, 40)}" for family, more in shown.more.items())
        command = f"`swingbot raw {sheet.id} --out DIR`"
        lines += ["", f"Also changed, not shown: {hidden}. {command} has every sample."]
    return lines


def as_perf(sheet: Sheet) -> str:
    """Return `perf stat -r` output for both sides of each testbox and unit job, in row order.

    `+-` is the spread over boots. The heading is the command that ran, or the unit job if the
    command is not known. Raises NothingToShow.
    """
    if not sheet.counts:
        raise NothingToShow(
            f"{sheet.id} has no perf stat counters on both sides;"
            " `--format lkp` has the benchmarks' own numbers"
        )
    tables = []
    order = list(dict.fromkeys((row.testbox, row.unit_job) for row in sheet.rows))
    for (testbox, unit_job), sides in sorted(
        sheet.counts.items(),
        key=lambda item: (order.index(item[0]) if item[0] in order else len(order), item[0]),
    ):
        command = cut(sheet.commands.get((testbox, unit_job)) or unit_job, _LONGEST_COMMAND)
        for word, commit, boots in zip(
            ("before", "after"), (sheet.base, sheet.head), sides, strict=True
        ):
            tables.append(
                f"{word}: {_commit(commit)}, on {cut(testbox, 63)}\n\n{perf_table(boots, command)}"
            )
    return "\n".join(tables)


def as_changelog(sheet: Sheet) -> str:
    """Return a few lines for a commit message: the changed metrics, or the unchanged if none
    changed.

    Raises NothingToShow.
    """
    known = without_aliases(sheet.rows)
    rows = [row for row in known if row.changed] or [row for row in known if row.verdict == "same"]
    if not rows:
        raise NothingToShow(f"{sheet.id} has no metric with a clear result for a commit message")
    lines = [*_commits(sheet), ""]
    testboxes = list(dict.fromkeys(_testbox(row) for row in rows))
    keys = [
        cut(row.metric, 60) + (f" on {cut(row.testbox, 40)}" if len(testboxes) > 1 else "")
        for row in rows
    ]
    lines += grid(keys[:_MOST_ROWS], rows[:_MOST_ROWS], ("before", "after"))
    if len(rows) > _MOST_ROWS:
        lines += [f"  and {len(rows) - _MOST_ROWS} more"]
    jobs = dict.fromkeys(cut(row.unit_job, 120) for row in rows[:_MOST_ROWS])
    lines += ["", *wrap(f"(sd between boots; {', '.join(jobs)}; on {', '.join(testboxes)})")]
    return _text(lines)


FORMS: Final[Mapping[str, Callable[[Sheet], str]]] = {
    "mail": as_mail,
    "lkp": as_lkp,
    "perf": as_perf,
    "changelog": as_changelog,
}


def _commits(sheet: Sheet) -> Iterator[str]:
    yield from wrap(f"before: {_commit(sheet.base)}", "    ", "")
    yield from wrap(f"after:  {_commit(sheet.head)}", "    ", "")


def _commit(commit: Commit) -> str:
    return f'{clean(commit.sha)[:12]} ("{cut(commit.subject, 120)}")'


def _testbox(row: ComparisonRow) -> str:
    return cut(row.testbox, 63) + (f" ({cut(row.label, 100)})" if row.label else "")


def _text(lines: list[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)
