"""The first report about a culprit: a subject and at most `BODY_BYTES` of plain text.

The first screen (24 lines) says what got worse, which commit caused it, how certain that is and
what the number means. The rest is for readers who want to check the claim. Text that is cut is
marked as such, with a pointer to the full version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from swingbot.core.mail.message import (
    BODY_BYTES,
    Mail,
    as_text,
    fitting,
    size,
    thread_of,
    web_address,
)
from swingbot.core.model.comparison_row import ComparisonRow, Tail
from swingbot.core.report.claim import claim_of
from swingbot.core.report.parts.comparison_table import grid
from swingbot.core.report.parts.lkp_table import LkpGroup, lkp_table
from swingbot.core.report.parts.proof import clue_lines, gate_lines
from swingbot.core.report.report_facts import ConfigDiffers, ReportFacts
from swingbot.core.text.numbers import count, sure, two_digits
from swingbot.core.text.plain import WIDTH, clean, cut, repository, shell, wrap

_MOST_ROWS = 12  # other rows shown in full; the page has all of them
_MOST_TESTBOXES = 6  # testboxes in the first table
_MOST_NAMES = 8  # names in a list of unchanged metrics
_MOST_ITEMS = 16  # facts, commands, sentences under "Not checked", links
# x86_64 takes no longer kernel command line
COMMAND_LINE_CHARACTERS = 2048
_MOST_BOOTS = 12  # boot ids per side
_MOST_LKP = 8  # rows of the table in LKP's format
_MOST_ASKED = 6  # symbols that the configuration of the tree sets
_LONGER = {"cmdline": COMMAND_LINE_CHARACTERS, "kernel configuration": 700}
_LONGEST_COMMAND = 1_000  # characters of all commands together; a truncated command is useless
_SUBSYSTEM = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_/.,+ -]{0,39}?):(?: |$)")


def mail(facts: ReportFacts) -> Mail:
    """Return the first mail about a culprit.

    It replies to the mail that posted the patch, if that is known, and starts a thread otherwise.
    """
    subject, parent, references = thread_of(facts.posted, _subject(facts))
    return Mail(subject=subject, body=_body(facts), in_reply_to=parent, references=references)


def subsystem(subject: str) -> str:
    """Return the prefix of a commit subject before its first colon, such as `mm/page_alloc`.

    Empty if the subject has no such prefix.
    """
    match = _SUBSYSTEM.match(clean(subject))
    return match[1] if match else ""


def _subject(facts: ReportFacts) -> str:
    row, prefix = facts.headline, subsystem(facts.culprit.subject)
    where = f"[{cut(facts.tree, 24)}:{cut(facts.branch, 24)}]" + (f" [{prefix}]" if prefix else "")
    claim = claim_of(row) if _confirmed(row) else "not confirmed"
    return clean(f"{where} {_short(facts.culprit.sha)}: {cut(row.metric, 60)} {claim}")


def _confirmed(row: ComparisonRow) -> bool:
    """Return True if the fresh boots show the change too.

    If not, the mail makes no claim; it is meant for the moderator only.
    """
    return row.changed or row.spread_changed


def _short(sha: str) -> str:
    return cut(sha, 40)[:12]


def _body(facts: ReportFacts) -> str:
    top, end = _first_screen(facts), _end(facts)
    others = _changed(facts)
    for lkp in (_lkp(facts), []):
        for shown in range(min(len(others), _MOST_ROWS), -1, -1):
            lines = [
                *top,
                *_other_rows(facts, others, shown),
                *_unchanged(facts),
                *clue_lines(facts.clues),
                *_reproduce(facts),
                *lkp,
            ]
            lines += [*_not_checked(facts), *_environment(facts)]
            if size([*lines, *end]) <= BODY_BYTES:
                return as_text([*lines, *end])
    return fitting(lines, end, keep=len(top))


def _first_screen(facts: ReportFacts) -> list[str]:
    row, commit = facts.headline, facts.culprit
    metric = cut(row.metric, 80)
    claim = (
        f"{metric} has {claim_of(row)} with this commit, around the same mean as with its parent:"
        if row.spread_changed
        else f"{metric} is {claim_of(row)} with this commit than with its parent:"
    )
    doubt = (
        f"A bisection of {metric} ended at this commit, but fresh boots of the commit and its"
        " parent show no clear change:"
    )
    lines = wrap(claim if _confirmed(row) else doubt)
    lines += ["", *wrap(f'{_short(commit.sha)} ("{cut(commit.subject, 120)}")', "    ", "  ")]
    lines += [
        *wrap(f"by {cut(commit.author, 100) or 'an author without an address'}", "    ", "  "),
        *wrap(f"in {_place(facts)}", "    ", "  "),
    ]
    testboxes = _same_metric(facts)
    lines += ["", *grid([testbox.testbox for testbox in testboxes], testboxes)]
    lines += [
        "",
        *wrap(
            f"{_which_is_better(row)}; {_level(row)}sd is the standard deviation between boots."
            f" {_measured(facts, testboxes)}"
        ),
    ]
    if facts.machine:
        lines += wrap(f"Machine: {cut(facts.machine, 300)}.")
    if row.tail is not None:
        lines += ["", *wrap(_tail(row.tail))]
    if row.sentence:
        lines += wrap(cut(row.sentence, 300))
    lines += ["", *wrap(_evidence(facts)), *gate_lines(facts.gates)]
    page = web_address(facts.links.get("page", ""))
    return [*lines, "", f"Full report: {page}"] if page else lines


def _same_metric(facts: ReportFacts) -> list[ComparisonRow]:
    """Return the headline and the rows of its unit job and metric on other testboxes.

    Rows that changed come first.
    """
    row = facts.headline
    others = [
        other
        for other in facts.rows
        if (other.unit_job, other.metric) == (row.unit_job, row.metric)
        and other.testbox != row.testbox
    ]
    return [
        row,
        *sorted(others, key=lambda other: (not _confirmed(other), other.testbox))[
            : _MOST_TESTBOXES - 1
        ],
    ]


def _measured(facts: ReportFacts, rows: Sequence[ComparisonRow]) -> str:
    """Name the testboxes, each with the label that says what its numbers are worth."""
    row = facts.headline
    testboxes = ", ".join(dict.fromkeys(_testbox(each) for each in rows))
    return f"Measured on {testboxes}, unit job {cut(row.unit_job, 120)}."


def _place(facts: ReportFacts) -> str:
    return (
        f"{cut(facts.tree, 40)}, branch {cut(facts.branch, 60)}, {cut(repository(facts.url), 100)}"
    )


def _which_is_better(row: ComparisonRow) -> str:
    return (
        "Neither direction is better"
        if row.better is None
        else f"{row.better.capitalize()} is better"
    )


def _level(row: ComparisonRow) -> str:
    """Say which estimate the levels are, where outliers make plain means unsuitable.

    The printed change refers to the same estimate.
    """
    return f"the levels are each the {cut(row.level, 100)}; " if row.level else ""


def _tail(tail: Tail) -> str:
    """Say that the change is one of a tail of the runs, with the percentile that shows it."""
    more, less = (
        ("the commit", "its parent") if tail.side == "head" else ("the parent", "the commit")
    )
    off = "" if tail.apart_pct is None else f" by about {two_digits(tail.apart_pct, '+')} %"
    rest = (
        ""
        if tail.rest_pct is None
        else f"; the others change by {two_digits(tail.rest_pct, '+')} %"
    )
    return (
        f"The tail follows the change: {tail.far} of {tail.runs} runs of {more} are far off the"
        f" others{off}, of {less} {tail.other_far} of {tail.other_runs}{rest}. The"
        f" p{tail.percentile} of the runs goes from {tail.base:.4g} to {tail.head:.4g}."
    )


def _testbox(row: ComparisonRow) -> str:
    """Return the testbox with the label that says what its numbers are worth."""
    return cut(row.testbox, 63) + (f" ({cut(row.label, 100)})" if row.label else "")


def _evidence(facts: ReportFacts) -> str:
    b, row = facts.bisection, facts.headline
    search = (
        f"bisected {count(b.candidates, 'commit')} with {count(b.boots, 'boot')} of"
        f" {count(b.kernels, 'kernel')}"
    )
    fresh = (
        f"{row.base.boots}+{row.head.boots} fresh boots (parent + commit), the source of all"
        " numbers above."
    )
    if not _confirmed(row):
        return f"The search was {sure(b.probability)}: {search}; NOT confirmed by {fresh}"
    sentence = f"{sure(b.probability)}: {search}; confirmed by {fresh}"
    return sentence[0].upper() + sentence[1:]


def _changed(facts: ReportFacts) -> list[ComparisonRow]:
    """Return the changed rows that are not in the first table, regressions and large changes
    first."""
    rank = {"worse": 0, "changed": 1, "better": 2}
    above = {row.key for row in _same_metric(facts)}
    rows = [row for row in facts.rows if row.key not in above and row.verdict in rank]
    return sorted(rows, key=lambda row: (rank[row.verdict], -abs(row.change_pct or 0), row.key))


def _other_rows(facts: ReportFacts, rows: list[ComparisonRow], shown: int) -> Iterator[str]:
    if not rows:
        return
    yield from ("", "Also changed:")
    for (testbox, unit_job), group in _grouped(rows[:shown]).items():
        yield from ("", *wrap(f"On {testbox}, {cut(unit_job, 120)}:", "    ", "  "))
        yield from grid([row.metric for row in group], group)
    if len(rows) > shown:
        yield ""
        yield from wrap(f"and {len(rows) - shown} more, see {_more(facts)}", "  ", "  ")


def _grouped(rows: Sequence[ComparisonRow]) -> dict[tuple[str, str], list[ComparisonRow]]:
    """Group rows by testbox (with its label) and unit job, in order of first appearance."""
    groups: dict[tuple[str, str], list[ComparisonRow]] = {}
    for row in rows:
        groups.setdefault((_testbox(row), row.unit_job), []).append(row)
    return groups


def _more(facts: ReportFacts) -> str:
    return (
        web_address(facts.links.get("table", ""))
        or web_address(facts.links.get("page", ""))
        or "the page of this report"
    )


def _unchanged(facts: ReportFacts) -> Iterator[str]:
    """List the other metrics that were compared, with the result.

    A missing metric must not be mistaken for an unchanged one.
    """
    above = {row.key for row in _same_metric(facts)}
    others = [row for row in facts.rows if row.key not in above]
    for verdict, words in (
        ("same", "Compared, no change seen"),
        ("unclear", "Compared, unclear (too noisy or too few boots)"),
        ("invalid", "Not comparable"),
    ):
        names = [_name(row, facts.rows) for row in others if row.verdict == verdict]
        if names:
            tail = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            yield ""
            yield from wrap(f"{words}: {', '.join(names[:_MOST_NAMES])}{tail}.")


def _name(row: ComparisonRow, rows: Sequence[ComparisonRow]) -> str:
    """Name a row in a list, with its unit job only where the metric alone is ambiguous."""
    twice = any(other.metric == row.metric and other.unit_job != row.unit_job for other in rows)
    unit_job = f" of {cut(row.unit_job, 80)}" if twice else ""
    return f"{cut(row.metric, 60)}{unit_job} on {cut(row.testbox, 63)}"


def _reproduce(facts: ReportFacts) -> Iterator[str]:
    commands = (*facts.reproduce, facts.command)
    whole = (
        len(facts.reproduce) <= _MOST_ITEMS
        and sum(map(len, commands)) <= _LONGEST_COMMAND
        and all(clean(line) == line for line in commands)
    )
    if not whole:
        yield ""
        yield from wrap(f"To reproduce: the commands are too long for a mail, see {_more(facts)}")
        return
    if facts.command:
        yield from ("", "Command line of the test:", *shell(facts.command))
    if facts.reproduce:
        yield from ("", "To reproduce:")
        for line in facts.reproduce:
            yield from shell(line)


def _lkp(facts: ReportFacts) -> list[str]:
    """Return the headline's unit job on its testbox as LKP prints it."""
    row = facts.headline
    rows = {
        other.metric: other
        for other in facts.rows
        if (other.testbox, other.unit_job) == (row.testbox, row.unit_job)
    } | {row.metric: row}
    group = LkpGroup(
        base=facts.parent,
        head=facts.culprit.sha,
        head_subject=facts.culprit.subject,
        axes=(("tbox_group", row.testbox), ("testcase", row.unit_job)),
    )
    lines = lkp_table(group, list(rows.values())[-_MOST_LKP:], WIDTH)
    return (
        ["", "The same in LKP's format (all runs; deviations above 2 % only):", "", *lines]
        if lines
        else []
    )


