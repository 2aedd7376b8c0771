"""Tokens of people, their sessions, and the log of token use."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.access.quota import QuotaUsage
from swingbot.core.access.roles import Person, RequestKey, Role
from swingbot.core.access.tokens import EndedToken
from swingbot.core.model import ids
from swingbot.service.ports.access import AccessAct, KeptAnswer, NewToken
from swingbot_db.store.rows import Rows

VALID_TOKEN: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
_KEPT: Final = "at > now() - interval '24 hours'"
_COLUMNS: Final = "t.id, t.who, t.role, t.trees, t.groups, t.levels, t.vouches, t.mail"
_PERSON: Final = (
    f"{_COLUMNS}, t.used_at IS NULL OR t.used_at < now() - interval '1 minute' AS stale"
)
_USED: Final = """
SELECT count(*) FILTER (WHERE c.status IN ('waiting', 'running') OR b.status = 'running') AS open,
  count(*) FILTER (WHERE q.at > now() - interval '24 hours') AS daily,
  coalesce(sum(greatest(q.testbox_seconds, taken.seconds)) FILTER (WHERE q.at > now() - interval
  '24 hours'), 0) AS seconds
FROM asked q LEFT JOIN comparison c ON c.id = q.comparison LEFT JOIN bisection b
  ON b.id = q.bisection
CROSS JOIN LATERAL (SELECT coalesce(sum(x.seconds), 0) AS seconds FROM observation o JOIN boot x
  ON x.id = o.boot WHERE o.bisection = q.bisection AND q.testbox_seconds > 0
  AND x.booted_at >= q.at AND q.at > now() - interval '24 hours') taken
