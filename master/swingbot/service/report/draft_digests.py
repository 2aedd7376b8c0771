"""Draft one digest of improvements per week.

The week's Monday is its key, so there is never a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from swingbot.core.mail.encoding import message_id
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.ruling import ReportClass, first_state
from swingbot.core.report.mails.digest import digest, span, week_name, weeks_due
from swingbot.core.thresholds import DIGEST_WEEKS
from swingbot.service.ports import LabSettings
from swingbot.service.ports.anchors import Anchors
from swingbot.service.ports.reports import Reports
from swingbot.service.report.address import restricted_on
from swingbot.service.store_mail import WrittenMail, store_mail


def draft_digests(
    testboxes: KnownTestboxes,
    settings: LabSettings,
    now: Callable[[], datetime],
    reports: Reports,
    anchors: Anchors,
) -> None:
    """Draft the digest of each complete week with improvements but without a digest; queue or hold
    it according to the lab.settings.
    """
    today = now()
    if not settings.mail.digest:
        return
    written = reports.digest_weeks((today - timedelta(weeks=DIGEST_WEEKS + 2)).date())
    for monday in weeks_due(today, written):
        improvements = reports.improvements_between(*span(monday))
        if not improvements:
            continue
        mail = digest(monday, improvements, url=settings.web_url, contact=settings.contact)
        number = reports.reserve()
        readers = settings.mail.digest_to or settings.recipients
        restricted = restricted_on(
            testboxes, settings.mail, anchors, [each.testbox for each in improvements]
        )
        identity = message_id(week_name(monday), "digest", 1, settings.domain)
        store_mail(
            settings,
            now,
            reports,
            WrittenMail(
                number=number,
                kind="digest",
                revision=1,
                message_id=identity,
                mail=mail,
                filing=_filing(settings, reports, readers, restricted),
                week=monday,
            ),
        )


def _filing(
    settings: LabSettings, reports: Reports, readers: tuple[str, ...], restricted: str
) -> Filing:
    """Return the filing of a digest.

    It goes only to those who requested it, and its class earns automatic release separately.
    `restricted` says why it goes to the operator alone.
    """
    kind = ReportClass(metric="digest", testbox="")
    ruling = first_state(settings.mail.release, kind, reports.class_record(kind))
    dry_run = settings.mail.dry_run or (bool(restricted) and readers != settings.recipients)
    addressed = Addressed(
        to=settings.recipients if dry_run else readers,
        would_to=readers,
        dry_run=dry_run,
        restricted=restricted if dry_run else "",
    )
    return Filing(state=ruling.state, reason=ruling.reason, addressed=addressed, kind=None)
