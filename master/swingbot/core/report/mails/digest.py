"""What got better in a week, in one mail: which weeks are due, and their text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from swingbot.core.mail.message import BODY_BYTES, Mail, as_text, size, web_address
from swingbot.core.text.plain import clean, cut, wrap
from swingbot.core.thresholds import DIGEST_GRACE, DIGEST_WEEKS

_MOST: Final = 60  # entries that are written at most; the rest is a number and a link


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """One metric that got better: by a commit (`commit`, `subject`) where one was found, else between `base` and `head`."""

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
    page: str = ""  # path of the page that shows it, such as /comparison/c5


def weeks_due(now: datetime, written: Collection[date]) -> list[date]:
    """Mondays (UTC) of the complete weeks that still lack a digest, oldest first."""
    today = (now - DIGEST_GRACE).astimezone(UTC).date()
    this_monday = today - timedelta(days=today.weekday())
    return [
        monday
        for n in range(DIGEST_WEEKS, 0, -1)
        if (monday := this_monday - timedelta(weeks=n)) not in written
    ]


def span(monday: date) -> tuple[datetime, datetime]:
    """Begin and end of that week, in UTC."""
    begin = datetime.combine(monday, time(), UTC)
    return begin, begin + timedelta(weeks=1)


def week_name(monday: date) -> str:
    """`2026-W47`, as ISO 8601 counts weeks."""
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02}"


def digest(monday: date, found: Sequence[Improvement], *, url: str, contact: str) -> Mail:
    """The mail of one week, the largest improvements first within each tree; at most BODY_BYTES of body."""
    trees = list(dict.fromkeys(item.tree for item in sorted(found, key=lambda item: item.tree)))
    begin, end = span(monday)
    number = f"{len(found)} improvement{'s' if len(found) != 1 else ''}"
    head = wrap(
        f"What got better between {begin:%Y-%m-%d} and {end - timedelta(days=1):%Y-%m-%d}: {number} in {_named(trees)}."
    )
    head += [
        "",
        *wrap(
            "Nobody has to do anything about these. A mail about one of them alone is written on request."
        ),
    ]
    ordered = sorted(
        found, key=lambda item: (item.tree, -abs(item.change_pct), item.metric, item.testbox)
    )
    blocks = [_entry(item, url) for item in ordered]
    tail = ["", *wrap(f"Sent by a bot, may be wrong; a person answers at {cut(contact, 100)}.")]
    kept = min(len(blocks), _MOST)
    while (
        size(text := _body(head, ordered[:kept], blocks, len(found) - kept, url, tail)) > BODY_BYTES
        and kept
    ):
        kept -= 1
    return Mail(
        subject=f"[swingbot] {week_name(monday)}: {number} in {len(trees)} tree{'s' if len(trees) != 1 else ''}",
        body=as_text(text),
    )


def _named(trees: Sequence[str]) -> str:
    told = [cut(tree, 40) for tree in trees[:5]]
    return ", ".join(told) + (f" and {len(trees) - 5} more trees" if len(trees) > 5 else "")


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
            f"and {more} more; all comparisons:",
            f"  {web_address(f'{url}/comparisons') or '(the pages have them)'}",
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
            f"between {clean(item.base)[:12]} and {clean(item.head)[:12]}; no commit was searched for",
            "    ",
        )
    page = web_address(f"{url}{item.page}") if item.page else ""
    return [*lines, f"    {page}"] if page else lines
