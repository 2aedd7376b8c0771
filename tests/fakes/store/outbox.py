"""Mails of reports on their way, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import cast

from swingbot.core.model.statuses import ModerationAct, ReportKind, ReportState
from swingbot.core.moderation.filing import Addressed
from swingbot.service.ports.outbox import AddressedMail, OutboxMail
from tests.fakes.store.tables import DecisionRow, Noun, ReportRow


class Outbox(Noun):
    def in_state(self, state: ReportState, due: datetime | None = None) -> list[OutboxMail]:
        mails = [_mail(row) for row in self.db.reports.values() if row.state == state]
        return sorted(
            (mail for mail in mails if due is None or mail.next_try <= due),
            key=lambda mail: (mail.next_try, mail.report),
        )

    def lock(self, report: int) -> OutboxMail | None:
        row = self.db.reports.get(report)
        return None if row is None else _mail(row)

    def update(self, mail: OutboxMail) -> None:
        self.db.reports[mail.report] = replace(
            self.db.reports[mail.report],
            state=mail.state,
            tries=mail.tries,
            next_try=mail.next_try,
            error=mail.error,
            reason=mail.reason,
            sent_at=mail.sent_at,
        )

    def sent_to(self, recipients: Collection[str], since: datetime) -> dict[str, int]:
        mails = Counter(
            address.lower()
            for row in self.db.reports.values()
            if row.state in ("sending", "unknown")
            or (row.state == "sent" and row.sent_at is not None and row.sent_at > since)
            for address in row.recipients
        )
        asked = {address.lower() for address in recipients}
        return {address: count for address, count in mails.items() if address in asked}

    def stopped(self) -> bool:
        return bool(self.db.stopped)

    def set_stopped(self, stopped: bool, who: str, why: str) -> bool:
        changed = stopped != self.stopped()
        self.db.stopped = {1: None} if stopped else {}
        return changed

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
        self.db.decisions[self.db.next_id("decision")] = DecisionRow(
            act=act, report=report, counts=counts
        )

    def written(self, report: int) -> AddressedMail | None:
        row = self.db.reports[report]
        if row.incident is None:
            return None
        incident = self.db.incidents[row.incident]
        tree = self.db.trees[incident.tree].tree
        culprit = self.db.variants[incident.culprit]
        return AddressedMail(
            state=row.state,
            incident=row.incident,
            kind=cast(ReportKind, row.kind),
            tree=tree.name,
            commit=culprit.commit,
            author=culprit.author,
            base=tree.base_commit,
            message_id=row.message_id,
            subject=row.subject,
            body=row.body,
            message=row.message,
            testbox=row.judged.testbox if row.judged else None,
        )

    def readdress(self, report: int, addressed: Addressed, message: bytes) -> None:
        self.db.reports[report] = replace(
            self.db.reports[report],
            recipients=(*addressed.to, *addressed.cc),
            lists=tuple(address.lower() for address in addressed.lists),
            message=message,
        )


def _mail(row: ReportRow) -> OutboxMail:
    return OutboxMail(
        report=row.id,
        message_id=row.message_id,
        message=row.message,
        recipients=row.recipients,
        lists=row.lists,
        state=row.state,
        tries=row.tries,
        next_try=row.next_try,
        error=row.error,
        reason=row.reason,
        sent_at=row.sent_at,
    )
