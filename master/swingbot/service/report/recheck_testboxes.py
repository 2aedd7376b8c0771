"""Check before a mail is sent whether its testboxes may still report to others.

An A/A record may have begun again while the mail waited for a moderator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swingbot.core.model import ids
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.moderation.filing import MailRules
from swingbot.core.report.mails.digest import span
from swingbot.service.ports.outbox import OutboxMail
from swingbot.service.ports.reports import Reports
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.ports.transaction import Transaction
from swingbot.service.report.address import restricted_on, testboxes_of_mail


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckTestboxes:
    """`operator` has the addresses of `mail.to`, which get results of every testbox."""

    testboxes: KnownTestboxes
    rules: MailRules
    operator: tuple[str, ...]

    def __call__(self, tx: Transaction, mail: OutboxMail) -> str:
        """Return why a mail to others than the operator is held, and what to do; "" if it is not:
        one of its testboxes is quarantined, or its A/A record is not complete.
        """
        if set(mail.recipients) <= set(self.operator):
            return ""
        written = tx.outbox.written(mail.report)
        names = (
            _improved(tx.reports, mail.report)
            if written is None
            else testboxes_of_mail(tx.sightings, tx.bisections, mail.report, written)
        )
        known = replace(
            self.testboxes, remembered=tx.testboxes.remembered(self.testboxes.present.keys())
        )
        why = [*_quarantined(tx.testboxes, names)]
        why += filter(None, [restricted_on(known, self.rules, tx.anchors, names)])
        if not why:
            return ""
        name = ids.show("report", mail.report)
        return (
            f"{'; '.join(why)}; it was written for others: release {name} again when that is over,"
            f" or have it addressed to mail.to (`swingbot report readdress {name}`)"
        )


def _improved(reports: Reports, report: int) -> Sequence[str]:
    """Return the testboxes of the improvements of the week that a digest is about."""
    week = reports.digest_week(report)
    improvements = [] if week is None else reports.improvements_between(*span(week))
    return [each.testbox for each in improvements]


def _quarantined(testboxes: Testboxes, names: Sequence[str]) -> list[str]:
    reasons = testboxes.reasons()
    return [
        f"{name} is quarantined ({reasons[name][1]}): its results go to mail.to alone"
        for name in sorted(set(names))
        if name in reasons and reasons[name][0] == "quarantined"
    ]
