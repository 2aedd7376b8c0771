"""Tokens and sessions without a database, for tests of pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from swingbot.core.access.roles import Person, Role
from swingbot.core.access.tokens import digest

KEY = Person(who="operator", role=Role.OPERATOR, token=1)


@dataclass
class MemoryKeeper:
    """`swingbot.web.access.session.SessionStore`.

    `tokens` by digest, None is the operator's key.
    """

    now: Callable[[], float]
    tokens: dict[str | None, Person] = field(default_factory=lambda: {None: KEY})
    sessions: dict[str, tuple[Person, float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, text: str, who: str, role: Role) -> str:
        self.tokens[digest(text)] = Person(who=who, role=role, token=len(self.tokens) + 1)
        return text

    def holder(self, digest: str | None) -> Person | None:
        return self.tokens.get(digest)

    def begin(self, person: Person, session: str, seconds: int, where: str) -> None:
        self.sessions[session] = (person, self.now() + seconds)

    def of_session(self, session: str) -> Person | None:
        person, end = self.sessions.get(session, (None, 0.0))
        return person if person in self.tokens.values() and self.now() < end else None

    def end(self, session: str) -> None:
        self.sessions.pop(session, None)

    def refused(self, where: str) -> None:
        self.failures.append(where)
