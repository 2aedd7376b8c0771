"""Alert the operator by mail when something is wrong with the lab, once when it begins and once
when it is over, through the common outbox.

The alert, its mail and the mail's entry in the outbox are one transaction, so a crash loses none
and repeats none.
"""

from __future__ import annotations

from swingbot.core.mail.encoding import message_id
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.plan.alerts import DISK, QueueState, changes
from swingbot.core.report.mails.alert import Alert, alert_mail
from swingbot.service.ports import Lab, Transaction
from swingbot.service.store_mail import WrittenMail, store_mail


def alert_operator(lab: Lab, tx: Transaction) -> None:
    """Open alerts for new problems and close those that are over."""
    open_ = tx.alerts.open()
    queue = tx.alerts.queue_stillness()
    awake = QueueState(
        orders=queue.orders,
        oldest=queue.oldest,
        still_seconds=min(queue.still_seconds, lab.awake()),
    )
    alerts = changes(
        open_,
        tx.testboxes.all(),
        tx.testboxes.reasons(),
        tx.alerts.invalid_runs(),
        awake,
        lab.settings.testboxes,
        _no_room(lab, DISK in open_),
    )
    for subject, reason in alerts.begun.items():
        _write(lab, tx, *tx.alerts.begin(subject, reason))
    for subject in (*alerts.over, *alerts.quiet):
        number, alert = tx.alerts.end(subject)
        if subject in alerts.over:
            _write(lab, tx, number, alert)


def _no_room(lab: Lab, alerted: bool) -> str | None:
    """Return why the disk is too full, or None.

    Once alerted, the alert ends only with half as much space again, so that it does not flap at the
    limit.
    """
    return None if lab.no_room is None else lab.no_room(1.5 if alerted else 1.0)


def _write(lab: Lab, tx: Transaction, number: int, alert: Alert) -> None:
    settings = lab.settings
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
        lab,
        tx,
        WrittenMail(
            number=tx.reports.reserve(),
            alert=number,
            kind="alert",
            revision=revision,
            message_id=message_id(name, kind, revision, settings.domain),
            mail=mail,
            filing=Filing(
                state="queued",
                reason="",
                addressed=Addressed(
                    to=settings.recipients, would_to=settings.recipients, dry_run=False
                ),
            ),
        ),
    )