def _not_checked(facts: ReportFacts) -> Iterator[str]:
    if facts.not_checked:
        yield from ("", "Not checked:")
        for sentence in facts.not_checked[:_MOST_ITEMS]:
            yield from wrap(cut(sentence, 200), "  ", "- ")


def _environment(facts: ReportFacts) -> Iterator[str]:
    b = facts.bisection
    searched = (
        f"{_short(facts.base)}..{_short(facts.head)} ({count(b.candidates, 'commit')},"
        f" {count(b.builds, 'kernel')} built, bisection {cut(b.id, 20)})"
    )
    known = {"commit": facts.culprit.sha, "parent": facts.parent, "searched": searched}
    if facts.posted is not None:
        known["posted as"] = facts.posted.message_id
    known |= {
        f"boots of the {side}": _boots(ids) for side, ids in list(facts.boots.items())[:2] if ids
    }
    known |= {"kconfig": facts.kconfig}
    if facts.config_differs is not None:
        known["kernel configuration"] = _config(facts.config_differs)
    known |= {"compiler": facts.compiler_version}
    yield from ("", "Facts:")
    for name, value in [*known.items(), *list(facts.facts.items())[:_MOST_ITEMS]]:
        most = _LONGER.get(name, 160)
        yield from wrap(f"{cut(name, 40)}: {cut(value, most)}", "    ", "  ")


