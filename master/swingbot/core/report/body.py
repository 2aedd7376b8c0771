"""The words of a report: a subject and at most `BODY_BYTES` of plain text, from facts alone.

The first screen (24 lines) says what got worse, by which commit, how sure we are and what the number means;
the rest is for the reader who wants to check it. Whatever is cut says so and where to find it whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from swingbot.core.report.facts import ReportFacts, Row, Side
from swingbot.core.report.words import WIDTH, change, change_with_interval, clean, columns, count, cut, levels, shell, spreads, sure, wrap

BODY_BYTES = 9_000  # headers add less than 1 KB: the mail stays under 10 KB
_MOST_ROWS = 12  # other rows shown in full; the page has them all
_MOST_NAMES = 8  # metrics without a change that are named
_MOST_ITEMS = 16  # facts, commands, sentences of "not checked", links
_LONGEST_URL = 200  # characters; a longer one is left out
_LONGEST_COMMAND = 1_000  # characters of all commands together; half a command is worse than none
_SUBSYSTEM = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_/.,+ -]{0,39}?):(?: |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """`subject` is one line; `body` is lines of at most 78 columns (URLs and quoted shell words may be longer), ended by a newline."""

    subject: str
    body: str


def mail(facts: ReportFacts) -> Mail:
    """The first mail about a culprit."""
    return Mail(subject=_subject(facts), body=_body(facts))


def subsystem(subject: str) -> str:
    """What a commit subject begins with, before its first colon: `mm/page_alloc`; empty if it begins otherwise."""
    match = _SUBSYSTEM.match(clean(subject))
    return match[1] if match else ""


def _subject(facts: ReportFacts) -> str:
    row, prefix = facts.headline, subsystem(facts.culprit.subject)
    where = f"[{cut(facts.tree, 24)}:{cut(facts.branch, 24)}]" + (f" [{prefix}]" if prefix else "")
    return clean(f"{where} {_short(facts.culprit.sha)}: {cut(row.metric, 60)} {change(row.change_pct, row.better) if _confirmed(row) else 'not confirmed'}")


def _confirmed(row: Row) -> bool:
    """The fresh boots show the change too. Otherwise the mail claims nothing; it is for the person who decides about it."""
    return row.verdict in ("worse", "better", "changed")


def _short(sha: str) -> str:
    return cut(sha, 40)[:12]


def _body(facts: ReportFacts) -> str:
    top, end = _first_screen(facts), _end(facts)
    others = _changed(facts)
    for shown in range(min(len(others), _MOST_ROWS), -1, -1):
        lines = [*top, *_other_rows(facts, others, shown), *_unchanged(facts), *_reproduce(facts), *_not_checked(facts), *_environment(facts)]
        if _size([*lines, *end]) <= BODY_BYTES:
            return _text([*lines, *end])
    cut_here = ["", "(cut here; the page has everything)"]
    while _size([*lines, *cut_here, *end]) > BODY_BYTES and len(lines) > len(top):
        lines.pop()
    return _text([*lines, *cut_here, *end])


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _size(lines: Iterable[str]) -> int:
    return len(_text(lines).encode())


def _first_screen(facts: ReportFacts) -> list[str]:
    row, commit = facts.headline, facts.culprit
    claim = f"{cut(row.metric, 80)} is {change(row.change_pct, row.better)} with this commit than with its parent:"
    doubt = f"A bisection of {cut(row.metric, 80)} ended at this commit, but fresh boots of it and its parent show no clear change:"
    lines = wrap(claim if _confirmed(row) else doubt)
    lines += ["", *wrap(f'{_short(commit.sha)} ("{cut(commit.subject, 120)}")', "    ", "  ")]
    lines += [*wrap(f"by {cut(commit.author, 100)}", "    ", "  "), *wrap(f"in {_place(facts)}", "    ", "  ")]
    lines += [
        "",
        *_sides(row, "  "),
        *wrap(_change(row), "    ", "  change  "),
    ]
    lines += [
        "",
        *wrap(f"{_which_is_better(row)}; {_level(row)}+- is the standard deviation between boots. Measured on {_box(row)}, unit job {cut(row.unit_job, 120)}."),
    ]
    if row.sentence:
        lines += wrap(cut(row.sentence, 300))
    lines += ["", *wrap(_evidence(facts))]
    page = _url(facts.links.get("page", ""))
    return [*lines, "", f"Everything about it: {page}"] if page else lines


def _place(facts: ReportFacts) -> str:
    return f"{cut(facts.tree, 40)}, branch {cut(facts.branch, 60)}, {cut(facts.url, 100)}"


def _which_is_better(row: Row) -> str:
    return "Neither direction is better" if row.better is None else f"{row.better.capitalize()} is better"


def _level(row: Row) -> str:
    """What the levels are, where wild boots or runs made them other than plain means: the printed change is theirs."""
    return f"the levels are each the {cut(row.level, 100)}; " if row.level else ""


def _box(row: Row) -> str:
    """The testbox, always with the label that says what its numbers are worth."""
    return cut(row.testbox, 63) + (f" ({cut(row.label, 100)})" if row.label else "")


def _change(row: Row) -> str:
    return change_with_interval(row.change_pct, row.interval_pct, row.better)


def _sides(row: Row, indent: str) -> list[str]:
    """Both sides in two lines with aligned columns: mean, standard deviation, unit, boots, runs."""
    unit = cut(row.unit, 20)
    sides = zip(("parent", "commit"), levels(row.base.mean, row.head.mean), spreads(row.base.stddev, row.head.stddev), (row.base, row.head), strict=True)
    lines = [(f"{indent}{name}  {mean} +- {sd} {unit}", _n(side)) for name, mean, sd, side in sides]
    if all(columns(f"{left}   {n}") <= WIDTH for left, n in lines):
        return [f"{left}   {n}" for left, n in lines]
    return [line for left, n in lines for line in (left, f"{indent}        {n}")]


def _n(side: Side) -> str:
    return f"{count(side.boots, 'boot')}, {count(side.runs, 'run')}"


def _evidence(facts: ReportFacts) -> str:
    b, row = facts.bisection, facts.headline
    search = f"bisected {count(b.candidates, 'commit')} with {count(b.boots, 'boot')} of {count(b.kernels, 'kernel')}"
    fresh = f"{row.base.boots}+{row.head.boots} fresh boots (parent + commit), which all numbers above come from."
    if not _confirmed(row):
        return f"The search was {sure(b.probability)}: {search}; NOT confirmed by {fresh}"
    sentence = f"{sure(b.probability)}: {search}; confirmed by {fresh}"
    return sentence[0].upper() + sentence[1:]


def _changed(facts: ReportFacts) -> list[Row]:
    """The other rows that changed: what got worse first, then the larger change first."""
    rank = {"worse": 0, "changed": 1, "better": 2}
    rows = [row for row in facts.rows if row.key != facts.headline.key and row.verdict in rank]
    return sorted(rows, key=lambda row: (rank[row.verdict], -abs(row.change_pct or 0), row.key))


def _other_rows(facts: ReportFacts, rows: list[Row], shown: int) -> Iterator[str]:
    if not rows:
        return
    yield from ("", "Also changed, parent against commit:")
    for box, jobs in _grouped(rows[:shown]).items():
        yield from ("", *wrap(f"On {box}:", "  ", "  "))
        for unit_job, of_job in jobs.items():
            yield from ("", *wrap(cut(unit_job, 120), "  ", "  "))
            for row in of_job:
                yield from wrap(f"{cut(row.metric, 80)}: {_change(row)}", "      ", "    ")
                yield from _sides(row, "      ")
    if len(rows) > shown:
        yield ""
        yield from wrap(f"and {len(rows) - shown} more: {_more(facts)}", "  ", "  ")


def _grouped(rows: Iterable[Row]) -> dict[str, dict[str, list[Row]]]:
    """By testbox (with its label), then unit job, in the order of the first row of each."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        groups.setdefault(_box(row), {}).setdefault(row.unit_job, []).append(row)
    return groups


