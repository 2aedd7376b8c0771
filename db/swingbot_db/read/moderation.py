"""Reports that wait for a person, mails being sent, and past decisions."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.moderation.ruling import ClassRecord
from swingbot_db.store.reports import DECIDED

from .proof import gates
from .rows import Row, rows, shown

_MOST: Final = 50  # reports on one page
# No page shows the address of the requester of a result.
_NOBODY: Final = "WHEN r.kind = 'result' THEN CAST(ARRAY[] AS text[])"
_WITHOUT: Final = "CASE WHEN r.kind <> 'result' THEN"
TO: Final = f'CASE {_NOBODY} ELSE r.to_addrs END AS "to"'
MESSAGE: Final = f"{_WITHOUT} o.message END AS message"
ERROR: Final = f"{_WITHOUT} o.error END AS error"
REASON: Final = f"{_WITHOUT} r.reason END AS reason"
_COLUMNS: Final = f"""
SELECT r.id, r.incident, r.kind, r.revision, r.state, r.subject, r.message_id, {TO},
  r.cc_addrs AS cc, CASE {_NOBODY} ELSE r.would_to END AS would_to, r.would_cc,
       r.lists, r.left_out, r.commit_only, r.dry_run, r.restricted,
         {REASON}, r.metric, r.testbox, r.passed, r.created_at, r.sent_at,
       octet_length(o.message) AS size, {MESSAGE}, o.tries, o.next_try, {ERROR}
FROM report r LEFT JOIN outbox o ON o.report = r.id
"""


def moderated(conn: sa.Connection, report: int) -> Row:
    """Moderation facts of one report: recipients, reason, class and decisions."""
    reports = _facts(conn, f"{_COLUMNS} WHERE r.id = :id", id=report)
    names = (
        *("would_to", "would_cc", "lists", "left_out", "commit_only"),
        *("dry_run", "restricted", "reason", "class", "acts"),
    )
    return {name: reports[0][name] for name in names} if reports else {}


def waiting(conn: sa.Connection) -> Row:
    """The moderation queue.

    `held` has held and unknown reports with the exact mail; `drafts` improvements; `switch` the
    switch for all mail; `classes` all classes of reports.
    """
    return {
        "switch": switch(conn),
        "held": _facts(
            conn,
            f"{_COLUMNS} WHERE r.state IN ('held', 'unknown') ORDER BY r.id LIMIT {_MOST}",
            mail=True,
        ),
        "drafts": _facts(
            conn, f"{_COLUMNS} WHERE r.state = 'draft' ORDER BY r.id DESC LIMIT {_MOST}"
        ),
        "waiting": conn.execute(
            sa.text("SELECT count(*) FROM report WHERE state IN ('held', 'unknown')")
        ).scalar_one(),
        "classes": report_classes(conn),
    }


def outgoing(conn: sa.Connection) -> Row:
    """The outbox: mails being sent, with tries and last error, then the latest that were sent or
    dropped, and the switch for all mail."""
    return {
        "switch": switch(conn),
        "open": _facts(
            conn,
            f"{_COLUMNS} WHERE r.state IN ('queued', 'sending', 'unknown') ORDER BY o.next_try,"
            " r.id LIMIT 200",
        ),
        "over": _facts(
            conn,
            f"{_COLUMNS} WHERE r.state IN ('sent', 'dropped') ORDER BY coalesce(r.sent_at,"
            f" r.created_at) DESC, r.id DESC LIMIT {_MOST}",
        ),
    }


def switch(conn: sa.Connection) -> Row:
    """State of the mail switch in the database: stopped, since when, by whom and why.

    The setting `mail.stop` is independent of it.
    """
    query = (
        "SELECT stopped, who, why, at, ARRAY(SELECT id FROM report WHERE state ="
        " 'sending' ORDER BY id) AS sending FROM mail_switch"
    )
    (row,) = rows(conn, query)
    return row | {"sending": [shown("report", number) for number in row["sending"]]}


def report_classes(conn: sa.Connection) -> list[Row]:
    """Each class of reports with its record.

    Keys: "metric", "testbox", "gates", "reports", "released", "dropped", "earned", "words", "last".
    """
    classes = []
    for row in rows(conn, DECIDED.format(more="")):
        record = ClassRecord(released=row["released"], dropped=row["dropped"])
        classes.append(
            {
                "metric": row["metric"],
                "testbox": row["testbox"],
                "gates": row["passed"],
                "reports": row["reports"],
                "released": record.released,
                "dropped": record.dropped,
                "earned": record.earned,
                "words": record.words,
                "last": shown("report", row["last"]),
            }
        )
    return classes


def _facts(conn: sa.Connection, query: str, *, mail: bool = False, **params: Any) -> list[Row]:
    reports = rows(conn, query, **params)
    acts: dict[int, list[Row]] = {}
    query = (
        "SELECT report, act, who, why, was, at FROM moderation WHERE report = ANY(:ids)"
        " ORDER BY id LIMIT 1000"
    )
    for act in rows(conn, query, ids=[row["id"] for row in reports]):
        acts.setdefault(act.pop("report"), []).append(act)
    for row in reports:
        message, incident = bytes(row.pop("message") or b""), row["incident"]
        metric, testbox, passed = row.pop("metric"), row.pop("testbox"), row.pop("passed")
        row |= {
            "acts": acts.get(row["id"], []),
            "class": {"metric": metric, "testbox": testbox, "gates": passed} if metric else None,
            "left_out": [
                {"address": address, "reason": reason} for address, reason in row["left_out"]
            ],
            "id": shown("report", row["id"]),
            "incident": shown("incident", row["incident"]),
        }
        if mail:
            row["gates"] = (
                [
                    {name: gate[name] for name in ("gate", "status", "reason")}
                    for gate in gates(conn, incident)
                ]
                if incident
                else []
            )
            row["mail"] = message.decode("utf-8", "replace").replace("\r\n", "\n")
    return reports
