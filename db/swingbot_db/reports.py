"""Reports and their outbox in PostgreSQL: state transitions, and the sender's queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from swingbot.core.mail.addresses import addresses
from swingbot.core.model import ids
from swingbot.core.model.lookup import missing
from swingbot.core.model.statuses import ModerationAct, ReportAct, ReportKind, ReportState
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.send_check import DAY_HOURS, WhyNot
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.readdress import AddressedMail
from swingbot.service.report.send import Outgoing
from swingbot_db.engine import transaction

_SENDER_LOCK = 0x5_1_16_B08  # arbitrary, but different from swingbot's other advisory locks


class ReportError(ValueError):
    """The report does not exist, or its state does not allow the action; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One row of `report` with the state of its outbox (`tries`, `error`).

    `incident` is None for a digest.
    """

    id: int
    incident: int | None
    kind: ReportKind
    revision: int
    state: ReportState
    message_id: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    body: str
    created_at: datetime
    sent_at: datetime | None
    message: bytes
    tries: int
    next_try: datetime
    error: str | None
    would_to: tuple[str, ...]
    would_cc: tuple[str, ...]
    dry_run: bool
    reason: str | None


_COLUMNS = """r.id, r.incident, r.kind, r.revision, r.state, r.message_id, r.to_addrs, r.cc_addrs,
  r.subject, r.body,
    r.created_at, r.sent_at, o.message, o.tries, o.next_try, o.error, r.would_to, r.would_cc,
      r.dry_run, r.reason"""


def _report(row: Any) -> Report:
    return Report(
        id=row.id,
        incident=row.incident,
        kind=row.kind,
        revision=row.revision,
        state=row.state,
        message_id=row.message_id,
        to=tuple(row.to_addrs),
        cc=tuple(row.cc_addrs),
        subject=row.subject,
        body=row.body,
        created_at=row.created_at,
        sent_at=row.sent_at,
        message=bytes(row.message),
        tries=row.tries,
        next_try=row.next_try,
        error=row.error,
        would_to=tuple(row.would_to),
        would_cc=tuple(row.would_cc),
        dry_run=row.dry_run,
        reason=row.reason,
    )


def find_report(
    conn: sa.Connection, incident: int, kind: ReportKind, revision: int = 1
) -> int | None:
    """Id of an incident's report of that kind and revision; None if it has not been drafted."""
    query = (
        "SELECT id FROM report WHERE incident = :incident AND kind = :kind AND revision = :revision"
    )
    number: int | None = conn.execute(
        sa.text(query), {"incident": incident, "kind": kind, "revision": revision}
    ).scalar()
    return number


def reserve_report_id(conn: sa.Connection) -> int:
    """Reserve an id: the mail has its own page and Message-ID, so the id is needed in advance."""
    return int(
        conn.execute(
            sa.text("SELECT nextval(pg_get_serial_sequence('swingbot.report', 'id'))")
        ).scalar_one()
    )


def add_report(conn: sa.Connection, new: NewReport) -> int:
    """Store a report and its mail, as draft, held or queued; return its id.

    Returns the id of the older one if this report exists already.
    """
    if new.state not in ("draft", "held", "queued"):
        raise ReportError(
            f"a new report cannot be {new.state!r}; its state must be draft, held or queued"
        )
    values: dict[str, Any] = {
        "id": new.number,
        "incident": new.incident,
        "kind": new.kind,
        "revision": new.revision,
        "state": new.state,
        "message_id": new.message_id,
        "week": new.week,
        "alert": new.alert,
        "facts": None if new.facts is None else json.dumps(new.facts),
        "to_addrs": list(new.to),
        "cc_addrs": list(new.cc),
        "subject": new.subject,
        "body": new.body,
        **_filed(new.filing),
    }
    insert = f"""INSERT INTO report ({", ".join(values)}) OVERRIDING SYSTEM VALUE
      VALUES ({", ".join(f":{name}" for name in values)})
        ON CONFLICT DO NOTHING RETURNING id"""
    added = conn.execute(
        sa.text(insert).bindparams(sa.bindparam("left_out", type_=JSONB)), values
    ).scalar()
    if added is None:
        return _standing(conn, new)
    conn.execute(
        sa.text("INSERT INTO outbox (report, message) VALUES (:id, :message)"),
        {"id": new.number, "message": new.message},
    )
    return new.number