def _more(facts: ReportFacts) -> str:
    return _url(facts.links.get("table", "")) or _url(facts.links.get("page", "")) or "on the page of this report"


def _unchanged(facts: ReportFacts) -> Iterator[str]:
    """Silence about a metric must not be read as "no change": say which were compared and what came out."""
    others = [row for row in facts.rows if row.key != facts.headline.key]
    for verdict, words in (("same", "Compared, no change seen"), ("unclear", "Compared, unclear (too noisy or too few boots)"), ("invalid", "Not comparable")):
        names = [_name(row, facts.rows) for row in others if row.verdict == verdict]
        if names:
            tail = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            yield ""
            yield from wrap(f"{words}: {', '.join(names[:_MOST_NAMES])}{tail}.")


def _name(row: Row, rows: Sequence[Row]) -> str:
    """A row in a list; its unit job only where the metric alone would not say which is meant."""
    twice = any(other.metric == row.metric and other.unit_job != row.unit_job for other in rows)
    return f"{cut(row.metric, 60)}{f' of {cut(row.unit_job, 80)}' if twice else ''} on {_box_name(row)}"


def _box_name(row: Row) -> str:
    return cut(row.testbox, 63)


def _reproduce(facts: ReportFacts) -> Iterator[str]:
    given = (*facts.reproduce, facts.command)
    whole = len(facts.reproduce) <= _MOST_ITEMS and sum(map(len, given)) <= _LONGEST_COMMAND and all(clean(line) == line for line in given)
    if not whole:
        yield ""
        yield from wrap(f"To reproduce: the commands do not fit into a mail; they are here: {_more(facts)}")
        return
    if facts.command:
        yield from ("", "The program was called as", *shell(facts.command))
    if facts.reproduce:
        yield from ("", "To reproduce:")
        for line in facts.reproduce:
            yield from shell(line)


