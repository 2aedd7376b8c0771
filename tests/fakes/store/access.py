"""Tokens and sessions in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from swingbot.core.access.quota import QuotaUsage
from swingbot.core.access.roles import Person, RequestKey, Role
from swingbot.core.access.tokens import EndedToken
from swingbot.core.model import ids
from swingbot.service.ports.access import AccessAct, KeptAnswer, NewToken
from tests.fakes.store.tables import (
    AccessEventRow,
    AskedRow,
    KeptAnswerRow,
    Noun,
    Refused,
    SessionRow,
    TokenRow,
)


class Access(Noun):
    def add_token(self, new: NewToken) -> int:
        if any(row.digest == new.digest for row in self.db.tokens.values()):
            raise Refused("this token is stored")
        number = self.db.next_id("token")
        self.db.tokens[number] = TokenRow(
            digest=new.digest,
            person=Person(
                who=new.who,
                role=new.role,
                token=number,
                trees=new.trees,
                groups=new.groups,
                levels=new.levels,
                vouches=new.vouches,
                mail=new.mail,
            ),
            expires_at=None if new.life is None else self.db.now() + new.life,
        )
        return number

    def revoke(self, token: int, by: str) -> str | None:
        row = self.db.tokens.get(token)
        if row is None or row.revoked_at:
            return None
        self.db.tokens[token] = replace(row, revoked_at=self.db.now(), revoked_by=by)
        self.db.sessions = {
            digest: session
            for digest, session in self.db.sessions.items()
            if session.token != token
        }
        return row.person.who

    def holders(self) -> set[str]:
        return {row.person.who for row in self.db.tokens.values() if self._valid(row)}

    def owner_of(self, token: int) -> tuple[str, Role] | None:
        row = self.db.tokens.get(token)
        return None if row is None else (row.person.who, row.person.role)

    def holder(self, digest: str | None) -> Person | None:
        rows = (row for row in self.db.tokens.values() if row.digest == digest)
        return next(filter(None, map(self._valid, rows)), None)

    def _valid(self, row: TokenRow) -> Person | None:
        return row.person if row.is_valid(self.db.now()) else None

    def ended(self, digest: str) -> EndedToken | None:
        row = next((row for row in self.db.tokens.values() if row.digest == digest), None)
        if row is None or self._valid(row):
            return None
        at = row.revoked_at or row.expires_at
        assert at is not None
        return EndedToken(
            number=row.person.token, who=row.person.who, at=at, revoked_by=row.revoked_by
        )

    def begin_session(self, person: Person, digest: str, seconds: int, most: int) -> None:
        until = self.db.now() + timedelta(seconds=seconds)
        self.db.sessions[digest] = SessionRow(token=person.token, until=until)
        own = [name for name, one in self.db.sessions.items() if one.token == person.token]
        for name in own[:-most]:
            del self.db.sessions[name]

    def session_holder(self, digest: str) -> Person | None:
        session = self.db.sessions.get(digest)
        if session is None or session.until <= self.db.now():
            return None
        return self._valid(self.db.tokens[session.token])

    def end_session(self, digest: str) -> Person | None:
        session = self.db.sessions.pop(digest, None)
        return None if session is None else self.db.tokens[session.token].person

    def note(
        self, act: AccessAct, who: str, token: int | None = None, detail: str | None = None
    ) -> None:
        self.db.access_events[self.db.next_id("access_event")] = AccessEventRow(
            act=act, who=who, token=token, detail=detail, at=self.db.now()
        )

    def forget_refusals(self, days: int) -> None:
        since = self.db.now() - timedelta(days=days)
        self.db.access_events = {
            number: event
            for number, event in self.db.access_events.items()
            if event.act != "refused" or event.at >= since
        }

    def keep_latest(self, act: AccessAct, token: int | None, most: int) -> None:
        events = self.db.access_events
        same = sorted(n for n, one in events.items() if (one.act, one.token) == (act, token))
        gone = set(same[: max(0, len(same) - most)])
        self.db.access_events = {n: one for n, one in events.items() if n not in gone}

    def used(self, who: str) -> QuotaUsage:
        rows = [(id, row) for (id, person), row in self.db.asked.items() if person == who]
        since = self.db.now() - timedelta(hours=24)
        return QuotaUsage(
            open_requests=sum(self._is_open(id) for id, _ in rows),
            testbox_seconds=sum(
                max(row.testbox_seconds, self._taken(id, row)) for id, row in rows if row.at > since
            ),
            daily_requests=sum(row.at > since for _, row in rows),
        )

    def _is_open(self, id: str) -> bool:
        kind, number = ids.read(id)
        if kind == "bisection":
            return self.db.bisections[number].bisection.status == "running"
        return self.db.comparisons[number].comparison.status in ("waiting", "running")

    def _taken(self, id: str, row: AskedRow) -> float:
        """Seconds of a bisection's boots."""
        kind, number = ids.read(id)
        if kind != "bisection" or not row.testbox_seconds:
            return 0.0
        seen = (o.boot for key, o in self.db.observations.items() if key[0] == number)
        boots = (self.db.boots[boot] for boot in seen if boot is not None)
        return sum(one.seconds for one in boots if one.booted_at >= row.at)

    def askers(self, id: str) -> dict[str, float]:
        asked = self.db.asked.items()
        return {who: row.testbox_seconds for (known, who), row in asked if known == id}

    def note_extension(self, person: Person, id: str, testbox_seconds: float) -> None:
        before = self.db.asked.get((id, person.who))
        seconds = testbox_seconds + (before.testbox_seconds if before else 0.0)
        row = AskedRow(testbox_seconds=seconds, at=self.db.now())
        self.db.asked[id, person.who] = row

    def note_request(self, person: Person, id: str, testbox_seconds: float) -> None:
        row = AskedRow(testbox_seconds=testbox_seconds, at=self.db.now())
        self.db.asked.setdefault((id, person.who), row)

    def pass_on(self, parent: str, child: str, testbox_seconds: float) -> None:
        for (id, who), row in list(self.db.asked.items()):
            if id == parent:
                seconds = testbox_seconds if row.testbox_seconds else 0.0
                more = AskedRow(testbox_seconds=seconds, at=self.db.now())
                self.db.asked.setdefault((child, who), more)

    def kept_answer(self, token: int, key: str) -> tuple[str, KeptAnswer | None] | None:
        row = self.db.kept_answers.get((token, key))
        if row is None or row.at <= self.db.now() - timedelta(hours=24):
            return None
        return row.digest, row.answer

    def carry_out(self, token: int, once: RequestKey) -> bool:
        if self.kept_answer(token, once.key) is not None:
            return False
        row = KeptAnswerRow(digest=once.digest, answer=None, at=self.db.now())
        self.db.kept_answers.pop((token, once.key), None)
        self.db.kept_answers[token, once.key] = row
        return True

    def keep_answer(self, token: int, once: RequestKey, answer: KeptAnswer, most: int) -> None:
        self.carry_out(token, once)
        row = self.db.kept_answers.pop((token, once.key))
        self.db.kept_answers[token, once.key] = replace(row, answer=answer)
        own = [name for name in self.db.kept_answers if name[0] == token]
        for name in own[:-most]:
            del self.db.kept_answers[name]
