"""The testbox groups that the request in progress may see, for whoever reads the database.

The web service sets them for a token limited to groups; each transaction that begins in that
request is then limited to their rows (`swingbot_db/scope.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class GroupsNotLimited(Exception):
    """The database cannot limit what a request reads; the message says what the operator does."""

    def __init__(self) -> None:
        super().__init__(
            "this database cannot limit tokens to testbox groups, and refuses these tokens: run"
            " `swingbot db roles` as a superuser, then `swingbot db upgrade`"
        )


VISIBLE_GROUPS: Final[ContextVar[Sequence[str] | None]] = ContextVar("groups", default=None)


@contextmanager
def everything_visible() -> Iterator[None]:
    """See all rows: for what does not depend on the person, and to find out who it is."""
    before = VISIBLE_GROUPS.set(None)
    try:
        yield
    finally:
        VISIBLE_GROUPS.reset(before)
