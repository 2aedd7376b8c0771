"""Tell the operator by mail what is wrong with the lab: one mail when it begins, one when it is over, through the outbox of all mails.

The alert, its mail and the mail's place in the outbox are one transaction, so a crash loses none and repeats none.
"""

from __future__ import annotations

from swingbot.core.mail.encoding import message_id
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.plan.alerts import DISK, QueueState, changes
from swingbot.core.report.mails.alert import Alert, alert_mail
from swingbot.service.ports import Lab, Transaction
from swingbot.service.store_mail import WrittenMail, store_mail


def alert_operator(lab: Lab, tx: Transaction) -> None:
    """Open alerts for what is wrong and close those that are over."""
    open_ = tx.alerts.open()
    queue = tx.alerts.queue_stillness()
    awake = QueueState(
        orders=queue.orders,
        oldest=queue.oldest,
        still_seconds=min(queue.still_seconds, lab.awake()),
    )
    told = changes(
        open_,
        tx.testboxes.all(),
        tx.testboxes.reasons(),
        tx.alerts.invalid_runs(),
        awake,
        lab.policies.boxes,
        _no_room(lab, DISK in open_),
    )
    for subject, reason in told.begun.items():
        _write(lab, tx, *tx.alerts.begin(subject, reason))
    for subject in (*told.over, *told.quiet):
        number, alert = tx.alerts.end(subject)
        if subject in told.over:
            _write(lab, tx, number, alert)


def _no_room(lab: Lab, told: bool) -> str | None:
    """Why the disk is too full. Once told, it is over only when there is half as much again: at the limit itself it would begin and end all the time."""
    return None if lab.no_room is None else lab.no_room(1.5 if told else 1.0)


def _write(lab: Lab, tx: Transaction, number: int, alert: Alert) -> None:
    policies = lab.policies
    if not policies.boxes.mails:
        return
    revision = 1 if alert.ended is None else 2
    name, kind = f"alert{number}", alert.kind
    if revision == 2:
        first = message_id(name, kind, 1, policies.domain)
        alert = Alert(
            kind=kind,
            testbox=alert.testbox,
            reason=alert.reason,
            began=alert.began,
            ended=alert.ended,
            first_id=first,
        )
    mail = alert_mail(alert, url=policies.web_url)
    store_mail(
        lab,
        tx,
        WrittenMail(
            number=tx.reports.reserve(),
            alert=number,
            kind="alert",
            revision=revision,
            message_id=message_id(name, kind, revision, policies.domain),
            mail=mail,
            filing=Filing(
                state="queued",
                reason="",
                addressed=Addressed(
                    to=policies.recipients, would_to=policies.recipients, dry_run=False
                ),
            ),
        ),
    )
