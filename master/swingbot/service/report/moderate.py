"""What becomes of a mail that was just written: to whom it goes, whether a person looks first, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.improvements import too_good
from swingbot.core.moderation.ruling import ReportClass, Ruling, class_of, first_state
from swingbot.core.report.facts import Gate
from swingbot.service.ports import Lab, Transaction
from swingbot.service.report.address import recipients_of


def file_report(
    lab: Lab,
    tx: Transaction,
    *,
    tree: str,
    commit: str,
    author: str,
    headline: ComparisonRow,
    gates: Sequence[Gate] = (),
    shown: bool = True,
    unproven: str | None = None,
    alone: bool = False,
    thread: Sequence[str] | None = None,
) -> Filing:
    """Recipients, state, reason and class of a mail about `commit`, the first one or a later one of its thread.

    `shown`: the culprit shows against its parent in fresh boots. `unproven`: why its gates want a person to look (`core.proof.gates.fit_to_leave`).
    `alone`: somebody asked for a mail about this very change, so an improvement does not wait for its week's digest.
    `thread`: who got the first mail; nobody else gets an answer to it, so what follows a dry run stays one.
    """
    found = recipients_of(lab, tree, commit, author)
    if thread is not None:
        found = within(found, thread, lab.policies.recipients)
    kind = class_of(headline.metric, headline.testbox, [(gate.name, gate.status) for gate in gates])
    ruling = _rule(lab, tx, kind, found, headline, shown=shown, unproven=unproven, alone=alone)
    return Filing(state=ruling.state, reason=ruling.reason, addressed=found, kind=kind)


def _rule(
    lab: Lab,
    tx: Transaction,
    kind: ReportClass,
    found: Addressed,
    headline: ComparisonRow,
    *,
    shown: bool,
    unproven: str | None,
    alone: bool,
) -> Ruling:
    policy = lab.policies.mail
    suspicion = suspicion_of(lab, headline) if shown else None
    doubts = [
        None if shown else "the culprit does not show against its parent in fresh boots",
        unproven,
        suspicion,
        _nobody(found) if found.nobody else None,
    ]
    told_in_digest = (
        shown and headline.verdict == "better" and policy.digest and not alone and suspicion is None
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
