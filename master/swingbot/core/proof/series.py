"""Where does the series end that a commit was posted in? Told from the Message-IDs of neighbouring commits; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.mail.posting import posted_as

# `git send-email` writes <20240102030405.1234-3-who@host>, b4 <20240102-topic-v1-3-0123456789ab@host>: the number is the patch's place.
_NUMBERED: Final = re.compile(
    r"<(?P<head>[^@<>]{6,300})-(?P<number>\d{1,4})-(?P<tail>[^@<>]*@[^@<>]+)>"
)
MOST_COMMITS: Final = 300  # a longer series is nobody's


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEnd:
    """The last commit of the culprit's series on this branch; `commit` None: no series is known, for `reason`."""

    commit: str | None
    patches: int  # of the series from the culprit on
    reason: str


def series_end(commits: Sequence[tuple[str, str]]) -> SeriesEnd:
    """`commits` are (id, message), the culprit first, then those after it along the branch, oldest first.

    A series goes on while neighbours bear Message-IDs of one thread with rising numbers. A lone numbered patch whose neighbour is of
    another thread ends its series; without a numbered Message-ID nothing is known.
    """
    if not commits:
        return SeriesEnd(
            commit=None,
            patches=0,
            reason="no series known: the commit is not on the branch any more",
        )
    place = _place(commits[0][1])
    if place is None:
        return SeriesEnd(
            commit=None,
            patches=0,
            reason="no series known: the commit's message names no patch of one",
        )
    thread, number = place
    last = 0
    for idx, (_, message) in enumerate(commits[1 : MOST_COMMITS + 1], 1):
        found = _place(message)
        if found is None or found[0] != thread or found[1] <= number:
            break
        last, number = idx, found[1]
    return SeriesEnd(commit=commits[last][0], patches=last + 1, reason="")


def _place(message: str) -> tuple[tuple[str, str], int] | None:
    """(thread, number of the patch) of the mail that a commit was posted as."""
    posted = posted_as(message)
    match = _NUMBERED.fullmatch(posted.message_id) if posted is not None else None
    return None if match is None else ((match["head"], match["tail"]), int(match["number"]))
