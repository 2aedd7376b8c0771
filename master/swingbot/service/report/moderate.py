"""What becomes of a mail that was just written: to whom it goes, whether a person looks first, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.improvements import too_good
from swingbot.core.moderation.ruling import ReportClass, Ruling, class_of, first_state
from swingbot.core.report.facts import Gate
from swingbot.service.ports import Lab, Transaction
from swingbot.service.report.address import recipients_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedMail:
    """What decides who gets a mail about `commit`, the first one or a later one of its thread, and who looks at it before."""

    tree: str
    commit: str
    author: str
    headline: ComparisonRow
    gates: Sequence[Gate] = ()
    shown: bool = True  # the culprit shows against its parent in fresh boots
    unproven: str | None = (
        None  # why its gates want a person to look (`core.proof.gates.fit_to_leave`)
    )
    alone: bool = False  # somebody asked for a mail about this very change: an improvement does not wait for its week's digest
    thread: Sequence[str] | None = (
        None  # who got the first mail; nobody else gets an answer to it, so what follows a dry run stays one
    )


def file_report(lab: Lab, tx: Transaction, mail: DraftedMail) -> Filing:
    """Recipients, state, reason and class of a mail that was just written."""
    found = recipients_of(lab, mail.tree, mail.commit, mail.author)
    if mail.thread is not None:
        found = within(found, mail.thread, lab.policies.recipients)
    kind = class_of(
        mail.headline.metric,
        mail.headline.testbox,
        [(gate.name, gate.status) for gate in mail.gates],
    )
    ruling = _rule(lab, tx, mail, kind, found)
    return Filing(state=ruling.state, reason=ruling.reason, addressed=found, kind=kind)


def _rule(
    lab: Lab, tx: Transaction, mail: DraftedMail, kind: ReportClass, found: Addressed
) -> Ruling:
    policy = lab.policies.mail
    suspicion = suspicion_of(lab, mail.headline) if mail.shown else None
    doubts = [
        None if mail.shown else "the culprit does not show against its parent in fresh boots",
        mail.unproven,
        suspicion,
        _nobody(found) if found.nobody else None,
    ]
    told_in_digest = (
        mail.shown
        and mail.headline.verdict == "better"
        and policy.digest
        and not mail.alone
        and suspicion is None
    )
    record = tx.reports.class_record(kind)
    return first_state(
        policy.release,
        kind,
        record,
        doubts=[doubt for doubt in doubts if doubt],
        told_in_digest=told_in_digest,
    )


def within(found: Addressed, thread: Sequence[str], operator: tuple[str, ...]) -> Addressed:
    """Those of the recipients who got the first mail of the thread; the operator where that is nobody."""
    known = {address.lower() for address in thread}
    to, cc = (
        tuple(address for address in given if address.lower() in known)
        for given in (found.to, found.cc)
    )
    new = [
        address
        for address in (*found.to, *found.cc)
        if address.lower() not in known and address not in operator
    ]
    if not to:
        to, cc = operator, ()
    left_out = (
        *found.left_out,
        *((address, "did not get the first mail of this thread") for address in new),
    )
    return replace(found, to=to, cc=cc, left_out=left_out, dry_run=found.dry_run or to == operator)


def _nobody(found: Addressed) -> str:
    reasons = "; ".join(f"{who}: {why}" for who, why in found.left_out[:3])
    return f"there is nobody to write to ({reasons or 'no author and no maintainer'})"


def suspicion_of(lab: Lab, headline: ComparisonRow) -> str | None:
    """Why an improvement is too good to be true, for the moderator and for the mail; None where it is not."""
    if headline.verdict != "better":
        return None
    return too_good(
        headline.unit_job,
        headline.metric,
        headline.better,
        headline.change_pct,
        lab.policies.mail.plausible,
    )
