"""What the request in progress may see of the database, for whoever reads that.

The web service sets it for all but operators; each transaction that begins in that request is then
limited to what is public or private to its person, and with a token limited to testbox groups to
their rows, or to the changes in these (`swingbot_db/scope.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


class NotLimited(Exception):
    """The database cannot limit what a request reads; the message says what the operator does."""

    def __init__(self) -> None:
        super().__init__(
            "this database cannot limit what is read, and refuses private requests and tokens for"
            " testbox groups: run `swingbot db roles` as a superuser, then `swingbot db upgrade`"
        )


@dataclass(frozen=True, slots=True)
class Visible:
    """What is public, or private to `person`: of `groups` of testboxes (None: of all), without
    `levels` only by how many percent something changed.
    """

    person: str | None = None
    groups: Sequence[str] | None = None
    levels: bool = True


VISIBLE: Final[ContextVar[Visible | None]] = ContextVar("visible", default=None)


def some_testboxes_only() -> bool:
    """Whether the request in progress may see the testboxes of some groups alone."""
    return (visible := VISIBLE.get()) is not None and visible.groups is not None


def changes_only() -> bool:
    """Whether the request in progress may see no level."""
    return (visible := VISIBLE.get()) is not None and not visible.levels


@contextmanager
def everything_visible() -> Iterator[None]:
    """See all rows: for what does not depend on the person, and to find out who it is."""
    before = VISIBLE.set(None)
    try:
        yield
    finally:
        VISIBLE.reset(before)
