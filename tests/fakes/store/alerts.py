"""Alerts in memory."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.plan.alerts import AlertSubject, InvalidRuns, QueueState
from swingbot.core.report.mails.alert import Alert
from swingbot_db.store.alerts import LATEST_BOOTS
from tests.fakes.store.tables import Noun, Refused


class Alerts(Noun):
    def open(self) -> set[AlertSubject]:
        return {AlertSubject(a.kind, a.testbox) for a in self.db.alerts.values() if a.ended is None}

    def begin(self, subject: AlertSubject, reason: str) -> tuple[int, Alert]:
        if subject in self.open():
            raise Refused(f"an alert about {subject} is open")
        number = self.db.next_id("alert")
        self.db.alerts[number] = Alert(
            kind=subject.kind,
            testbox=subject.testbox,
            reason=reason,
            began=self.db.now(),
            ended=None,
        )
        return number, self.db.alerts[number]

    def end(self, subject: AlertSubject) -> tuple[int, Alert]:
        for number, alert in self.db.alerts.items():
            if (alert.kind, alert.testbox, alert.ended) == (*subject, None):
                self.db.alerts[number] = replace(alert, ended=self.db.now())
                return number, self.db.alerts[number]
        raise Refused(f"no alert about {subject} is open")

    def invalid_runs(self) -> list[InvalidRuns]:
        found = []
        for testbox, row in sorted(self.db.testboxes.items()):
            boots = [b.id for b in self.db.boots.values() if b.order.testbox == testbox]
            last = set(sorted(boots)[-LATEST_BOOTS:])
            runs = [r for r in self.db.runs.values() if r.boot in last and r.status != "warmup"]
            invalid = [r.reason or "" for r in runs if r.status == "invalid"]
            if runs and row.state != "gone":
                found.append(
                    InvalidRuns(
                        testbox=testbox,
                        runs=len(runs),
                        invalid=len(invalid),
                        reason=invalid[-1] if invalid else "",
                    )
                )
        return found

    def queue_stillness(self) -> QueueState:
        rows = [
            row
            for row in self.db.orders.values()
            if row.order.state in ("ready", "running") and self._may_work(row.order.testbox)
        ]
        if not rows:
            return QueueState(orders=0, oldest=None, still_seconds=0.0)
        ends = [row.ended_at for row in self.db.attempts.values() if row.ended_at is not None]
        since = max([min(row.created_at for row in rows), *ends])
        return QueueState(
            orders=len(rows),
            oldest=min(row.order.id for row in rows),
            still_seconds=(self.db.now() - since).total_seconds(),
        )

    def _may_work(self, testbox: str | None) -> bool:
        return testbox is None or self.db.testboxes[testbox].state == "active"