def _config(differs: ConfigDiffers) -> str:
    symbols = f"{count(differs.symbols, 'symbol')} different from the parent's"
    if not differs.asked:
        return f"{symbols}, none that kconfig sets"
    shown = [cut(line, 80) for line in differs.asked[:_MOST_ASKED]]
    more = len(differs.asked) - len(shown)
    return f"{symbols}; kconfig sets {', '.join(shown)}" + (f" and {more} more" if more else "")


def _boots(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST_BOOTS} more" if len(ids) > _MOST_BOOTS else ""
    return " ".join(cut(id_, 20) for id_ in ids[:_MOST_BOOTS]) + more


def _end(facts: ReportFacts) -> list[str]:
    urls = [
        (cut(name, 20), web_address(url)) for name, url in facts.links.items() if name != "page"
    ]
    links = [f"  {name}: {url}" for name, url in urls[:_MOST_ITEMS] if url]
    lines = ["", "Links:", *links] if links else []
    contact = cut(facts.contact, 120)
    return [
        *lines,
        *_tags(facts),
        "",
        *wrap(
            f"Sent by a bot, which may be wrong. A human is responsible for it: {contact}."
            f" Report {cut(facts.report, 20)}."
        ),
    ]


def _tags(facts: ReportFacts) -> list[str]:
    """Return the tags for a commit that fixes a regression; nothing if it is not one."""
    if facts.headline.verdict != "worse":
        return []
    if facts.merged is False:
        return [
            "",
            *wrap(
                "The patch is not merged. If you fix this in a new version of it, no tag is needed."
            ),
        ]
    closes = web_address(facts.closes) or web_address(facts.links.get("page", ""))
    lines = [
        "",
        *wrap(
            "If you fix this in a separate commit (not in a new version of this one), please add"
        ),
    ]
    lines += wrap(f"Reported-by: {cut(facts.reporter, 120)}", "    ", "  ")
    lines += [f"  Closes: {closes}"] if closes else []
    if facts.regzbot and facts.merged and re.fullmatch(r"[0-9a-f]{40}", facts.culprit.sha):
        lines += ["", f"#regzbot introduced: {facts.culprit.sha}"]
    return lines
