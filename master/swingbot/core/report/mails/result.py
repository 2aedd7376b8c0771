"""The mail to the requester of a table or bisection that is over.

Facts in, text out. Of a private request the mail says only where to look, because an operator's
copies of mails have other readers than the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.mail.message import BODY_BYTES, Mail, as_text, fitting, size, web_address
from swingbot.core.text.plain import WIDTH, clean, columns, cut, wrap

_MOST_KERNELS: Final = 12
_NAME: Final = 24  # columns
_SUBJECT: Final = 100
_ENDS: Final = {
    "done": "is over",
    "failed": "failed",
    "cancelled": "was cancelled",
    "culprit": "found the commit",
    "several": "found several commits",
    "credible_set": "narrowed it down to a few commits",
    "creep": "found a change that crept in over many commits",
    "not_reproduced": "found no change between the ends",
    "inconclusive": "found no answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKernel:
    """A row of a table, or a commit that a bisection named."""

    name: str
    commit: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A table or bisection that is over.

    `headline` is the most important claim, `claims` are all of them; `reason` is why it failed or
    has no answer. `page` is the URL of its page. Of a `private` one the mail has only the status.
    """

    id: str
    status: str
    page: str
    contact: str
    headline: str = ""
    claims: Sequence[str] = ()
    reason: str = ""
    kernels: Sequence[ResultKernel] = ()
    private: bool = False


def result_mail(result: Result) -> Mail:
    """Return the mail, plain text of at most one page."""
    over = clean(f"{result.id} {_ENDS.get(result.status, result.status)}")
    said = [] if result.private else [*result.claims, *filter(None, [result.reason])]
    lines = wrap(f"{over}.")
    for claim in said:
        lines += ["", *wrap(cut(claim, 600), "  ")]
    lines += [] if result.private else _kernels(result.kernels)
    page = web_address(result.page)
    end = [
        *("", "All numbers, and how they were made:", ""),
        *([f"  {page}"] if page else []),
        f"  swingbot show {result.id}",
        "",
        *wrap(
            "You requested this mail with --mail; no other follows. Sent by a bot, which may be"
            f" wrong. Contact: {cut(result.contact, 100)}."
        ),
    ]
    headline = "" if result.private else cut(result.headline, _SUBJECT)
    whole = [*lines, *end]
    return Mail(
        subject=f"[swingbot] {result.id}: {headline}" if headline else f"[swingbot] {over}",
        body=as_text(whole) if size(whole) <= BODY_BYTES else fitting(lines, end, keep=1),
    )


def _kernels(kernels: Sequence[ResultKernel]) -> list[str]:
    if not kernels:
        return []
    shown = kernels[:_MOST_KERNELS]
    names = [
        "" if kernel.name == kernel.commit[:12] else cut(kernel.name, _NAME) for kernel in shown
    ]
    width = max(map(columns, names))
    lines = []
    for name, kernel in zip(names, shown, strict=True):
        gap = " " * (width - columns(name)) + "  " * (width > 0)
        line = f"  {name}{gap}{clean(kernel.commit)[:12]}  "
        lines.append(line + cut(kernel.subject, WIDTH - columns(line)))
    more = len(kernels) - len(shown)
    return ["", *lines, *([f"  and {more} more"] if more else [])]
