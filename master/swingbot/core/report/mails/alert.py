"""Mails to the operator about the lab itself: what one sees, and what one does. One when it begins, one when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from swingbot.core.mail.message import Mail, as_text, web_address
from swingbot.core.model.statuses import AlertKind
from swingbot.core.text.plain import clean, cut, wrap

# Subjects while it lasts and after, with the testbox for {}.
_TITLES: Final[dict[AlertKind, tuple[str, str]]] = {
    "lost": ("testbox {} is lost", "testbox {} is back"),
    "quarantined": ("testbox {} is quarantined", "testbox {} may work again"),
    "moved": ("testbox {} is not what it was", "testbox {} is what it was again"),
    "invalid": ("many runs on testbox {} are invalid", "runs on testbox {} are valid again"),
    "stuck": ("the queue is stuck", "the queue moves again"),
    "disk": ("the disk is nearly full", "there is room on the disk again"),
}
# What happens by itself, and what the operator does; commands stand alone on their lines.
_WHAT_NOW: Final[dict[AlertKind, tuple[str, ...]]] = {
    "lost": (
        "Its next order brings it home first and then goes on; nothing was counted that may be wrong. If it is lost again and again it is quarantined,"
        " and you get one more mail.",
        "What to do: look whether the host of its worker is up, then let the testbox be checked there:",
        "  swingbot testbox check {}",
    ),
    "quarantined": (
        "Its orders wait, or go on on another testbox of its group. It stays so until you resume it.",
        "What to do: see what happened last, let the testbox be checked on the host of its worker, mend what is wrong, and resume it:",
        "  swingbot testbox show {}",
        "  swingbot testbox check {}",
        "  swingbot testbox resume {}",
    ),
    "moved": (
        "A kernel that it knows gave other numbers than before, so its orders wait. The same kernel is booted every ten minutes;"
        " if it gives the old numbers again, the testbox works again by itself.",
        "What to do: find what changed on it (firmware, microcode, cooling, disks, other users). If the change is meant to stay, take it as it is:",
        "  swingbot testbox show {}",
        "  swingbot testbox resume {}",
    ),
    "invalid": (
        "Invalid runs are not counted: the machine was not as its job or its file demands.",
        "What to do: let the testbox be checked; it says which setting is not as it has to be, and how to set it:",
        "  swingbot testbox check {}",
    ),
    "stuck": (
        "What to do: see what the orders wait for, and whether master, workers and loop are up:",
        "  swingbot status",
        "  swingbot list orders --filter state=running",
    ),
    "disk": (
        "What runs goes on and is taken in if there is room for it; new work is handed out by itself when there is enough again.",
        "What to do: see which raw results may go by your rules, let them go, or give the disk more space:",
        "  swingbot retention",
        "  swingbot retention --prune",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that is wrong, or was. Times in UTC."""

    kind: AlertKind
    testbox: str | None
    reason: str
    began: datetime
    ended: datetime | None = None  # None: it lasts
    first_id: str = (
        ""  # Message-ID of the mail that told that it began, for the one that tells that it is over
    )


def alert_mail(alert: Alert, *, url: str) -> Mail:
    """The mail: a page at most, plain text; `url` is where the pages are."""
    box = cut(alert.testbox or "", 63)
    page = web_address(f"{url}/testbox/{clean(alert.testbox)}" if alert.testbox else f"{url}/")
    link = [f"  {page}"] if page else []
    begun, over = (title.format(box) for title in _TITLES[alert.kind])
    if alert.ended is not None:
        return _over(alert, over, link)
    lines = [
        *wrap(f"Seen at {alert.began:%Y-%m-%d %H:%M} UTC: {begun}."),
        "",
        *wrap(cut(alert.reason, 600), "  "),
        "",
    ]
    for text in _WHAT_NOW[alert.kind]:
        command = text.startswith("  ")
        lines += [text.format(box)] if command else [*([""] if lines[-1] else []), *wrap(text), ""]
    lines += [*([""] if lines[-1] else []), *link] if link else []
    return Mail(subject=f"[swingbot] {begun}", body=as_text([*lines, "", *wrap(_END)]))


_END: Final = "This is told once; one more mail comes when it is over."


def _over(alert: Alert, title: str, link: list[str]) -> Mail:
    assert alert.ended is not None
    took = int((alert.ended - alert.began).total_seconds() // 60)
    lasted = f"{took} minutes" if took < 180 else f"{took / 60:.0f} hours"
    lines = [
        *wrap(
            f"Seen at {alert.ended:%Y-%m-%d %H:%M} UTC: {title}, after {lasted}. It had begun with:"
        ),
        "",
    ]
    lines += [*wrap(cut(alert.reason, 600), "  "), "", *link]
    begun = (alert.first_id,) if alert.first_id else ()
    return Mail(
        subject=f"[swingbot] over: {title}",
        body=as_text(lines),
        in_reply_to=alert.first_id,
        references=begun,
    )
