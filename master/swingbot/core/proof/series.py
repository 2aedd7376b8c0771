"""Find the end of the patch series of a commit from the Message-IDs of neighbouring commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core import limits
from swingbot.core.mail.posting import NUMBERED, posted_as


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEnd:
    """The last commit of the culprit's series on this branch.

    `commit` is None if no series is known; `reason` says why.
    """

    commit: str | None
    patches: int  # of the series, from the culprit on
    reason: str


def series_end(commits: Sequence[tuple[str, str]]) -> SeriesEnd:
    """Return the end of the series that contains the first commit.

    `commits` are (id, message), the culprit first, then the following commits of the branch, oldest
    first. A series continues while neighbours have Message-IDs of one thread with rising numbers.
    Without a numbered Message-ID no series is known.
    """
    if not commits:
        return SeriesEnd(
            commit=None,
            patches=0,
            reason="no series known: the commit is no longer on the branch",
        )
    place = _place(commits[0][1])
    if place is None:
        return SeriesEnd(
            commit=None,
            patches=0,
            reason="no series known: the commit message has no Message-ID of a numbered patch",
        )
    thread, number = place
    last = 0
    for idx, (_, message) in enumerate(commits[1 : limits.SERIES_COMMITS + 1], 1):
        neighbour = _place(message)
        if neighbour is None or neighbour[0] != thread or neighbour[1] <= number:
            break
        last, number = idx, neighbour[1]
    return SeriesEnd(commit=commits[last][0], patches=last + 1, reason="")


def _place(message: str) -> tuple[tuple[str, str], int] | None:
    """Return (thread, patch number) of the mail in which the commit was posted."""
    posted = posted_as(message)
    match = NUMBERED.fullmatch(posted.message_id) if posted is not None else None
    return None if match is None else ((match["head"], match["tail"]), int(match["number"]))
