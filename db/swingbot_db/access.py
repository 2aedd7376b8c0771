"""Tokens of people, their sessions, the log of token use, and uploads of attempts.

Functions take an open connection and leave the commit to the caller. `Access` bundles those that
the web service needs, with one transaction each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import sqlalchemy as sa

from swingbot.core.access.quota import QuotaUsage
from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids

Act = Literal["create", "revoke", "sign in", "refused", "sign out", "compare"]
# Strangers can cause refused sign-ins, so these events expire.
_FORGET: Final = (
    "DELETE FROM access_event WHERE act = 'refused' AND at < now() - interval '30 days'"
)
_GOOD: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"


class NoSuchToken(ValueError):
    """The token does not exist or is no longer valid; the message says which."""


def create(
    conn: sa.Connection,
    *,
    who: str,
    role: Role,
    digest: str,
    life: timedelta | None,
    note: str | None,
    by: str,
) -> int:
    """Store a new token by its digest and return its number."""
    statement = (
        "INSERT INTO access_token (who, role, digest, note, made_by, expires_at)"
        " VALUES (:who, :role, :digest, :note, :by, now() + CAST(:life AS interval)) RETURNING id"
    )
    number = int(
        conn.execute(
            sa.text(statement),
            {
                "who": who,
                "role": role.value,
                "digest": digest,
                "life": life,
                "note": note,
                "by": by,
            },
        ).scalar_one()
    )
    note_event(conn, "create", who=by, token=number, detail=f"for {who}, {role}")
    return number


def revoke(conn: sa.Connection, number: int, *, by: str) -> str:
    """End a token and its sessions; return the owner's name. Raises NoSuchToken."""
    row = conn.execute(
        sa.text(
            "UPDATE access_token SET revoked_at = now(), revoked_by = :by WHERE id = :id AND"
            " revoked_at IS NULL RETURNING who"
        ),
        {"id": number, "by": by},
    ).one_or_none()
    if row is None:
        exists = conn.execute(
            sa.text("SELECT 1 FROM access_token WHERE id = :id"), {"id": number}
        ).one_or_none()
        raise NoSuchToken(
            f"token {number} is already revoked"
            if exists
            else f"token {number} does not exist; `swingbot token list` lists all tokens"
        )
    conn.execute(sa.text("DELETE FROM web_session WHERE token = :id"), {"id": number})
    note_event(conn, "revoke", who=by, token=number, detail=f"of {row.who}")
    return str(row.who)


def note_event(
    conn: sa.Connection, act: Act, *, who: str, token: int | None = None, detail: str | None = None
) -> None:
    values = {"act": act, "who": who, "token": token, "detail": detail}
    conn.execute(
        sa.text(
            "INSERT INTO access_event (act, who, token, detail) VALUES (:act, :who, :token,"
            " :detail)"
        ),
        values,
    )


def holder(conn: sa.Connection, digest: str | None) -> Person | None:
    """Return the person whose token this is, or None if the token is not valid.

    The digest None stands for the operator's key. Records the time of use, to the minute.
    """
    row = conn.execute(
        sa.text(
            "SELECT id, who, role FROM access_token WHERE digest IS NOT DISTINCT FROM :digest AND"
            f" {_GOOD}"
        ),
        {"digest": digest},
    ).one_or_none()
    if row is None:
        return None
    seen = (
        "UPDATE access_token SET used_at = now() WHERE id = :id AND (used_at IS NULL OR"
        " used_at < now() - interval '1 minute')"
    )
    conn.execute(sa.text(seen), {"id": row.id})
    return Person(who=row.who, role=Role(row.role), token=row.id)


def used(conn: sa.Connection, who: str) -> QuotaUsage:
    """Usage of a person's web quota: open requests, and testbox time of the last 24 hours."""
    query = """
        SELECT count(*) FILTER (WHERE c.status IN ('waiting', 'running')) AS open,
               coalesce(sum(q.testbox_seconds) FILTER (WHERE q.at > now() - interval '24 hours'), 0)
                 AS seconds
        FROM asked q JOIN comparison c ON c.id = q.comparison WHERE q.who = :who
    """
    row = conn.execute(sa.text(query), {"who": who}).one()
    return QuotaUsage(open_requests=row.open, testbox_seconds=float(row.seconds))