def _not_checked(facts: ReportFacts) -> Iterator[str]:
    if facts.not_checked:
        yield from ("", "Not checked:")
        for sentence in facts.not_checked[:_MOST_ITEMS]:
            yield from wrap(cut(sentence, 200), "  ", "- ")


def _environment(facts: ReportFacts) -> Iterator[str]:
    b = facts.bisection
    searched = f"{_short(facts.base)}..{_short(facts.head)} ({count(b.candidates, 'commit')}, {count(b.builds, 'kernel')} built, bisection {cut(b.id, 20)})"
    known = {"commit": facts.culprit.sha, "parent": facts.parent, "searched": searched, "kconfig": facts.kconfig, "compiler": facts.compiler_version}
    yield from ("", "Facts:")
    for name, value in [*known.items(), *list(facts.facts.items())[:_MOST_ITEMS]]:
        yield from wrap(f"{cut(name, 40)}: {cut(value, 160)}", "    ", "  ")


def _end(facts: ReportFacts) -> list[str]:
    urls = [(cut(name, 20), _url(url)) for name, url in facts.links.items() if name != "page"]
    links = [f"  {name}: {url}" for name, url in urls[:_MOST_ITEMS] if url]
    lines = ["", "Links:", *links] if links else []
    if facts.headline.verdict == "worse":
        lines += ["", *wrap("If you fix this in a commit of its own, you may add"), *wrap(f"Reported-by: {cut(facts.reporter, 120)}", "    ", "  ")]
    contact = cut(facts.contact, 120)
    return [*lines, "", *wrap(f"Sent by a bot, which may be wrong. A person answers for it: {contact}. Report {cut(facts.report, 20)}.")]


def _url(url: str) -> str:
    """`url` if it can stand in a mail as it is, else nothing."""
    return url if url.isascii() and clean(url) == url and " " not in url and len(url) <= _LONGEST_URL else ""
