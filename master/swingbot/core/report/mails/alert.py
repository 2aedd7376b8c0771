"""Mails to the operator about the lab itself: the symptom and what to do about it.

Each problem is reported twice: when it begins and when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from swingbot.core.mail.message import Mail, as_text, web_address
from swingbot.core.model.statuses import AlertKind
from swingbot.core.text.plain import clean, cut, wrap

# Subject when the problem begins and when it ends; {} is the testbox.
_TITLES: Final[dict[AlertKind, tuple[str, str]]] = {
    "lost": ("testbox {} is lost", "testbox {} is back"),
    "quarantined": ("testbox {} is quarantined", "testbox {} is back in service"),
    "moved": ("testbox {} has drifted", "testbox {} is back at its old level"),
    "invalid": ("many runs on testbox {} are invalid", "runs on testbox {} are valid again"),
    "stuck": ("the queue is stuck", "the queue is moving again"),
    "disk": ("the disk is nearly full", "the disk has free space again"),
}
# What swingbot does by itself and what the operator should do. Commands are on lines of their own.
_WHAT_NOW: Final[dict[AlertKind, tuple[str, ...]]] = {
    "lost": (
        "Its next order first recovers the testbox and then continues. No doubtful result was"
        " counted. If the testbox is lost repeatedly, it is"
        " quarantined, and you get one more mail.",
        "What to do: see whether the host of its worker is up, then check the testbox there:",
        "  swingbot testbox check {}",
    ),
    "quarantined": (
        "Its orders wait or move to another testbox of its group. It stays quarantined until you"
        " resume it.",
        "What to do: see what happened last, check the testbox on the host of its worker, fix the"
        " problem, and resume the testbox:",
        "  swingbot testbox show {}",
        "  swingbot testbox check {}",
        "  swingbot testbox resume {}",
    ),
    "moved": (
        "A kernel that it has measured before gave different results, so its orders wait. The same"
        " kernel is booted every ten minutes. If the old results return, the testbox goes back into"
        " service by itself.",
        "What to do: find out what changed on it (firmware, microcode, cooling, disks, other"
        " users). If the change is meant to stay, accept the new level:",
        "  swingbot testbox show {}",
        "  swingbot testbox resume {}",
    ),
    "invalid": (
        "Invalid runs are not counted. The machine did not meet the requirements of its job or of"
        " its testbox file.",
        "What to do: check the testbox. The check names each wrong setting and how to correct it:",
        "  swingbot testbox check {}",
    ),
    "stuck": (
        "What to do: see what the orders wait for, and whether master, workers and loop are up:",
        "  swingbot status",
        "  swingbot list orders --filter state=running",
    ),
    "disk": (
        "Running work continues, and its results are stored while there is room. New work starts"
        " by itself once enough space is free.",
        "What to do: see which raw results your retention rules allow to delete, then delete them"
        " or add disk space:",
        "  swingbot retention",
        "  swingbot retention --prune",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One problem in the lab, current or past. Times are in UTC."""

    kind: AlertKind
    testbox: str | None
    reason: str
    began: datetime
    ended: datetime | None = None  # None: not over yet
    # Message-ID of the mail about the beginning; the mail about the end replies to it
    first_id: str = ""


def alert_mail(alert: Alert, *, url: str) -> Mail:
    """Return the mail, plain text of at most one page; `url` is the base URL of the web pages."""
    testbox = cut(alert.testbox or "", 63)
    page = web_address(f"{url}/testbox/{clean(alert.testbox)}" if alert.testbox else f"{url}/")
    link = [f"  {page}"] if page else []
    begun, over = (title.format(testbox) for title in _TITLES[alert.kind])
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
        lines += (
            [text.format(testbox)] if command else [*([""] if lines[-1] else []), *wrap(text), ""]
        )
    lines += [*([""] if lines[-1] else []), *link] if link else []
    return Mail(subject=f"[swingbot] {begun}", body=as_text([*lines, "", *wrap(_END)]))


_END: Final = "You get one more mail when this is over, and no reminder before."


def _over(alert: Alert, title: str, link: list[str]) -> Mail:
    assert alert.ended is not None
    took = int((alert.ended - alert.began).total_seconds() // 60)
    lasted = f"{took} minutes" if took < 180 else f"{took / 60:.0f} hours"
    lines = [
        *wrap(
            f"Seen at {alert.ended:%Y-%m-%d %H:%M} UTC: {title}, after {lasted}. The problem was:"
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