def note_asked(conn: sa.Connection, person: Person, id: str, testbox_seconds: float) -> None:
    """Record the requester of table `id`; a repeated request costs nothing more."""
    add = (
        "INSERT INTO asked (comparison, who, token, testbox_seconds) VALUES (:comparison, :who,"
        " :token, :seconds) ON CONFLICT DO NOTHING"
    )
    conn.execute(
        sa.text(add),
        {
            "comparison": ids.read(id)[1],
            "who": person.who,
            "token": person.token,
            "seconds": testbox_seconds,
        },
    )
    note_event(
        conn,
        "compare",
        who=person.who,
        token=person.token,
        detail=id,
    )


def asked_by(conn: sa.Connection, who: str, most: int) -> list[dict[str, Any]]:
    """A person's tables requested over the web, newest first.

    Keys: id, kind (of the id), tree, kernels (names of the rows), status, at, testbox_seconds.
    """
    query = """
        SELECT q.comparison AS id, c.kind, c.status, t.name AS tree, q.testbox_seconds, q.at,
          (SELECT array_agg(a.name ORDER BY a.arm) FROM comparison_arm a
            WHERE a.comparison = c.id) AS kernels
        FROM asked q JOIN comparison c ON c.id = q.comparison JOIN tree t ON t.id = c.tree
        WHERE q.who = :who ORDER BY q.comparison DESC LIMIT :most
    """
    found = conn.execute(sa.text(query), {"who": who, "most": most}).mappings()
    rows = [_plain(row) for row in found]
    shown = [ids.of_table(row["kind"], row["id"]) for row in rows]
    return [row | {"id": id, "kind": ids.read(id)[0]} for row, id in zip(rows, shown, strict=True)]


class Access:
    """Implements `swingbot.web.access.session.SessionStore` on an engine."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as conn:
            yield conn

    def holder(self, digest: str | None) -> Person | None:
        with self._writing() as conn:
            return holder(conn, digest)

    def begin(self, person: Person, session: str, seconds: int, where: str) -> None:
        """Start a session, stored by its digest, with an expiry; delete expired sessions."""
        with self._writing() as conn:
            conn.execute(sa.text("DELETE FROM web_session WHERE ends_at < now()"))
            add = (
                "INSERT INTO web_session (digest, token, ends_at) VALUES (:digest, :token,"
                " now() + make_interval(secs => :seconds))"
            )
            conn.execute(
                sa.text(add), {"digest": session, "token": person.token, "seconds": seconds}
            )
            note_event(conn, "sign in", who=person.who, token=person.token, detail=f"from {where}")

    def of_session(self, session: str) -> Person | None:
        """Return the person signed in with this session while it and its token are valid."""
        query = (
            "SELECT t.id, t.who, t.role FROM web_session s JOIN access_token t ON t.id ="
            f" s.token WHERE s.digest = :digest AND s.ends_at > now() AND {_GOOD}"
        )
        with self._engine.connect() as conn:
            row = conn.execute(sa.text(query), {"digest": session}).one_or_none()
        return None if row is None else Person(who=row.who, role=Role(row.role), token=row.id)

    def end(self, session: str) -> None:
        ended = (
            "DELETE FROM web_session s USING access_token t WHERE s.digest = :digest AND"
            " t.id = s.token RETURNING t.id, t.who"
        )
        with self._writing() as conn:
            row = conn.execute(sa.text(ended), {"digest": session}).one_or_none()
            if row is not None:
                note_event(conn, "sign out", who=row.who, token=row.id)

    def refused(self, where: str) -> None:
        """Record a failed sign-in."""
        with self._writing() as conn:
            conn.execute(sa.text(_FORGET))
            note_event(conn, "refused", who="somebody", detail=f"from {where}")


def tokens(conn: sa.Connection, *, over: bool = False) -> list[dict[str, Any]]:
    """Tokens as printed by `swingbot token list --json`, oldest first, without their digests.

    `over` includes tokens that are no longer valid.
    """
    query = f"""
        SELECT id, who, role, digest IS NULL AS key, note, made_by, made_at, expires_at, revoked_at,
          revoked_by, used_at, {_GOOD} AS good
        FROM access_token WHERE {_GOOD} OR :over ORDER BY id
    """
    return [_plain(row) for row in conn.execute(sa.text(query), {"over": over}).mappings()]


def events(conn: sa.Connection, most: int) -> list[dict[str, Any]]:
    """The log of token use, newest first."""
    return [
        _plain(row)
        for row in conn.execute(
            sa.text(
                "SELECT at, act, who, token, detail FROM access_event ORDER BY id DESC LIMIT :most"
            ),
            {"most": most},
        ).mappings()
    ]


def _plain(row: sa.RowMapping) -> dict[str, Any]:
    return {
        key: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value
        for key, value in row.items()
    }
