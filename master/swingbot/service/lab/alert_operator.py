"""Alert the operator by mail when something is wrong with the lab, once when it begins and once
when it is over, through the common outbox.

The alert, its mail and the mail's entry in the outbox are one transaction, so a crash loses none
and repeats none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from swingbot.core.mail.encoding import message_id
from swingbot.core.moderation.filing import Filing
from swingbot.core.plan.alerts import DISK, QueueState, changes
from swingbot.core.report.mails.alert import Alert, alert_mail
from swingbot.service.ports import Lab, LabSettings, Transaction
from swingbot.service.ports.lab import NoRoom
from swingbot.service.ports.reports import Reports
from swingbot.service.store_mail import WrittenMail, store_mail


def alert_operator(lab: Lab, tx: Transaction) -> None:
    """Open alerts for new problems and close those that are over."""
    open_ = tx.alerts.open()
    queue = tx.alerts.queue_stillness()
    stillness = QueueState(
        orders=queue.orders,
        oldest=queue.oldest,
        still_seconds=min(queue.still_seconds, lab.clock.awake()),
    )
    alerts = changes(
        open_,
        tx.testboxes.all(),
        tx.testboxes.reasons(),
        tx.alerts.invalid_runs(),
        stillness,
        lab.settings.testboxes,
        _no_room(lab.tools.no_room, DISK in open_),
    )
    for subject, reason in alerts.begun.items():
        _write(lab.settings, lab.clock.now, tx.reports, *tx.alerts.begin(subject, reason))
    for subject in (*alerts.over, *alerts.quiet):
        number, alert = tx.alerts.end(subject)
        if subject in alerts.over:
            _write(lab.settings, lab.clock.now, tx.reports, number, alert)


def _no_room(no_room: NoRoom | None, alerted: bool) -> str | None:
    """Return why the disk is too full, or None.

    Once alerted, the alert ends only with half as much space again, so that it does not flap at the
    limit.
    """
    return None if no_room is None else no_room(1.5 if alerted else 1.0)


def _write(
    settings: LabSettings, now: Callable[[], datetime], reports: Reports, number: int, alert: Alert
) -> None:
    if not settings.testboxes.mails:
        return
    revision = 1 if alert.ended is None else 2
    name, kind = f"alert{number}", alert.kind
    if revision == 2:
        first = message_id(name, kind, 1, settings.domain)
        alert = Alert(
            kind=kind,
            testbox=alert.testbox,
            reason=alert.reason,
            began=alert.began,
            ended=alert.ended,
            first_id=first,
        )
    mail = alert_mail(alert, url=settings.web_url)
    store_mail(
        settings,
        now,
        reports,
        WrittenMail(
            number=reports.reserve(),
            alert=number,
            kind="alert",
            revision=revision,
            message_id=message_id(name, kind, revision, settings.domain),
            mail=mail,
            filing=Filing.unmoderated(settings.recipients),
        ),
    )