WHERE q.who = :who
"""


class Access(Rows):
    def add_token(self, new: NewToken) -> int:
        return int(
            self.scalar(
                "INSERT INTO access_token (who, role, digest, trees, groups, levels, vouches, mail,"
                " note, made_by, expires_at) VALUES (:who, :role, :digest, :trees, :groups,"
                " :levels, :vouches, :mail, :note, :by, now() + CAST(:life AS interval))"
                " RETURNING id",
                who=new.who,
                role=new.role.value,
                digest=new.digest,
                life=new.life,
                trees=None if new.trees is None else list(new.trees),
                groups=None if new.groups is None else list(new.groups),
                levels=new.levels,
                vouches=new.vouches,
                mail=new.mail,
                note=new.note,
                by=new.by,
            )
        )

    def revoke(self, token: int, by: str) -> str | None:
        owner: str | None = self.scalar(
            "UPDATE access_token SET revoked_at = now(), revoked_by = :by WHERE id = :id AND"
            " revoked_at IS NULL RETURNING who",
            id=token,
            by=by,
        )
        self.execute("DELETE FROM web_session WHERE token = :id", id=token)
        return owner

    def holders(self) -> set[str]:
        found = self.select(f"SELECT DISTINCT t.who FROM access_token t WHERE {VALID_TOKEN}")
        return {row.who for row in found}

    def owner_of(self, token: int) -> tuple[str, Role] | None:
        row = self.select_one("SELECT who, role FROM access_token WHERE id = :id", id=token)
        return None if row is None else (row.who, Role(row.role))

    def holder(self, digest: str | None) -> Person | None:
        row = self.select_one(
            f"SELECT {_PERSON} FROM access_token t WHERE digest IS NOT DISTINCT FROM :digest AND"
            f" {VALID_TOKEN}",
            digest=digest,
        )
        return self._used_by(row)

    def _used_by(self, row: sa.Row[Any] | None) -> Person | None:
        if row is None:
            return None
        if row.stale:
            self.execute("UPDATE access_token SET used_at = now() WHERE id = :id", id=row.id)
        return _person(row)

    def ended(self, digest: str) -> EndedToken | None:
        row = self.select_one(
            "SELECT id, who, coalesce(revoked_at, expires_at) AS at, revoked_by FROM access_token"
            f" WHERE digest = :digest AND NOT ({VALID_TOKEN})",
            digest=digest,
        )
        return row and EndedToken(number=row.id, who=row.who, at=row.at, revoked_by=row.revoked_by)

    def begin_session(self, person: Person, digest: str, seconds: int, most: int) -> None:
        self.execute("DELETE FROM web_session WHERE ends_at < now()")
        self.execute(
            "INSERT INTO web_session (digest, token, ends_at) VALUES (:digest, :token,"
            " now() + make_interval(secs => :seconds))",
            digest=digest,
            token=person.token,
            seconds=seconds,
        )
        self.execute(
            "DELETE FROM web_session WHERE token = :token AND digest NOT IN (SELECT digest FROM"
            " web_session WHERE token = :token ORDER BY digest = :digest DESC, made_at DESC"
            " LIMIT :most)",
            token=person.token,
            digest=digest,
            most=most,
        )

    def session_holder(self, digest: str) -> Person | None:
        row = self.select_one(
            f"SELECT {_PERSON} FROM web_session s JOIN access_token t ON t.id = s.token"
            f" WHERE s.digest = :digest AND s.ends_at > now() AND {VALID_TOKEN}",
            digest=digest,
        )
        return self._used_by(row)

    def end_session(self, digest: str) -> Person | None:
        row = self.select_one(
            "DELETE FROM web_session s USING access_token t WHERE s.digest = :digest AND"
            f" t.id = s.token RETURNING {_COLUMNS}",
            digest=digest,
        )
        return None if row is None else _person(row)

    def note(
        self, act: AccessAct, who: str, token: int | None = None, detail: str | None = None
    ) -> None:
        self.execute(
            "INSERT INTO access_event (act, who, token, detail) VALUES (:act, :who, :token,"
            " :detail)",
            act=act,
            who=who,
            token=token,
            detail=detail,
        )

    def forget_refusals(self, days: int) -> None:
        self.execute(
            "DELETE FROM access_event WHERE act = 'refused' AND at < now() -"
            " make_interval(days => :days)",
            days=days,
        )

    def keep_latest(self, act: AccessAct, token: int | None, most: int) -> None:
        self.execute(
            "DELETE FROM access_event WHERE act = :act AND token IS NOT DISTINCT FROM"
            " CAST(:token AS bigint) AND id <= (SELECT id FROM access_event WHERE act = :act AND"
            " token IS NOT DISTINCT FROM CAST(:token AS bigint) ORDER BY id DESC OFFSET :most"
            " LIMIT 1)",
            act=act,
            token=token,
            most=most,
        )

    def used(self, who: str) -> QuotaUsage:
        row = self.select_one(_USED, who=who)
        assert row is not None
        return QuotaUsage(
            open_requests=row.open, testbox_seconds=float(row.seconds), daily_requests=row.daily
        )

    def askers(self, id: str) -> dict[str, float]:
        column, number = subject_of(id)
        query = f"SELECT who, testbox_seconds FROM asked WHERE {column} = :number"
        return {row.who: row.testbox_seconds for row in self.select(query, number=number)}

    def note_request(self, person: Person, id: str, testbox_seconds: float) -> None:
        self._note_asked(person, id, testbox_seconds, "DO NOTHING")

    def pass_on(self, parent: str, child: str, testbox_seconds: float) -> None:
        self.execute(
            "INSERT INTO asked (bisection, who, token, testbox_seconds) SELECT :child, who, token,"
            " CASE WHEN testbox_seconds > 0 THEN CAST(:seconds AS double precision) ELSE 0 END"
            " FROM asked WHERE bisection = :parent ON CONFLICT DO NOTHING",
            parent=ids.read(parent, "bisection")[1],
            child=ids.read(child, "bisection")[1],
            seconds=testbox_seconds,
        )

    def note_extension(self, person: Person, id: str, testbox_seconds: float) -> None:
        column, _ = subject_of(id)
        more = "testbox_seconds = q.testbox_seconds + EXCLUDED.testbox_seconds"
        again = f"({column}, who) DO UPDATE SET at = now(), {more}"
        self._note_asked(person, id, testbox_seconds, again)

    def _note_asked(self, person: Person, id: str, testbox_seconds: float, conflict: str) -> None:
        column, number = subject_of(id)
        self.execute(
            f"INSERT INTO asked AS q ({column}, who, token, testbox_seconds) VALUES (:number,"
            f" :who, :token, :seconds) ON CONFLICT {conflict}",
            number=number,
            who=person.who,
            token=person.token,
            seconds=testbox_seconds,
        )

    def kept_answer(self, token: int, key: str) -> tuple[str, KeptAnswer | None] | None:
        row = self.select_one(
            "SELECT digest, status, location, body FROM kept_answer WHERE token = :token"
            f" AND key = :key AND {_KEPT}",
            token=token,
            key=key,
        )
        if row is None:
            return None
        if row.status is None:
            return row.digest, None
        return row.digest, KeptAnswer(status=row.status, location=row.location, body=row.body)

    def carry_out(self, token: int, once: RequestKey) -> bool:
        self.execute(f"DELETE FROM kept_answer WHERE NOT ({_KEPT})")
        made = self.scalar(
            "INSERT INTO kept_answer (token, key, digest) VALUES (:token, :key, :digest)"
            " ON CONFLICT DO NOTHING RETURNING key",
            token=token,
            key=once.key,
            digest=once.digest,
        )
        return made is not None

    def keep_answer(self, token: int, once: RequestKey, answer: KeptAnswer, most: int) -> None:
        self.carry_out(token, once)
        self.execute(
            "UPDATE kept_answer SET status = :status, location = :location, body = :body"
            " WHERE token = :token AND key = :key",
            status=answer.status,
            location=answer.location,
            body=answer.body,
            token=token,
            key=once.key,
        )
        self.execute(
            "DELETE FROM kept_answer WHERE token = :token AND key NOT IN (SELECT key FROM"
            " kept_answer WHERE token = :token ORDER BY key = :key DESC, at DESC LIMIT :most)",
            token=token,
            key=once.key,
            most=most,
        )


def subject_of(id: str) -> tuple[str, int]:
    """Return the column that refers to a table or bisection, and its number. Raises BadId."""
    kind, number = ids.read(id)
    return ("bisection" if kind == "bisection" else "comparison"), number


def _person(row: sa.Row[Any]) -> Person:
    trees, groups = (None if few is None else tuple(few) for few in (row.trees, row.groups))
    return Person(
        who=row.who,
        role=Role(row.role),
        token=row.id,
        trees=trees,
        groups=groups,
        levels=row.levels,
        vouches=row.vouches,
        mail=row.mail,
    )
