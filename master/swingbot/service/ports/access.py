"""Tokens of people, their sessions, what they asked for, and the log of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from swingbot.core.access.quota import QuotaUsage
from swingbot.core.access.roles import Person, RequestKey, Role
from swingbot.core.access.tokens import EndedToken

AccessAct = Literal[
    "create", "revoke", "sign in", "refused", "sign out", "compare", "vouch", "forget"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    who: str
    role: Role
    digest: str  # SHA-256 of its text, which is not stored
    life: timedelta | None = None  # None: until revoked
    trees: tuple[str, ...] | None = None  # None: of all trees
    groups: tuple[str, ...] | None = None  # testbox groups; None: all
    levels: bool = True  # False: changes only
    vouches: bool = False  # for the commits that it sends first
    mail: str | None = None  # address for results requested by mail
    note: str | None = None
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The answer to a request with a key; its body is JSON."""

    status: int
    location: str | None
    body: str


class Access(Protocol):
    """Tokens and sessions by their digests. An expired or revoked token and its sessions count as
    absent.
    """

    def add_token(self, new: NewToken) -> int:
        """Store a token and return its number."""

    def revoke(self, token: int, by: str) -> str | None:
        """End a token and its sessions; return its owner, or None if it was not there or over."""

    def holders(self) -> set[str]:
        """Return the names of all who have a valid token."""

    def owner_of(self, token: int) -> tuple[str, Role] | None:
        """Return whose token this is or was, and its role; None if there was none with this
        number.
        """

    def holder(self, digest: str | None) -> Person | None:
        """Return the person whose token this is; the digest None is the operator's key.

        Records the time of use, to the minute.
        """

    def ended(self, digest: str) -> EndedToken | None:
        """Return the end of the token with this digest, if it has expired or was revoked."""

    def begin_session(self, person: Person, digest: str, seconds: int, most: int) -> None:
        """Start a session that expires; delete those that have, and the oldest beyond `most`."""

    def session_holder(self, digest: str) -> Person | None:
        """Return the person who signed in with this session. Records the use of their token, to
        the minute.
        """

    def end_session(self, digest: str) -> Person | None:
        """End a session, and return whose it was."""

    def note(
        self, act: AccessAct, who: str, token: int | None = None, detail: str | None = None
    ) -> None:
        """Add an entry to the log."""

    def forget_refusals(self, days: int) -> None:
        """Delete entries of refused sign-ins that are older."""

    def keep_latest(self, act: AccessAct, token: int | None, most: int) -> None:
        """Delete entries of this act with this token (None: without one) but the latest `most`."""

    def used(self, who: str) -> QuotaUsage:
        """Return a person's open requests, and the testbox time of the last 24 hours.

        A bisection that took more than its estimate counts with what its boots took.
        """

    def askers(self, id: str) -> dict[str, float]:
        """Return who asked for a table (c5) or bisection (b2) over the web, and the testbox time
        that it cost each: 0 for who asked for what another had queued.
        """

    def note_extension(self, person: Person, id: str, testbox_seconds: float) -> None:
        """Record that the person asked for more of a table, now; its seconds add up."""

    def note_request(self, person: Person, id: str, testbox_seconds: float) -> None:
        """Record who asked for a table or bisection. A repeated request costs nothing more."""

    def pass_on(self, parent: str, child: str, testbox_seconds: float) -> None:
        """Record that who asked for bisection `parent` caused `child`, and charge those who queued
        it.
        """

    def kept_answer(self, token: int, key: str) -> tuple[str, KeptAnswer | None] | None:
        """Return the digest of the token's request with this key in the last 24 hours, and the
        answer, None if it was not kept; None if there is no such request.
        """

    def carry_out(self, token: int, once: RequestKey) -> bool:
        """Record a request as carried out; False: it was before."""

    def keep_answer(self, token: int, once: RequestKey, answer: KeptAnswer, most: int) -> None:
        """Record the answer to a request; delete those older than 24 hours, and the token's
        oldest beyond `most`.
        """
