"""Alerts to the operator."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.plan.alerts import AlertSubject, InvalidRuns, QueueState
from swingbot.core.report.mails.alert import Alert
from swingbot_db.store.rows import Rows, records

LATEST_BOOTS: Final = 20  # boots of a testbox whose invalid runs are counted
_ALERT = "id, kind, testbox, reason, began_at, ended_at"


class Alerts(Rows):
    # Alerts: notifications of the operator.
    def open(self) -> set[AlertSubject]:
        return {
            AlertSubject(row.kind, row.testbox)
            for row in self.select("SELECT kind, testbox FROM alert WHERE ended_at IS NULL")
        }

    def begin(self, subject: AlertSubject, reason: str) -> tuple[int, Alert]:
        row = self.select_one(
            "INSERT INTO alert (kind, testbox, reason) VALUES (:kind, :testbox, :reason) RETURNING"
            f" {_ALERT}",
            kind=subject.kind,
            testbox=subject.testbox,
            reason=reason,
        )
        assert row is not None
        return row.id, _alert(row)

    def end(self, subject: AlertSubject) -> tuple[int, Alert]:
        row = self.select_one(
            "UPDATE alert SET ended_at = clock_timestamp() WHERE kind = :kind AND testbox IS NOT"
            f" DISTINCT FROM :testbox AND ended_at IS NULL RETURNING {_ALERT}",
            kind=subject.kind,
            testbox=subject.testbox,
        )
        assert row is not None
        return row.id, _alert(row)

    def invalid_runs(self) -> list[InvalidRuns]:
        rows = self.select(
            "SELECT x.name AS testbox, count(*) AS runs, count(*) FILTER (WHERE r.status ="
            " 'invalid') AS invalid,"
            " COALESCE((array_agg(r.reason ORDER BY r.id DESC) FILTER (WHERE r.status ="
            " 'invalid'))[1], '') AS reason"
            " FROM testbox x CROSS JOIN LATERAL (SELECT id FROM boot WHERE testbox = x.name ORDER"
            " BY id DESC LIMIT :boots) b"
            " JOIN run r ON r.boot = b.id AND r.status <> 'warmup' WHERE x.state <> 'gone' GROUP"
            " BY x.name",
            boots=LATEST_BOOTS,
        )
        return records(InvalidRuns, rows)

    def queue_stillness(self) -> QueueState:
        row = self.select_one(
            "SELECT count(*) AS orders, min(o.id) AS oldest, COALESCE(extract(epoch FROM"
            " clock_timestamp() - GREATEST(min(o.created_at),"
            " (SELECT max(ended_at) FROM (SELECT ended_at FROM attempt ORDER BY id DESC LIMIT 500)"
            " a))), 0)::float AS still_seconds"
            " FROM orders o LEFT JOIN testbox x ON x.name = o.testbox WHERE o.state IN ('ready',"
            " 'running') AND COALESCE(x.state, 'active') = 'active'"
        )
        assert row is not None
        return QueueState(**row._mapping)


def _alert(row: sa.Row[Any]) -> Alert:
    return Alert(
        kind=row.kind,
        testbox=row.testbox,
        reason=row.reason,
        began=row.began_at,
        ended=row.ended_at,
    )
