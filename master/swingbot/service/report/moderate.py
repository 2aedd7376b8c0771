"""Decide what happens to a mail that was just written: its recipients, whether a person reviews it
first, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.improvements import too_good
from swingbot.core.moderation.ruling import ReportClass, Ruling, class_of, first_state
from swingbot.core.report.report_facts import Gate
from swingbot.service.ports import LabSettings, Tools
from swingbot.service.ports.reports import Reports
from swingbot.service.report.address import recipients_of, within


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedMail:
    """The facts that determine the recipients and the review of a mail about `commit`, whether
    first or follow-up.
    """

    tree: str
    commit: str
    author: str
    base: str  # whose MAINTAINERS counts (the base of its tree)
    headline: ComparisonRow
    gates: Sequence[Gate] = ()
    shown: bool = True  # fresh boots of culprit and parent show the change
    unproven: str | None = None  # why its gates require a review (`core.proof.gates.fit_to_leave`)
    # a mail about this very change was requested: an improvement does not wait for its week's
    # digest
    alone: bool = False
    restricted: str = ""  # why it goes to the operator alone (`address.restricted_on`)
    # recipients of the first mail; follow-ups go only to them, so a dry run stays a dry run
    thread: Sequence[str] | None = None


def file_report(tools: Tools, settings: LabSettings, reports: Reports, mail: DraftedMail) -> Filing:
    """Return recipients, state, reason and class of a mail that was just written."""
    addressed = recipients_of(
        tools, settings, mail.tree, mail.commit, mail.author, mail.base, mail.restricted
    )
    if mail.thread is not None:
        addressed = within(addressed, mail.thread, settings.recipients)
    kind = class_of(
        mail.headline.metric,
        mail.headline.testbox,
        [(gate.name, gate.status) for gate in mail.gates],
    )
    ruling = _rule(settings, reports, mail, kind, addressed)
    return Filing(state=ruling.state, reason=ruling.reason, addressed=addressed, kind=kind)


def _rule(
    settings: LabSettings,
    reports: Reports,
    mail: DraftedMail,
    kind: ReportClass,
    addressed: Addressed,
) -> Ruling:
    rules = settings.mail
    suspicion = suspicion_of(settings, mail.headline) if mail.shown else None
    doubts = [
        None if mail.shown else "fresh boots of culprit and parent do not show the change",
        mail.unproven,
        suspicion,
        _no_recipient(addressed) if addressed.without_recipient else None,
    ]
    told_in_digest = (
        mail.shown
        and mail.headline.verdict == "better"
        and rules.digest
        and not mail.alone
        and suspicion is None
    )
    record = reports.class_record(kind)
    return first_state(
        rules.release,
        kind,
        record,
        doubts=[doubt for doubt in doubts if doubt],
        told_in_digest=told_in_digest,
    )


def _no_recipient(addressed: Addressed) -> str:
    reasons = "; ".join(f"{who}: {why}" for who, why in addressed.left_out[:3])
    return f"it has no recipient ({reasons or 'no author and no maintainer'})"


def suspicion_of(settings: LabSettings, headline: ComparisonRow) -> str | None:
    """Return why an improvement looks too good to be true, for the moderator and the mail; None if
    it does not.
    """
    if headline.verdict != "better":
        return None
    return too_good(
        headline.unit_job,
        headline.metric,
        headline.better,
        headline.change_pct,
        settings.mail.plausible,
    )
