"""Mails of reports on their way, decisions about them, and the switch for all mail."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from swingbot.core.mail.addresses import addresses
from swingbot.core.model.statuses import ModerationAct, ReportState
from swingbot.core.moderation.filing import Addressed
from swingbot.service.ports.outbox import AddressedMail, OutboxMail
from swingbot_db.store.rows import Rows

_SENDER_LOCK: Final = 0x5_1_16_B08  # arbitrary, but different from swingbot's other advisory locks
_MAIL: Final = """SELECT r.id, r.message_id, r.to_addrs, r.cc_addrs, r.lists, r.state, r.sent_at,
  r.reason, o.message, o.tries, o.next_try, o.error
  FROM report r JOIN outbox o ON o.report = r.id"""


class Outbox(Rows):
    def in_state(self, state: ReportState, due: datetime | None = None) -> list[OutboxMail]:
        rows = self.select(
            f"{_MAIL} WHERE r.state = :state"
            " AND o.next_try <= coalesce(CAST(:due AS timestamptz), 'infinity')"
            " ORDER BY o.next_try, r.id",
            state=state,
            due=due,
        )
        return [_mail(row) for row in rows]

    def lock(self, report: int) -> OutboxMail | None:
        row = self.select_one(f"{_MAIL} WHERE r.id = :id FOR UPDATE", id=report)
        return None if row is None else _mail(row)

    def update(self, mail: OutboxMail) -> None:
        self.execute(
            "UPDATE report SET state = :state, reason = :reason, sent_at = :sent WHERE id = :id",
            id=mail.report,
            state=mail.state,
            reason=mail.reason,
            sent=mail.sent_at,
        )
        self.execute(
            "UPDATE outbox SET tries = :tries, next_try = :next_try, error = :error WHERE"
            " report = :id",
            id=mail.report,
            tries=mail.tries,
            next_try=mail.next_try,
            error=mail.error,
        )

    def sent_to(self, recipients: Collection[str], since: datetime) -> dict[str, int]:
        rows = self.select(
            "SELECT lower(a) AS address, count(*) AS mails FROM report r,"
            " unnest(r.to_addrs || r.cc_addrs) a WHERE lower(a) = ANY(:recipients) AND (r.state IN"
            " ('sending', 'unknown') OR (r.state = 'sent' AND r.sent_at > :since)) GROUP BY 1",
            recipients=[address.lower() for address in recipients],
            since=since,
        )
        return {row.address: row.mails for row in rows}

    def stopped(self) -> bool:
        return bool(self.scalar("SELECT stopped FROM mail_switch FOR SHARE"))

    def set_stopped(self, stopped: bool, who: str, why: str) -> bool:
        changed = self.execute(
            "UPDATE mail_switch SET stopped = :stopped, who = :who, why = nullif(:why, ''),"
            " at = now() WHERE stopped <> :stopped",
            stopped=stopped,
            who=who,
            why=why,
        )
        return changed == 1

    def note(
        self,
        act: ModerationAct,
        *,
        who: str,
        why: str,
        report: int | None = None,
        was: ReportState | None = None,
        counts: bool = False,
    ) -> None:
        self.execute(
            "INSERT INTO moderation (report, act, who, why, was, counts) VALUES (:report,"
            " :act, :who, nullif(:why, ''), :was, :counts)",
            report=report,
            act=act,
            who=who,
            why=why,
            was=was,
            counts=counts,
        )

    def written(self, report: int) -> AddressedMail | None:
        row = self.select_one(
            "SELECT r.state, r.incident, r.kind, t.name AS tree, t.base_commit AS base, v.commit,"
            " v.author,"
            " r.message_id, r.subject, r.body, r.testbox, o.message FROM report r"
            " JOIN outbox o ON o.report = r.id"
            " JOIN incident i ON i.id = r.incident JOIN variant v ON v.id = i.culprit"
            " JOIN tree t ON t.id = i.tree WHERE r.id = :id",
            id=report,
        )
        return (
            None
            if row is None
            else AddressedMail(**{**row._mapping, "message": bytes(row.message)})
        )

    def readdress(self, report: int, addressed: Addressed, message: bytes) -> None:
        columns = columns_of(addressed) | {
            "to_addrs": list(addressed.to),
            "cc_addrs": list(addressed.cc),
        }
        update = f"UPDATE report SET {', '.join(f'{name} = :{name}' for name in columns)}"
        with_json = sa.text(f"{update} WHERE id = :id").bindparams(
            sa.bindparam("left_out", type_=JSONB)
        )
        self.conn.execute(with_json, columns | {"id": report})
        self.execute(
            "UPDATE outbox SET message = :message WHERE report = :id", id=report, message=message
        )


@contextmanager
def sender_turn(engine: sa.Engine) -> Iterator[bool]:
    """Yield True to one sender at a time, by a lock that ends with its process."""
    with engine.connect() as conn:
        mine = bool(
            conn.execute(sa.text("SELECT pg_try_advisory_lock(:n)"), {"n": _SENDER_LOCK}).scalar()
        )
        conn.commit()
        try:
            yield mine
        finally:
            if mine:
                conn.execute(sa.text("SELECT pg_advisory_unlock(:n)"), {"n": _SENDER_LOCK})
                conn.commit()


def columns_of(addressed: Addressed) -> dict[str, Any]:
    """The columns of `report` that recipients fill, but those that get the mail."""
    return {
        "would_to": list(addressed.would_to),
        "would_cc": list(addressed.would_cc),
        "lists": [address.lower() for address in addressed.lists],
        "left_out": [list(pair) for pair in addressed.left_out],
        "dry_run": addressed.dry_run,
        "commit_only": list(addressed.commit_only),
        "restricted": addressed.restricted or None,
    }


def bare(to: Sequence[str], cc: Sequence[str]) -> tuple[str, ...]:
    """Addresses without names, each once."""
    return tuple(dict.fromkeys(address for text in (*to, *cc) for address in addresses(text)))


def _mail(row: sa.Row[Any]) -> OutboxMail:
    return OutboxMail(
        report=row.id,
        message_id=row.message_id,
        message=bytes(row.message),
        recipients=bare(row.to_addrs, row.cc_addrs),
        lists=tuple(row.lists),
        state=row.state,
        tries=row.tries,
        next_try=row.next_try,
        error=row.error,
        reason=row.reason,
        sent_at=row.sent_at,
    )