def _standing(conn: sa.Connection, new: NewReport) -> int:
    """The report that is already stored in place of `new`."""
    older = (
        _digest_of(conn, new.week) or _alert_of(conn, new.alert, new.revision)
        if new.incident is None
        else find_report(conn, new.incident, new.kind, new.revision)
        or _first_of(conn, new.incident)
    )
    assert older is not None, (
        "it conflicts with the report of this incident, kind and revision, or its first one, or the"
        " week's digest"
    )
    return older


def _filed(filing: Filing | None) -> dict[str, Any]:
    """Columns that `filing` fills; a report without a filing is a dry run without a class."""
    if filing is None:
        return {"left_out": []}
    columns = _of_addressed(filing.addressed) | {
        "reason": "; ".join(filter(None, (filing.reason, filing.addressed.problem)))
    }
    kind = filing.kind
    return columns | (
        {"metric": kind.metric, "testbox": kind.testbox, "passed": list(kind.gates)} if kind else {}
    )


def _of_addressed(addressed: Addressed) -> dict[str, Any]:
    return {
        "would_to": list(addressed.would_to),
        "would_cc": list(addressed.would_cc),
        "lists": [address.lower() for address in addressed.lists],
        "left_out": [list(pair) for pair in addressed.left_out],
        "dry_run": addressed.dry_run,
        "commit_only": list(addressed.commit_only),
    }


def _first_of(conn: sa.Connection, incident: int) -> int | None:
    number: int | None = conn.execute(
        sa.text(
            "SELECT id FROM report WHERE incident = :i AND kind = 'first' AND state <> 'dropped'"
        ),
        {"i": incident},
    ).scalar()
    return number


def _digest_of(conn: sa.Connection, week: date | None) -> int | None:
    number: int | None = conn.execute(
        sa.text("SELECT id FROM report WHERE week = :week"), {"week": week}
    ).scalar()
    return number


def _alert_of(conn: sa.Connection, alert: int | None, revision: int) -> int | None:
    query = sa.text("SELECT id FROM report WHERE alert = :alert AND revision = :revision")
    number: int | None = conn.execute(query, {"alert": alert, "revision": revision}).scalar()
    return number


def get_report(conn: sa.Connection, report_id: int) -> Report:
    """One report. Raises ReportError if it does not exist."""
    row = conn.execute(
        sa.text(
            f"SELECT {_COLUMNS} FROM report r JOIN outbox o ON o.report = r.id WHERE r.id = :id"
        ),
        {"id": report_id},
    ).one_or_none()
    if row is None:
        raise ReportError(missing("report", report_id))
    return _report(row)


