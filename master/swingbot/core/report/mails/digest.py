"""The weekly digest of improvements: which weeks are due, and the text of the mail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from swingbot.core.mail.message import BODY_BYTES, Mail, as_text, size, web_address
from swingbot.core.text.plain import clean, cut, wrap
from swingbot.core.thresholds import DIGEST_GRACE, DIGEST_WEEKS

_MOST: Final = 60  # maximum number of entries; the rest is a count and a link


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """One metric that improved.

    `commit` and `subject` name the commit responsible, if it is known. Otherwise the improvement
    happened between `base` and `head`.
    """

    tree: str
    branch: str
    testbox: str
    label: str
    unit_job: str
    metric: str
    change_pct: float
    base: str
    head: str
    commit: str = ""
    subject: str = ""
    page: str = ""  # path of its page, such as /comparison/c5


def weeks_due(now: datetime, written: Collection[date]) -> list[date]:
    """Return the Mondays (UTC) of the complete weeks that have no digest yet, oldest first."""
    today = (now - DIGEST_GRACE).astimezone(UTC).date()
    this_monday = today - timedelta(days=today.weekday())
    return [
        monday
        for n in range(DIGEST_WEEKS, 0, -1)
        if (monday := this_monday - timedelta(weeks=n)) not in written
    ]


def span(monday: date) -> tuple[datetime, datetime]:
    """Return the beginning and the end of the week, in UTC."""
    begin = datetime.combine(monday, time(), UTC)
    return begin, begin + timedelta(weeks=1)


def week_name(monday: date) -> str:
    """Return the ISO 8601 week, such as `2026-W47`."""
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02}"


def digest(monday: date, improvements: Sequence[Improvement], *, url: str, contact: str) -> Mail:
    """Return the mail for one week, with the largest improvements of each tree first.

    The body has at most BODY_BYTES.
    """
    trees = list(
        dict.fromkeys(item.tree for item in sorted(improvements, key=lambda item: item.tree))
    )
    begin, end = span(monday)
    number = f"{len(improvements)} improvement{'s' if len(improvements) != 1 else ''}"
    head = wrap(
        f"Improvements between {begin:%Y-%m-%d} and {end - timedelta(days=1):%Y-%m-%d}:"
        f" {number} in {_named(trees)}."
    )
    head += [
        "",
        *wrap("No action is needed. We write a separate mail about any of these on request."),
    ]
    ordered = sorted(
        improvements, key=lambda item: (item.tree, -abs(item.change_pct), item.metric, item.testbox)
    )
    blocks = [_entry(item, url) for item in ordered]
    tail = ["", *wrap(f"Sent by a bot, which may be wrong. Contact: {cut(contact, 100)}.")]
    shown = min(len(blocks), _MOST)
    while (
        size(text := _body(head, ordered[:shown], blocks, len(improvements) - shown, url, tail))
        > BODY_BYTES
        and shown
    ):
        shown -= 1
    return Mail(
        subject=f"[swingbot] {week_name(monday)}: {number} in {len(trees)}"
        f" tree{'s' if len(trees) != 1 else ''}",
        body=as_text(text),
    )


def _named(trees: Sequence[str]) -> str:
    names = [cut(tree, 40) for tree in trees[:5]]
    return ", ".join(names) + (f" and {len(trees) - 5} more trees" if len(trees) > 5 else "")


def _body(
    head: list[str],
    ordered: Sequence[Improvement],
    blocks: Sequence[list[str]],
    more: int,
    url: str,
    tail: list[str],
) -> list[str]:
    lines = list(head)
    for n, (item, block) in enumerate(zip(ordered, blocks, strict=False)):
        if n == 0 or ordered[n - 1].tree != item.tree:
            lines += ["", f"{cut(item.tree, 40)}, branch {cut(item.branch, 30)}:"]
        lines += block
    if more:
        lines += [
            "",
            f"and {more} more. All comparisons:",
            f"  {web_address(f'{url}/comparisons') or '(see the web pages)'}",
        ]
    return [*lines, *tail]


def _entry(item: Improvement, url: str) -> list[str]:
    lines = [
        "",
        *wrap(f"{clean(item.metric)[:80]} {abs(item.change_pct):.1f}% better", "    ", "  "),
    ]
    lines += wrap(
        f"{item.unit_job[:120]} on {cut(item.testbox, 63)}"
        + (f" ({cut(item.label, 60)})" if item.label else ""),
        "    ",
    )
    if item.commit:
        lines += wrap(f'by {clean(item.commit)[:12]} ("{cut(item.subject, 100)}")', "    ")
    else:
        lines += wrap(
            f"between {clean(item.base)[:12]} and {clean(item.head)[:12]}; the commit is not known",
            "    ",
        )
    page = web_address(f"{url}{item.page}") if item.page else ""
    return [*lines, f"    {page}"] if page else lines
