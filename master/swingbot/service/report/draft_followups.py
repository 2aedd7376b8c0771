"""Draft the short mails in the thread of a sent first mail: still there, update, fixed, retracted.
Without a first mail there are none.

Each is drafted once per event and handled like every report: it is held for a person or queued,
according to the settings and the record of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from email import message_from_bytes, policy

from swingbot.core.incident.level import check
from swingbot.core.incident.model import FirstMail, Sighting
from swingbot.core.mail.encoding import message_id
from swingbot.core.mail.message import PostedMail
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Bisection, Comparison, Variant
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.report.mails.followup import FollowUp, Kind, follow_up
from swingbot.core.report.report_facts import Commit
from swingbot.core.stats.compare import compare
from swingbot.service.faults import Faults
from swingbot.service.incident.attribute import headline_of
from swingbot.service.kernel.images import all_images_of
from swingbot.service.ports import Catalogue, Git, GitError, Lab, LabSettings, Transaction
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.gates import Gates
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.reports import Reports
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot.service.prove.report_evidence import gates_of, told_gates
from swingbot.service.report.address import readers, restricted_on, testboxes_of
from swingbot.service.report.draft_first import report_row
from swingbot.service.report.moderate import DraftedMail, file_report
from swingbot.service.result.boots import boots_of
from swingbot.service.store_mail import WrittenMail, store_mail
from swingbot_jobs.language.program import Program

# the incident status that each mail requires; open for all others
_OF = {"retraction": "invalid", "fixed": "fixed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedIncident:
    """An incident whose first mail was sent, with the sighting and headline of that mail."""

    incident: int
    first: FirstMail
    sighting: Sighting
    bisection: Bisection
    culprit: Variant
    row: ComparisonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpFacts:
    """Content of a short mail beyond the incident: `rows` compare the culprit's parent with `head`,
    which `where` names in words.
    """

    rows: tuple[ComparisonRow, ...] = ()
    where: str = ""
    head: str = ""
    fix: Commit | None = None
    reason: str = ""
    comparison: int | None = None
    shown: bool = True
    testboxes: tuple[str, ...] = ()  # whose results it tells; of a retraction none
    restricted: str = ""  # why they keep it from all but the operator


def draft_followups(lab: Lab, faults: Faults) -> None:
    """Draft the follow-up that each incident with a sent first mail needs now, each in its own
    transaction.
    """
    with lab.transaction("find incidents to follow up") as tx:
        due = tx.reports.to_follow(lab.settings.still_days)
    for number, kind in due:
        name = ids.show("incident", number)
        with faults.of(f"{kind} mail of {name}"), lab.transaction("draft followup") as tx:
            incident = tx.incidents.get(number)
            if incident is None or incident.status != _OF.get(kind, "open"):
                continue  # a person has changed it in the meantime
            case = _case(tx, number)
            news = _news(lab.tools.git, lab.catalogue, tx, case, kind) if case is not None else None
            if case is not None and news is not None:
                why = restricted_on(
                    lab.catalogue.testboxes, lab.settings.mail, tx.anchors, news.testboxes
                )
                news = replace(news, restricted=why)
                _draft(lab, tx.trees, tx.reports, tx.gates, case, kind, news)


def _case(tx: Transaction, incident: int) -> ReportedIncident | None:
    """Return the reported incident; None if the numbers of its first mail do not exist any more."""
    first = tx.reports.first_mail(incident)
    if first is None:
        return None
    reported = sorted(
        tx.sightings.of_incident(incident), key=lambda s: (s.report != first.report, s.id)
    )
    for sighting in reported:
        bisection = tx.bisections.get(sighting.bisection)
        row = headline_of(tx.comparisons, sighting, bisection) if bisection is not None else None
        if bisection is not None and row is not None and row.change_pct is not None:
            return ReportedIncident(
                incident=incident,
                first=first,
                sighting=sighting,
                bisection=bisection,
                culprit=tx.variants.get(sighting.culprit),
                row=row,
            )
    return None


def _news(
    git: Git, catalogue: Catalogue, tx: Transaction, case: ReportedIncident, kind: Kind
) -> FollowUpFacts | None:
    match kind:
        case "retraction":
            said = tx.incidents.last_event(case.incident, "invalid")
            return FollowUpFacts(reason=(said[0] if said else None) or "")
        case "fixed":
            return _fixed(
                git, catalogue.programs, tx.trees, tx.variants, tx.comparisons, tx.incidents, case
            )
        case "update":
            return _update(catalogue.programs, tx, case)
        case "still":
            return _still(git, catalogue, tx, case)


def _fixed(
    git: Git,
    programs: Mapping[str, Program],
    trees: Trees,
    variants: Variants,
    comparisons: Comparisons,
    incidents: Incidents,
    case: ReportedIncident,
) -> FollowUpFacts | None:
    """Return the content of a mail about a fix, from the comparison that checked it."""
    incident = incidents.get(case.incident)
    if incident is None or incident.fixed_by is None or incident.fix_check is None:
        return None
    comparison = comparisons.get(incident.fix_check)
    assert comparison is not None
    tree, tip = trees.get(comparison.tree), variants.get(comparison.head)
    rows = [
        row
        for row in comparisons.rows(comparison.id)
        if row.metric == case.bisection.metric and row.change_pct is not None
    ]
    return FollowUpFacts(
        rows=tuple(report_row(programs, row) for row in rows),
        where=f"{tree.name}, branch {tree.branch}",
        head=tip.commit,
        fix=_commit(git, incident.fixed_by),
        comparison=comparison.id,
        testboxes=(case.bisection.testbox,),
    )


def _commit(git: Git, sha: str) -> Commit:
    try:
        facts = git.facts(sha)
        return Commit(sha=facts.commit, subject=facts.subject, author=facts.author)
    except GitError:
        return Commit(sha=sha, subject="", author="")


def _update(
    programs: Mapping[str, Program], tx: Transaction, case: ReportedIncident
) -> FollowUpFacts | None:
    """Return the sightings that are in no mail yet, with the results of their own comparisons."""
    new = [
        sighting
        for sighting in tx.sightings.to_tell()
        if sighting.incident == case.incident and sighting.comparison is not None
    ]
    if not new:
        return None
    sentences = [_found(tx, case, sighting) for sighting in new]
    comparisons = list(
        dict.fromkeys(sighting.comparison for sighting in new if sighting.comparison is not None)
    )
    rows = [
        row
        for number in comparisons
        for row in tx.comparisons.rows(number)
        if row.headline and (row.changed or row.spread_changed)
    ]
    tree = tx.trees.get(new[0].tree)
    return FollowUpFacts(
        rows=tuple(report_row(programs, row) for row in rows),
        where=f"{tree.name}, branch {tree.branch}",
        head=new[0].commit,
        reason=" ".join(sentence for sentence, _ in sentences),
        comparison=comparisons[0],
        shown=any(shown for _, shown in sentences),
        testboxes=testboxes_of(tx.bisections, new),
    )


def _found(tx: Transaction, case: ReportedIncident, new: Sighting) -> tuple[str, bool]:
    """Return a sentence about one sighting, and whether fresh boots show it."""
    tree, bisection = tx.trees.get(new.tree), tx.bisections.get(new.bisection)
    assert bisection is not None
    row, place = headline_of(tx.comparisons, new, bisection), f"{tree.name}, branch {tree.branch}"
    if row is None or row.change_pct is None:
        return (
            f"A search in {place} ended at {new.commit[:12]} too, which could not be measured "
            "there.",
            False,
        )
    if not (row.changed or row.spread_changed):
        return (
            f"A search in {place} ended at {new.commit[:12]} too, but fresh boots there do "
            "not show it.",
            False,
        )
    if new.culprit == case.culprit.id:
        return (
            f"The same commit also changes {bisection.metric} on {bisection.testbox}; this "
            "was measured later.",
            True,
        )
    if new.commit == case.culprit.commit:
        return f"The same commit is now in {place}, and shows the change there too.", True
    return (
        f"A copy of it, {new.commit[:12]} (the same patch), is now in {place}, and shows the "
        "change there too.",
        True,
    )


def _still(
    git: Git, catalogue: Catalogue, tx: Transaction, case: ReportedIncident
) -> FollowUpFacts | None:
    """Return the comparison of the latest tip of the branch with the culprit's parent, if both have
    comparable boots.

    Nothing is booted for it, so a testbox that does not share boots gives no answer.
    """
    testbox = catalogue.testboxes.present.get(case.bisection.testbox)
    latest = (
        tx.comparisons.latest_tip(case.sighting.tree)
        if testbox is not None and testbox.repeatable
        else None
    )
    own = (
        tx.comparisons.get(case.sighting.comparison)
        if case.sighting.comparison is not None
        else None
    )
    if latest is None or own is None:
        return None
    tip, tree = tx.variants.get(latest.head), tx.trees.get(latest.tree)
    try:
        if not git.is_ancestor(case.culprit.commit, tip.commit):
            return None
    except GitError:
        return None
    row = _side_by_side(catalogue, tx, case, own, latest)
    reported = case.row.change_pct
    if row is None or reported is None or check(reported, row).answer != "still":
        return None
    return FollowUpFacts(
        rows=(report_row(catalogue.programs, row),),
        where=f"{tree.name}, branch {tree.branch}",
        head=tip.commit,
        comparison=latest.id,
        testboxes=(case.bisection.testbox,),
    )


def _side_by_side(
    catalogue: Catalogue,
    tx: Transaction,
    case: ReportedIncident,
    own: Comparison,
    latest: Comparison,
) -> ComparisonRow | None:
    """Compare the culprit's parent, as booted for the first mail, with the tip, as booted for its
    own comparison.
    """
    bisection, testbox = case.bisection, catalogue.testboxes.known(case.bisection.testbox)
    spec = next(
        (
            s
            for t, s in own.parts
            if t == bisection.testbox
            and (t, s) in latest.parts
            and any(j.name == bisection.unit_job for j in tx.specs.get(s))
        ),
        None,
    )
    images = all_images_of(
        tx.builds, [tx.variants.get(number) for number in (own.base, latest.head)]
    )
    if spec is None or images is None:
        return None
    job = next(job for job in tx.specs.get(spec) if job.name == bisection.unit_job)
    key, metric = (
        (bisection.unit_job, bisection.metric),
        metric_of(catalogue.programs, bisection.metric),
    )
    sides = [
        boots_of(tx.specs, tx.boots, image, testbox.name, spec, "", c.numbers)[0].get(key, [])
        for image, c in zip(images, (own, latest), strict=True)
    ]
    rule = rule_of(testbox, metric, job, min_effect_pct=latest.min_effect_pct)
    if not all(sides):
        return None
    # The two kernels were booted at different times, so these are not pairs, whatever the testbox
    # supports.
    row = compare(sides[0], sides[1], replace(rule, paired=False))
    return replace(
        row,
        unit_job=job.name,
        testbox=testbox.name,
        label=testbox.label,
        metric=metric.name,
        unit=metric.unit,
        headline=True,
    )


def _draft(
    lab: Lab,
    trees: Trees,
    reports: Reports,
    gates: Gates,
    case: ReportedIncident,
    kind: Kind,
    news: FollowUpFacts,
) -> None:
    number, name = reports.reserve(), ids.show("incident", case.incident)
    row, tree, revision = (
        report_row(lab.catalogue.programs, case.row),
        trees.get(case.sighting.tree),
        reports.next_revision(case.incident, kind),
    )
    facts = FollowUp(
        kind=kind,
        report=ids.show("report", number),
        first=_thread(case.first),
        culprit=Commit(
            sha=case.culprit.commit, subject=case.culprit.subject, author=case.culprit.author
        ),
        row=row,
        rows=news.rows,
        where=news.where,
        head=news.head,
        fix=news.fix,
        reason=news.reason,
        links=_links(lab.settings, case, number, news),
        contact=lab.settings.contact,
    )
    filing = file_report(
        lab.tools,
        lab.settings,
        reports,
        DraftedMail(
            tree=tree.name,
            commit=case.culprit.commit,
            author=case.culprit.author,
            base=tree.base_commit,
            headline=row,
            gates=told_gates(gates_of(gates, case.incident)),
            shown=news.shown,
            alone=True,
            thread=readers(case.first),
            restricted=news.restricted,
        ),
    )
    store_mail(
        lab.settings,
        lab.clock.now,
        reports,
        WrittenMail(
            number=number,
            incident=case.incident,
            kind=kind,
            revision=revision,
            message_id=message_id(name, kind, revision, lab.settings.domain),
            mail=follow_up(facts),
            filing=filing,
        ),
    )


def _thread(first: FirstMail) -> PostedMail:
    """Return our first mail as the one to reply to, with the mail that it replied to."""
    headers = message_from_bytes(first.message, policy=policy.compat32)
    return PostedMail(
        message_id=first.message_id,
        subject=first.subject,
        references=tuple(str(headers.get("References", "")).split()),
    )


def _links(
    settings: LabSettings, case: ReportedIncident, number: int, news: FollowUpFacts
) -> dict[str, str]:
    url = settings.web_url
    links = {
        "page": f"{url}/report/{ids.show('report', number)}",
        "about this mail": f"{url}/docs/your-mail",
        "incident": f"{url}/incident/{ids.show('incident', case.incident)}",
    }
    return links | (
        {"comparison": f"{url}/comparison/{ids.show('comparison', news.comparison)}"}
        if news.comparison is not None
        else {}
    )