def list_reports(conn: sa.Connection, state: ReportState | None = None) -> list[Report]:
    """All reports, or those in one state, newest first."""
    where = "" if state is None else "WHERE r.state = :state"
    rows = conn.execute(
        sa.text(
            f"SELECT {_COLUMNS} FROM report r JOIN outbox o ON o.report = r.id {where} ORDER BY"
            " r.id DESC"
        ),
        {"state": state},
    )
    return [_report(row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A command on reports: states in which it applies, and states in which it is done already."""

    verb: ModerationAct
    goal: ReportState
    start: tuple[ReportState, ...]
    done: tuple[ReportState, ...]
    hint: Mapping[ReportState, str]  # why it is not possible in each other state


_HOLD: Final = _Move(
    verb="hold",
    goal="held",
    start=("draft", "queued"),
    done=("held",),
    hint={
        "sending": "it is being sent",
        "sent": "it has been sent",
        "unknown": "it already waits for a person",
        "dropped": "it was dropped",
    },
)
_RELEASE: Final = _Move(
    verb="release",
    goal="queued",
    start=("draft", "held", "unknown"),
    done=("queued", "sending", "sent"),
    hint={"dropped": "it was dropped"},
)
_DROP: Final = _Move(
    verb="drop",
    goal="dropped",
    start=("draft", "held", "queued", "unknown"),
    done=("dropped",),
    hint={
        "sending": "it is being sent; try again in a moment",
        "sent": "it has been sent",
    },
)


def hold(conn: sa.Connection, report_id: int, *, who: str = "", why: str = "") -> str:
    """draft or queued -> held. Returns the state. Raises ReportError.

    `who` (empty: not a person) and `why` are recorded.
    """
    return _move(conn, report_id, _HOLD, who=who, why=why)


def release(conn: sa.Connection, report_id: int, *, who: str = "", why: str = "") -> str:
    """draft, held or unknown -> queued and due immediately; an unknown one is sent again.

    Returns the state. Raises ReportError.
    """
    return _move(conn, report_id, _RELEASE, who=who, why=why)


def drop(conn: sa.Connection, report_id: int, *, who: str = "", why: str = "") -> str:
    """draft, held, queued or unknown -> dropped, permanently. Returns the state.

    Raises ReportError.
    """
    return _move(conn, report_id, _DROP, who=who, why=why)


ACTS: Final[Mapping[ReportAct, Callable[..., str]]] = {
    "release": release,
    "drop": drop,
    "hold": hold,
}


def _move(conn: sa.Connection, report_id: int, move: _Move, *, who: str, why: str) -> str:
    query = (
        "SELECT r.state, o.tries FROM report r JOIN outbox o ON o.report = r.id WHERE"
        " r.id = :id FOR UPDATE OF r"
    )
    row = conn.execute(sa.text(query), {"id": report_id}).one_or_none()
    if row is None:
        raise ReportError(missing("report", report_id))
    name = ids.show("report", report_id)
    if row.state in move.done:
        return str(row.state)
    if row.state not in move.start:
        raise ReportError(
            f"cannot {move.verb} {name}, which is {row.state}: {move.hint[row.state]}"
        )
    conn.execute(
        sa.text("UPDATE report SET state = :goal WHERE id = :id"),
        {"goal": move.goal, "id": report_id},
    )
    if move.goal == "held" and why:
        conn.execute(
            sa.text("UPDATE report SET reason = :why WHERE id = :id"), {"why": why, "id": report_id}
        )
    if move.goal == "queued":
        conn.execute(
            sa.text("UPDATE outbox SET next_try = now(), error = NULL WHERE report = :id"),
            {"id": report_id},
        )
    if who:
        note_act(
            conn,
            move.verb,
            who=who,
            why=why,
            report=report_id,
            was=row.state,
            counts=row.tries == 0 and row.state != "unknown",
        )
    return move.goal


def case_of(conn: sa.Connection, report_id: int) -> AddressedMail | None:
    """The mail and its commit; None for a mail about no commit, such as a digest.

    Raises ReportError if the report does not exist.
    """
    report = get_report(conn, report_id)
    query = (
        "SELECT t.name AS tree, t.base_commit, v.commit, v.author"
        " FROM incident i JOIN variant v ON v.id = i.culprit JOIN tree t ON t.id = i.tree"
        " WHERE i.id = :i"
    )
    row = conn.execute(sa.text(query), {"i": report.incident}).one_or_none()
    if row is None:
        return None
    return AddressedMail(
        report=ids.show("report", report_id),
        tree=row.tree,
        commit=row.commit,
        author=row.author,
        base=row.base_commit,
        message_id=report.message_id,
        subject=report.subject,
        body=report.body,
        message=report.message,
    )


def set_addressed(
    conn: sa.Connection, report_id: int, addressed: Addressed, message: bytes, *, who: str
) -> None:
    """Set other recipients, and the message that names them, on a held or drafted report.

    Raises ReportError in any other state.
    """
    update = """UPDATE report SET to_addrs = :to, cc_addrs = :cc, would_to = :would_to, would_cc =
      :would_cc, lists = :lists, left_out = :left_out, commit_only = :commit_only,
        dry_run = :dry_run WHERE id = :id AND state IN ('draft', 'held') RETURNING state"""
    values = {
        "id": report_id,
        "to": list(addressed.to),
        "cc": list(addressed.cc),
        **_of_addressed(addressed),
    }
    state = conn.execute(
        sa.text(update).bindparams(sa.bindparam("left_out", type_=JSONB)), values
    ).scalar()
    if state is None:
        state = get_report(conn, report_id).state
        raise ReportError(
            f"cannot readdress {ids.show('report', report_id)}, which is {state}: hold it first"
            " if it has not been sent"
        )
    conn.execute(
        sa.text("UPDATE outbox SET message = :message WHERE report = :id"),
        {"id": report_id, "message": message},
    )
    note_act(conn, "readdress", who=who, why="", report=report_id, was=state)


def note_act(
    conn: sa.Connection,
    act: ModerationAct,
    *,
    who: str,
    why: str,
    report: int | None = None,
    was: ReportState | None = None,
    counts: bool = False,
) -> None:
    """Record a person's decision. `counts`: the mail was never handed to a server, so the decision
    is about its text."""
    insert = (
        "INSERT INTO moderation (report, act, who, why, was, counts) VALUES (:report,"
        " :act, :who, nullif(:why, ''), :was, :counts)"
    )
    conn.execute(
        sa.text(insert),
        {"report": report, "act": act, "who": who, "why": why, "was": was, "counts": counts},
    )


class PostgresOutbox:
    """Implements `swingbot.service.report.send.Outbox` on the tables report and outbox."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """A session lock of PostgreSQL; it ends with the connection and so with the process."""
        with self._engine.connect() as conn:
            mine = bool(
                conn.execute(
                    sa.text("SELECT pg_try_advisory_lock(:n)"), {"n": _SENDER_LOCK}
                ).scalar()
            )
            conn.commit()
            try:
                yield mine
            finally:
                if mine:
                    conn.execute(sa.text("SELECT pg_advisory_unlock(:n)"), {"n": _SENDER_LOCK})
                    conn.commit()

    def sending(self) -> list[Outgoing]:
        return self._outgoing("r.state = 'sending'", None)

    def in_doubt(self, now: datetime) -> list[Outgoing]:
        return self._outgoing("r.state = 'unknown' AND o.next_try <= :now", now)

    def due(self, now: datetime) -> list[Outgoing]:
        return self._outgoing("r.state = 'queued' AND o.next_try <= :now", now)

    def _outgoing(self, where: str, now: datetime | None) -> list[Outgoing]:
        query = (
            f"SELECT {_COLUMNS} FROM report r JOIN outbox o ON o.report = r.id WHERE"
            f" {where} ORDER BY o.next_try, r.id"
        )
        with self._engine.connect() as conn:
            reports = [
                _report(row)
                for row in conn.execute(sa.text(query), {} if now is None else {"now": now})
            ]
        return [
            Outgoing(
                report=report.id,
                message_id=report.message_id,
                message=report.message,
                recipients=_bare(report.to, report.cc),
                tries=report.tries,
                next_try=report.next_try,
            )
            for report in reports
        ]

    def take(self, report: int, now: datetime, settled: datetime, why_not: WhyNot) -> bool:
        with transaction(self._engine, "report sending") as conn:
            # FOR SHARE: stopping the mail waits for this transaction, and vice versa.
            stopped = conn.execute(
                sa.text("SELECT stopped FROM mail_switch FOR SHARE")
            ).scalar_one()
            row = conn.execute(
                sa.text(
                    "SELECT to_addrs, cc_addrs, lists FROM report WHERE id = :id AND state ="
                    " 'queued' FOR UPDATE"
                ),
                {"id": report},
            ).one_or_none()
            if stopped or row is None:
                return False
            recipients = _bare(row.to_addrs, row.cc_addrs)
            why = why_not(recipients, row.lists, _sent_to(conn, recipients, now))
            if why is None:
                conn.execute(
                    sa.text("UPDATE report SET state = 'sending' WHERE id = :id"), {"id": report}
                )
                update = (
                    "UPDATE outbox SET tries = tries + 1, next_try = :settled WHERE report = :id"
                )
                conn.execute(sa.text(update), {"id": report, "settled": settled})
            else:
                conn.execute(
                    sa.text("UPDATE report SET state = 'held', reason = :why WHERE id = :id"),
                    {"id": report, "why": why},
                )
        return why is None

    def sent(self, report: int, at: datetime, note: str | None) -> None:
        with transaction(self._engine, "report sent") as conn:
            self._leave_sending(conn, report, "sent", note)
            conn.execute(
                sa.text("UPDATE report SET sent_at = :at WHERE id = :id"), {"id": report, "at": at}
            )

    def wait(self, report: int, settled: datetime, error: str) -> None:
        with transaction(self._engine, "report unsettled") as conn:
            conn.execute(
                sa.text("UPDATE outbox SET next_try = :settled, error = :error WHERE report = :id"),
                {"id": report, "settled": settled, "error": error},
            )

    def back(self, report: int, next_try: datetime, error: str) -> None:
        with transaction(self._engine, "report back in queue") as conn:
            self._leave_sending(conn, report, "queued", error)
            _try_at(conn, report, next_try)

    def held(self, report: int, error: str) -> None:
        with transaction(self._engine, "report held") as conn:
            self._leave_sending(conn, report, "held", error)

    def unknown(self, report: int, error: str, look_again: datetime) -> None:
        with transaction(self._engine, "report unknown") as conn:
            self._leave_sending(conn, report, "unknown", error)
            _try_at(conn, report, look_again)

    def found(self, report: int, at: datetime) -> None:
        with transaction(self._engine, "report found") as conn:
            update = (
                "UPDATE report SET state = 'sent', sent_at = :at WHERE id = :id AND"
                " state = 'unknown'"
            )
            if conn.execute(sa.text(update), {"id": report, "at": at}).rowcount:
                conn.execute(
                    sa.text("UPDATE outbox SET error = NULL WHERE report = :id"), {"id": report}
                )

    def not_found(self, report: int, look_again: datetime) -> None:
        with transaction(self._engine, "report still unknown") as conn:
            _try_at(conn, report, look_again)

    @staticmethod
    def _leave_sending(
        conn: sa.Connection, report: int, state: ReportState, error: str | None
    ) -> None:
        """Only the sender moves a report out of `sending`; any other state is a bug in swingbot."""
        moved = conn.execute(
            sa.text("UPDATE report SET state = :state WHERE id = :id AND state = 'sending'"),
            {"id": report, "state": state},
        ).rowcount
        if moved != 1:
            raise ReportError(
                f"report {ids.show('report', report)} is not being sent; two senders are running"
            )
        conn.execute(
            sa.text("UPDATE outbox SET error = :error WHERE report = :id"),
            {"id": report, "error": error},
        )


def _try_at(conn: sa.Connection, report: int, at: datetime) -> None:
    """Send the mail, or look for it, at this time."""
    conn.execute(
        sa.text("UPDATE outbox SET next_try = :at WHERE report = :id"), {"id": report, "at": at}
    )


def _bare(to: Sequence[str], cc: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for text in (*to, *cc) for address in addresses(text)))


def _sent_to(conn: sa.Connection, recipients: Sequence[str], now: datetime) -> dict[str, int]:
    """Mails of the last day by recipient; mails that may have been sent count."""
    query = """SELECT lower(a) AS address, count(*) AS mails
      FROM report r, unnest(r.to_addrs || r.cc_addrs) a
        WHERE lower(a) = ANY(:recipients) AND (r.state IN ('sending', 'unknown')
          OR (r.state = 'sent' AND r.sent_at > :since)) GROUP BY 1"""
    values = {
        "recipients": [address.lower() for address in recipients],
        "since": now - timedelta(hours=DAY_HOURS),
    }
    rows = conn.execute(sa.text(query), values)
    return {row.address: row.mails for row in rows}
